/* A design folder as its manifest.json describes it, opened on a device. */
#ifndef STC_DESIGN_H
#define STC_DESIGN_H
#include "device.h"
#include "image/image.h"

#define DESIGN_READS 2 /* version of the design format */
#define DESIGN_RANK_MOST 32

struct design_tensor {
	const char *name, *role, *dtype; /* dtype: f32, i64, … */
	/* the same for NumPy: f4, i8, …; NULL: it has none */
	const char *npy;
	int element_bytes, rank;
	int64_t shape[DESIGN_RANK_MOST];
	size_t bytes;
	bool result; /* of the source function, not argument */
	/* has a value: given, packed by the compiler, or a state */
	bool set;
	/* a launch that others follow has no value for it */
	bool last_chunk;
	/* inputs of one integer: what it is; by how much it grows with every row of a step */
	int64_t number, step;
	/* of one that counts rows: how many there may be, if one more says that all are there
	 * and other launches follow; else 0 */
	int64_t rows;
};

struct design_segment {
	struct segment segment;
	int buffer, tensor; /* indices; tensor -1: a constant */
};

struct design_file {
	const char *path, *hash;
};

/* launches of several steps, a token each: an output feeds an input */
struct design_feedback {
	int input, output; /* tensors */
	/* the input that says how many rows of `input` count; -1: all */
	int rows;
	int axis;             /* of rows in `input` */
	int64_t chunk_tokens; /* of the input; 1: it is one */
	/* of the host's numbers for a row of the text: `input`, or a row of it */
	size_t bytes;
	/* holds the text of a launch: the first row, those of the steps behind the first, and
	 * the one that the last leaves */
	int buffer;
	struct segment text; /* there */
	int64_t most;        /* steps of a launch; 0: they are of one */
	char *host;          /* the text as the host has it */
};

struct design_extent { /* what inputs may be */
	/* inputs: where in a state rows are written, how many there are; NULL: it is not said */
	struct design_tensor *at, *rows;
	int64_t state_rows, least, most; /* rows of the state; of a launch */
};

/* what a launch runs: a signature of its own, on memory of all */
struct design_phase {
	const char *name;                  /* NULL: the only one */
	VEC(struct design_tensor) tensors; /* arguments, then results */
	VEC(struct design_segment) segments;
	struct design_feedback feedback;
	VEC(struct design_extent) extents;
	bool ready;    /* launched at least once, */
	bool followed; /* and last by a launch that others follow */
};

struct design {
	struct arena *arena;
	struct diag *diag;
	const char *folder, *name;
	struct design_phase *phase, *now; /* [program.phases]; the one at hand */
	VEC(struct design_file) files;
	bool packed; /* with its weights */
	/* of states the last row, to the row of a token behind them */
	bool last_row_replaced;
	struct device_program program;
	struct device device;
	/* since the launch before the last; of the last launch */
	double host_seconds, device_seconds;
	double pending; /* host seconds since the last launch */
};

struct json;

/* folder → everything but device and times */
bool manifest_read(struct design *design);
/* of the phase, whose tensors are read */
void extents_read(struct design *design, const struct json *inputs, const struct json *outputs);
void extents_note(struct design_tensor *tensor, const void *data);
/* do the inputs say that other launches follow? */
bool extents_followed(const struct design *design);
/* inputs as they are, for a launch of so many rows in the steps behind the first */
bool extents_allow(struct design *design, int64_t further_tokens);
/* as such a launch leaves them, with one row in its last step where there are others */
void extents_advance(struct design *design, int64_t further_tokens);
/* every listed file is there and whole */
bool check_files(struct design *design, const char *cache);
/* made; NULL after a diagnostic.  given NULL: the user's */
const char *cache_folder(struct arena *arena, struct diag *diag, const char *prompt_tokens);

/* `design` is zeroed but for arena and diag.  Then design_start, before tensors are set.  After
 * a failure too, design_close must be called. */
/* cache NULL: the user's */
bool design_open(struct design *design, const char *folder, const char *cache);
bool design_start(struct design *design, const char *device);
/* what follows is about this phase; NULL: the first */
bool design_choose(struct design *design, const char *phase);
/* NULL: none */
struct design_tensor *design_argument(struct design *design, const char *name);
/* a state's is its argument */
struct design_tensor *design_result(struct design *design, const char *name);
bool design_set(
        struct design *design, struct design_tensor *tensor, const void *data, size_t bytes);
bool design_get(
        struct design *design, const struct design_tensor *tensor, void *data, size_t bytes);
bool design_launch(struct design *design);
/* A launch of so many steps, behind whose first input so many rows are given, less one: where
 * rows count, as many a step as there are. */
bool design_takes(struct design *design, int64_t tokens, int64_t prompt_tokens);
/* rows of the text behind the first input, of which the last is what the launch leaves */
int64_t design_text(const struct design *design, int64_t tokens, int64_t prompt_tokens);
/* text: the whole input and the given rows; it gets the others. */
bool design_tokens(
        struct design *design, int64_t tokens, int64_t prompt_tokens, void *text, size_t bytes);
bool design_reset(struct design *design);
void design_close(struct design *design);

/* The library of a design for the CPU, made where the cache lacks it.  NULL after a diagnostic. */
const char *compile_design(struct device *device);

#endif
