/* The hardware-level main under construction: its channels, memory ports and launch scalars. */
#ifndef STC_DESIGN_BUILDER_H
#define STC_DESIGN_BUILDER_H
#include "options/pass_context.h"

/* the hardware-level main under construction */
struct design {
	struct pass_context *context;
	struct module *module;
	struct op *function;
	struct block *block;      /* its body: channels, then calls */
	const struct op *source;  /* the stream-level main */
	struct location location; /* of the op that is being lowered */
	/* iterations of the rolled layer around the op that is being lowered; 0: outside */
	int64_t layers;
	/* dynamic bound around the op that is being lowered: 1 in the last launch of a chunked
	 * prompt, else 0; NULL: it runs in every launch (mark_last_chunk_only.c) */
	const struct run_time_trip *last_chunk;
	struct op *last_channel; /* the last channel so far, as channels precede calls */
	int serial;              /* number for unique names */
	int64_t own_elements;    /* results of so many elements have memory ports of their own */
	VEC(const struct attr *) port_attrs; /* a dictionary per argument of main */
	VEC(const struct attr *) buffers;    /* for stream.buffers */
	/* buffer of a state -> struct value *, the FIFO that says its reads are done */
	struct map reads_done;
	struct map states;   /* state name -> struct state * */
	struct map controls; /* symbol -> struct control * */
};

/* a launch scalar that bounds loops, or what layers with a sliding window use of it */
struct control {
	const char *symbol;
	struct control *windowed; /* list: the extents of sliding windows that derive from it */
	struct value *in;         /* FIFO that brings it */
	const struct type *word;
	VEC(struct value *) fifo; /* one per process that needs it */
};

/* Where a state lies: in parts (partitions of its outermost extent, or interleaved words); the
 * words of a part lie in the buffers of `ports` ports, which are read in parallel. */
struct state {
	int parts, ports;
	const char **buffer; /* [parts * ports] */
	int64_t offset;      /* the state's first element in each of them */
	int64_t elements;    /* elements in each of them */
	int64_t layer;       /* elements of one layer */
	int64_t lanes;       /* lanes of a port's word */
	/* consecutive words (of all ports) are in consecutive parts, in rotation; else each part
	 * has an equal share of the outermost extent */
	bool port_interleave;
};

/* Does a word's position decide which port has it? */
static inline bool state_is_interleaved(const struct state *state)
{
	return state->ports > 1 || state->port_interleave;
}

/* Sets what depends on the op that is lowered next; NULL: none. */
void design_begin(struct design *design, const struct op *op);

/* Channels and ports of the design. */
const struct attr *run_time_attr(
        struct module *module, const struct run_time_trip *trip, int64_t times);
struct value *design_fifo(
        struct design *design, const char *name, const struct type *word, int64_t depth);
struct value *design_blocks(
        struct design *design, const char *name, const struct type *block, int64_t depth);
struct value *design_port(struct design *design, const char *name, const struct type *word,
        const char *buffer, bool write);
/* sets an attribute of the ports that read the buffer */
void design_mark_port(
        struct design *design, const char *buffer, enum attr_key key, const char *value);
void design_buffer(struct design *design, const char *name, const struct type *word, int64_t words,
        const struct attr *segments);
/* marks words that come from memory, which are no intermediate of the model */
void design_prefetch(struct design *design, struct value *fifo);
/* the FIFO of a stream-level value */
struct value *stream_fifo(struct design *design, const struct value *stream);
/* the dictionary of a signature entry, from stream.inputs / stream.outputs of the source */
const struct attr *signature_of(const struct design *design, bool output, int index);

/* Launch scalars: lets the stream be one; the process that hands them to all that need them. */
void lower_extent(struct design *design, const struct op *op);
void lower_controls(struct design *design); /* after all processes are made */

#endif
