/* Inside the front end: the state of reading a design in HLS C++. It walks the function as a
 * program would run, with symbols for the counters of the loops that stay. */
#ifndef STC_CPP_INTERNAL_H
#define STC_CPP_INTERNAL_H
#include "frontend/c_reader.h"
#include "frontend/cpp_design.h"

enum { CPP_OPERATIONS_MOST = 400000, CPP_LANES_MOST = 4096 };

enum cpp_value_kind {
	CPP_REFUSED, /* a diagnostic was given */
	CPP_SCALAR,
	CPP_LANES, /* a vector */
	CPP_PLACE, /* an array, or the part that the first subscripts name */
	CPP_VOID
};

struct cpp_value {
	enum cpp_value_kind kind;
	struct cpp_form form; /* of an integer */
	int operation; /* that gives a scalar; CPP_NONE: a constant, or outside of all bodies */
	bool real, is_double;
	int bits;
	int lanes;
	struct cpp_value *lane;
	int array, given;
	struct cpp_form *subscript; /* [given] */
};

struct cpp_variable {
	struct cpp_value value;
};

struct cpp_pragma {
	struct location location;
	const char *name; /* in capitals */
	const char *text; /* the words behind it, one blank between them */
	unsigned owner;   /* offset of the loop or function that it is part of */
};

struct cpp_pragmas {
	VEC(struct cpp_pragma) list;
};

/* What is known of an array's elements in the current body. */
struct cpp_contents {
	int epoch;
	const char *signature; /* of all subscripts that were used; NULL: several */
};

struct cpp_reader {
	struct c_reader c;
	struct cpp_design *design;
	struct map variables; /* c_key -> struct cpp_variable */
	struct map pragmas;   /* c_key of a function -> struct cpp_pragmas */
	struct map elements;  /* array, epoch, subscripts -> int: the operation that has it */
	VEC(struct cpp_contents) contents; /* by array */
	const struct cpp_pragmas *here;    /* of the current function */
	VEC(const char *) calls;           /* c_keys of the functions that are being read */
	struct cpp_value *result;          /* of the current function */
	int body, depth;
	int64_t trips[CPP_DEPTH]; /* of the loops around */
	bool pipelined;           /* loops are unrolled */
	bool called;              /* from a pipelined loop, and not inlined by a pragma */
	int conditions;           /* that are not known, around */
	int epochs;
};

/* --- cpp_value.c --- */
struct cpp_form cpp_constant(int64_t value);
bool cpp_is_constant(const struct cpp_form *form);
struct cpp_form cpp_add(struct cpp_form left, struct cpp_form right, int64_t factor);
struct cpp_value cpp_integer(int64_t value);
struct cpp_value cpp_unknown(struct cpp_reader *reader, int operation, int bits, bool real);
/* The result of an operation of these operands. */
struct cpp_value cpp_compute(struct cpp_reader *reader, CXCursor cursor, enum op_code code,
        const struct cpp_value *operand, int operands);
struct cpp_value cpp_binary(struct cpp_reader *reader, CXCursor cursor,
        enum CXBinaryOperatorKind which, struct cpp_value left, struct cpp_value right);
/* One of two values, by a condition. */
struct cpp_value cpp_select(struct cpp_reader *reader, CXCursor cursor, struct cpp_value condition,
        struct cpp_value yes, struct cpp_value no);
int cpp_add_operation(struct cpp_reader *reader, CXCursor cursor, struct cpp_operation operation);

/* --- cpp_memory.c --- */
struct cpp_value cpp_load(
        struct cpp_reader *reader, CXCursor cursor, const struct cpp_value *place, CXType type);
bool cpp_store(struct cpp_reader *reader, CXCursor cursor, const struct cpp_value *place,
        const struct cpp_value *value);
struct cpp_value cpp_stream_read(
        struct cpp_reader *reader, CXCursor cursor, const struct cpp_value *stream, CXType element);
/* What follows is not known to find what came before. */
void cpp_forget(struct cpp_reader *reader);

/* --- cpp_type.c --- */
/* The class template of our headers that the type is made of, as "vector"; or "". */
const char *cpp_class(struct cpp_reader *reader, CXType type);
bool cpp_is_stream(struct cpp_reader *reader, CXType type);
CXType cpp_plain(CXType type); /* without references and names */
/* Lanes of a vector, bits of a number. */
int64_t cpp_width(struct cpp_reader *reader, CXType type);
CXType cpp_element(CXType type); /* of a vector or stream */
/* A value of the type that nothing is known of. */
struct cpp_value cpp_blank(struct cpp_reader *reader, CXType type, int operation);
/* Adds an array, or a FIFO. CPP_NONE after a diagnostic. */
int cpp_declare_array(struct cpp_reader *reader, CXCursor declaration, const char *name);

/* --- cpp_expression.c --- */
/* Says why the code at the cursor is not taken, and what would be; a value of kind CPP_REFUSED. */
struct cpp_value cpp_refused(
        struct cpp_reader *reader, CXCursor cursor, const char *why, const char *accepted);
struct cpp_value cpp_evaluate(struct cpp_reader *reader, CXCursor cursor);
bool cpp_assign(struct cpp_reader *reader, CXCursor target, const struct cpp_value *value);
/* An array, stream or element that is not read. */
struct cpp_value cpp_place(struct cpp_reader *reader, CXCursor cursor);
struct cpp_variable *cpp_variable(struct cpp_reader *reader, CXCursor cursor);
CXCursor cpp_strip(struct cpp_reader *reader, CXCursor cursor);

/* --- cpp_call.c --- */
struct cpp_value cpp_call(struct cpp_reader *reader, CXCursor call);
bool cpp_read_top(struct cpp_reader *reader);

/* --- cpp_statement.c --- */
bool cpp_statement(struct cpp_reader *reader, CXCursor cursor);
bool cpp_declare(struct cpp_reader *reader, CXCursor declaration);
int cpp_new_body(struct cpp_reader *reader);
void cpp_add_item(struct cpp_reader *reader, int body, enum cpp_item_kind kind, int index);

/* --- cpp_loop.c --- */
bool cpp_for(struct cpp_reader *reader, CXCursor cursor, const char *label);
/* The variables, declared before, that the statement assigns. */
struct cpp_changed {
	struct cpp_reader *reader;
	VEC(struct cpp_variable *) list;
};
struct cpp_changed cpp_changed_in(struct cpp_reader *reader, CXCursor cursor);

/* --- cpp_pragma.c --- */
const struct cpp_pragmas *cpp_pragmas_of(struct cpp_reader *reader, CXCursor function);
/* The pragma of that name which belongs to the loop or function; NULL: there is none. */
const struct cpp_pragma *cpp_find_pragma(
        const struct cpp_reader *reader, CXCursor owner, const char *name);
/* The number behind `key =`; `otherwise` where there is none. */
int64_t cpp_pragma_number(const struct cpp_pragma *pragma, const char *key, int64_t otherwise);
/* NULL: there is none */
const char *cpp_pragma_word(
        struct cpp_reader *reader, const struct cpp_pragma *pragma, const char *key);
bool cpp_pragma_has(const struct cpp_pragma *pragma, const char *word);
/* Partition, ports, bundle, depth and the like of an array that the function calls `name`. */
void cpp_array_pragmas(struct cpp_reader *reader, int array, const char *name, int given);
#endif
