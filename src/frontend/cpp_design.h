/* A design in HLS C++ as its pragmas fix it: arrays, and bodies of operations, loops and calls.
 * What the pragmas unroll is unrolled here; the counters of the loops that remain are symbols of
 * the subscripts. Values, schedules and costs are the reader's business, not of this file. */
#ifndef STC_CPP_DESIGN_H
#define STC_CPP_DESIGN_H
#include "ir/ir.h"

enum {
	CPP_DEPTH = 16, /* most loops around an operation, and dims of an array */
	CPP_NONE = -1
};

/* constant + sum of coefficient[i] * (counter of the i-th loop around) */
struct cpp_form {
	bool known; /* false: it is no such sum */
	int64_t constant, coefficient[CPP_DEPTH];
};

enum cpp_partition { CPP_WHOLE, CPP_CYCLIC, CPP_BLOCK, CPP_COMPLETE };

enum cpp_storage {
	CPP_MEMORY, /* block RAM or LUTs, by its size */
	CPP_AXI,    /* external memory */
	CPP_STREAM  /* FIFO */
};

struct cpp_array {
	const char *name;
	struct location location;
	enum cpp_storage storage;
	const char *bundle; /* of external memory; arrays of one bundle share its adapter */
	int bits;           /* of an element */
	int rank;
	int64_t extent[CPP_DEPTH];
	enum cpp_partition partition[CPP_DEPTH];
	int64_t factor[CPP_DEPTH]; /* banks along the dim */
	int read_ports, write_ports, shared_ports;
	int64_t depth;    /* of a FIFO */
	bool outside;     /* an argument of the top function: it costs nothing in the design */
	bool independent; /* DEPENDENCE: no iteration needs what another one wrote */
	bool bound;       /* a pragma names its kind of memory */
};

enum cpp_kind {
	CPP_COMPUTE, /* `code` on operands */
	CPP_LOAD,    /* from an array */
	CPP_STORE,
	CPP_CARRIED /* what operand[0] was in the iteration before */
};

struct cpp_operation {
	enum cpp_kind kind;
	enum op_code code;
	bool is_double;
	int bits;               /* of the result */
	int operands, *operand; /* numbers of operations; CPP_NONE: a constant or known outside */
	int array;
	struct cpp_form subscript[CPP_DEPTH];
	int body;    /* that it is part of */
	bool called; /* in a function that a pipelined loop calls, which is a module of its own */
	int line;
};

enum cpp_item_kind { CPP_OPERATION, CPP_LOOP, CPP_CALL };

struct cpp_item {
	enum cpp_item_kind kind;
	int index;
};

struct cpp_body {
	int depth; /* loops around */
	VEC(struct cpp_item) items;
};

struct cpp_loop {
	const char *name; /* its label, or L and the line */
	struct location location;
	int depth; /* loops around it; number of its counter */
	int body;
	int64_t trips;
	bool trips_given; /* by LOOP_TRIPCOUNT, because the bounds are not constant */
	bool varies;      /* the trips are the mean over the loops outside */
	bool pipelined;
	bool asked;       /* by a pragma */
	int64_t interval; /* that the pragma asks for; 0: the least */
	int64_t unrolled; /* copies of the body in an iteration */
	bool no_flatten, rewind;
	bool dataflow;
};

struct cpp_call { /* a function that stands in its own module */
	const char *name;
	struct location location;
	int body;
	bool dataflow;
	bool pipelined;
	int64_t interval;
};

struct cpp_note { /* what became of a pragma */
	struct location location;
	const char *text;
};

struct cpp_design {
	const char *name;
	VEC(struct cpp_array) arrays;
	VEC(struct cpp_operation) operations;
	VEC(struct cpp_body) bodies;
	VEC(struct cpp_loop) loops;
	VEC(struct cpp_call) calls; /* calls.data[0]: the top function */
	VEC(struct cpp_note) notes;
};

#endif
