/* A design folder as its manifest.json describes it, opened on a device. */
#ifndef STC_DESIGN_H
#define STC_DESIGN_H
#include "device.h"
#include "image/image.h"

#define DESIGN_READS 4 /* version of the design format */
#define DESIGN_RANK_MOST 32

struct design_tensor {
	const char *name, *role, *dtype; /* dtype: f32, i64, … */
	/* the same for NumPy: f4, i8, …; NULL: NumPy has no such type */
	const char *npy;
	int element_bytes, rank;
	int64_t shape[DESIGN_RANK_MOST];
	size_t bytes;
	bool result; /* a result of the source function, not an argument */
	/* has a value: set by the host, packed by the compiler, or a state */
	bool set;
	/* has a value only after the last chunk of a prompt */
	bool last_chunk;
	/* scalar integer inputs: the value, and its increment per token of a step */
	int64_t number, step;
	/* of a token count whose value may be one above the maximum (all tokens, other launches
	 * follow): the maximum; else 0 */
	int64_t rows;
};

struct design_segment {
	struct segment segment;
	int buffer, tensor; /* indices; tensor -1: a constant */
};

struct design_file {
	const char *path, *hash;
};

/* feedback of an output to an input between the steps of a launch */
struct design_feedback {
	int input, output; /* indices of tensors */
	/* index of the input that holds the number of tokens in `input`; -1: all */
	int rows;
	int axis;             /* token dim of `input` */
	int64_t chunk_tokens; /* maximum tokens in `input` */
	/* host bytes per token of `input` */
	size_t bytes;
	/* buffer with the text of a launch: the first token, those of later steps, and the one that
	 * the last step produces */
	int buffer;
	struct segment text; /* the text in that buffer */
	int64_t most;        /* maximum steps of a launch; 0: no feedback */
	char *host;          /* the text in the host's element type */
};

struct design_extent { /* limits of the scalar inputs that index a state */
	/* inputs: first row written in a state, and number of rows; NULL: constant */
	struct design_tensor *at, *rows;
	/* rows of the state; minimum and maximum rows of a launch */
	int64_t state_rows, least, most;
};

/* a phase: a signature of its own on memory that all phases share */
struct design_phase {
	const char *name;                  /* NULL: the only phase */
	VEC(struct design_tensor) tensors; /* arguments, then results */
	VEC(struct design_segment) segments;
	struct design_feedback feedback;
	VEC(struct design_extent) extents;
	bool ready;    /* was launched at least once */
	bool followed; /* the last launch was a prompt chunk that others follow */
};

struct design {
	struct arena *arena;
	struct diag *diag;
	const char *folder, *name;
	struct design_phase *phase, *now; /* [program.phases]; now: the current one */
	VEC(struct design_file) files;
	bool packed; /* the folder has packed weights */
	/* the last row of the states was overwritten by a token one past it */
	bool last_row_replaced;
	struct device_program program;
	struct device device;
	/* host time between the last two launches; device time of the last */
	double host_seconds, device_seconds;
	double pending; /* host seconds since the last launch */
};

struct json;

/* reads the folder into all fields but device and times */
bool manifest_read(struct design *design);
/* limits of the current phase, after its tensors were read */
void extents_read(struct design *design, const struct json *inputs, const struct json *outputs);
void extents_note(struct design_tensor *tensor, const void *data);
/* Do the inputs mark a prompt chunk that other launches follow? */
bool extents_followed(const struct design *design);
/* Are the inputs within limits for a launch whose later steps have so many tokens? */
bool extents_allow(struct design *design, int64_t further_tokens);
/* sets the inputs to their values after such a launch */
void extents_advance(struct design *design, int64_t further_tokens);
/* checks that every listed file exists with its hash */
bool check_files(struct design *design, const char *cache);
/* creates the cache folder; NULL after a diagnostic. prompt_tokens NULL: the user's */
const char *cache_folder(struct arena *arena, struct diag *diag, const char *prompt_tokens);

/* Opening takes two steps: design_open with a design that is zeroed except for arena and diag, then
 * design_start, before tensors are set. design_close must be called after failures too. */
/* cache NULL: the user's cache */
bool design_open(struct design *design, const char *folder, const char *cache);
bool design_start(struct design *design, const char *device);
/* compiles the design if the device needs it and it is not, as a launch does */
bool design_prepare(struct design *design);
/* selects a phase for all later calls; NULL: the first */
bool design_choose(struct design *design, const char *phase);
/* NULL: there is no such argument */
struct design_tensor *design_argument(struct design *design, const char *name);
/* of a state, its argument */
struct design_tensor *design_result(struct design *design, const char *name);
bool design_set(
        struct design *design, struct design_tensor *tensor, const void *data, size_t bytes);
bool design_get(
        struct design *design, const struct design_tensor *tensor, void *data, size_t bytes);
bool design_launch(struct design *design);
/* Checks a launch of so many steps with so many prompt tokens. */
bool design_takes(struct design *design, int64_t tokens, int64_t prompt_tokens);
/* rows of the text after the first input; the last is what the launch produces */
int64_t design_text(const struct design *design, int64_t tokens, int64_t prompt_tokens);
/* text: the whole input and the prompt rows; on return also the others */
bool design_tokens(
        struct design *design, int64_t tokens, int64_t prompt_tokens, void *text, size_t bytes);
bool design_reset(struct design *design);
void design_close(struct design *design);

/* The library of a design for the CPU, compiled if the cache lacks it, from C++ that still has this
 * hash. NULL after a diagnostic. */
const char *compile_design(struct device *device, const char source[65]);
/* the hash of the design's C++; false after a diagnostic */
bool hash_source(struct device *device, char hash[65]);

#endif
