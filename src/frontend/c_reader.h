/* Inside the front end: the state of reading one function, and what its files offer each other. */
#ifndef STC_C_READER_H
#define STC_C_READER_H
#include "frontend/frontend.h"
#include <clang-c/Index.h>

enum { C_DEPTH_MOST = 200 /* nesting of expressions and statements */ };

struct c_type {                  /* of a scalar */
	const struct type *type; /* NULL: none that a design can have */
	bool is_unsigned;
};

struct c_value {  /* of an expression */
	int node; /* of the statement's body; -1: refused */
	struct c_type type;
};

enum c_symbol_kind {
	C_SYMBOL_NONE,
	C_SYMBOL_ARRAY,
	C_SYMBOL_FORM,
	C_SYMBOL_VALUE,
	C_SYMBOL_REFUSED /* a diagnostic was given */
};

/* What the name of a variable stands for. */
struct c_symbol {
	enum c_symbol_kind kind;
	int array; /* number in the region */
	/* the first subscripts, of a part of the array that is a function's parameter */
	int given;
	const struct poly_form *subscript; /* [given] */
	bool element; /* a pointer to one element, which a function takes as *p */
	/* the parameter of the design's function whose value it may be, if that is not known */
	const char *unknown;
	struct poly_form form; /* a counter, or a number that is known */
	struct c_value value;  /* parameter of an inlined function */
	bool counter;          /* a loop counter, which the body may not assign */
};

struct c_cursors {
	struct arena *arena;
	VEC(CXCursor) list;
};

struct c_guard {   /* a condition on data under which statements are executed */
	int array; /* scalar of one bit that holds it */
	bool negated;
};

struct c_reader {
	struct module *module;
	struct arena *arena;
	const struct c_options *options;
	const struct c_source *source;
	struct region *region;
	const char *const *argument; /* [arguments] of clang */
	int arguments;
	CXTranslationUnit unit;
	CXCursor function;
	struct map symbols;  /* c_key of a declaration -> struct c_symbol */
	struct map assigned; /* c_key of the variables that are assigned after their declaration */
	struct map sizes;    /* parameter -> int64_t, of options and extents */
	int loops;           /* around the current statement */
	int position[POLY_DIMS + 1];
	const char *counter[POLY_DIMS];      /* [loops] names */
	int64_t trips[POLY_DIMS];            /* [loops] 0: they vary */
	const struct poly_condition *domain; /* of the current statement */
	const struct poly_condition *when;   /* of the current expression */
	struct region_statement *statement;  /* whose expression is read */
	CXCursor written;                    /* the statement in C */
	VEC(struct c_guard) guards;
	int depth;               /* nesting */
	int conditions;          /* hidden scalars made */
	VEC(const char *) calls; /* functions that are being inlined */
};

/* --- c_cursor.c --- */
/* All children, without labels for their roles. */
struct c_cursors c_children(struct arena *arena, CXCursor cursor);
const char *c_text(struct arena *arena, CXString string); /* disposes it */
const char *c_name(struct arena *arena, CXCursor cursor);
/* The user's own characters, on one line, shortened. */
const char *c_tokens(const struct c_reader *reader, CXCursor cursor);
struct location c_location(const struct c_reader *reader, CXSourceLocation location);
struct location c_place(const struct c_reader *reader, CXCursor cursor);
/* names a declaration in a map */
const char *c_key(struct arena *arena, CXCursor declaration);
/* Without parentheses, and without implicit casts. */
CXCursor c_strip(struct arena *arena, CXCursor cursor);
/* Is the expression just the variable? */
bool c_names(struct c_reader *reader, CXCursor cursor, CXCursor variable);
/* Error at the cursor with its tokens, and a note on what is accepted. Returns false. */
bool c_refuse(struct c_reader *reader, CXCursor cursor, const char *why, const char *accepted);
/* The same for what has to be affine; names a parameter without a value, if that is the reason. */
bool c_refuse_affine(
        struct c_reader *reader, CXCursor cursor, const char *why, const char *accepted);
/* A constant: false if it is none. */
bool c_integer(CXCursor cursor, int64_t *value);
bool c_real(CXCursor cursor, double *value);
/* false after a diagnostic: nested too deeply. Call c_leave afterwards. */
bool c_enter(struct c_reader *reader, CXCursor cursor);
void c_leave(struct c_reader *reader);

/* --- c_read.c --- */
/* false after a diagnostic: clang does not take the file. */
bool c_parse(struct c_reader *reader, CXIndex index, const char **argument, int count);
/* The function that the options name, or the only one. */
bool c_find_function(struct c_reader *reader);
/* The statements of a void function. */
bool c_function_body(struct c_reader *reader, CXCursor definition);

/* --- c_type.c --- */
struct c_type c_type_of(struct c_reader *reader, CXType type);
bool c_is_scalar(CXType type);
bool c_is_array(CXType type);
/* The type in which an operation of both is computed. */
struct c_type c_common_type(struct c_reader *reader, struct c_type left, struct c_type right);
struct c_value c_convert(struct c_reader *reader, struct c_value value, struct c_type to);
/* As a condition of one bit. */
int c_as_condition(struct c_reader *reader, struct c_value value);
struct c_value c_from_condition(struct c_reader *reader, int node, struct c_type type);

/* --- c_range.c --- */
/* Can the form be no number outside the type, where the current expression is? */
bool c_fits(const struct c_reader *reader, const struct poly_form *form, struct c_type type);

/* --- c_affine.c --- */
/* false: it is not affine. Gives no diagnostic. */
bool c_affine(struct c_reader *reader, CXCursor cursor, struct poly_form *form);
/* NULL: it is no affine condition. Gives no diagnostic. */
const struct poly_condition *c_affine_condition(struct c_reader *reader, CXCursor cursor);
/* left OPERATOR right; right may be the least or the largest of numbers, as a < b ? a : b. NULL: it
 * is not affine. */
const struct poly_condition *c_compare(struct c_reader *reader, enum CXBinaryOperatorKind which,
        const struct poly_form *left, CXCursor right);
/* What a condition says of counters alone: the affine ones among those joined by &&; NULL: none. */
const struct poly_condition *c_affine_part(struct c_reader *reader, CXCursor cursor);
const struct poly_condition *c_and(
        struct arena *arena, const struct poly_condition *left, const struct poly_condition *right);
const struct poly_condition *c_not(struct arena *arena, const struct poly_condition *condition);
const struct poly_condition *c_row(
        struct arena *arena, enum poly_operator kind, struct poly_form form);
bool c_is_number(const struct poly_form *form);
struct poly_form c_sum(struct poly_form left, struct poly_form right, int64_t factor);

/* --- c_expression.c --- */
struct c_value c_expression(struct c_reader *reader, CXCursor cursor);
struct c_value c_binary(struct c_reader *reader, CXCursor cursor, enum CXBinaryOperatorKind which,
        struct c_value left, struct c_value right);
/* An array, or a part of one that its first subscripts name. */
bool c_part(struct c_reader *reader, CXCursor cursor, struct c_symbol *part);
/* The array and the subscripts of an element or scalar. */
bool c_element(struct c_reader *reader, CXCursor cursor, struct poly_access *access);
/* Makes the element one that the statement reads. */
void c_note_read(struct c_reader *reader, CXCursor cursor, const struct poly_access *access);
struct c_value c_read_element(
        struct c_reader *reader, CXCursor cursor, const struct poly_access *access);

/* --- c_call.c --- */
struct c_value c_call(struct c_reader *reader, CXCursor cursor);
/* false after a diagnostic: the function calls itself, or the call lacks arguments. */
bool c_check_call(struct c_reader *reader, CXCursor call, CXCursor definition);
/* The operation of a function of math.h; OP_NONE: there is none of that name. */
enum op_code c_math_code(const char *name);

/* --- c_inline.c --- */
/* A call as a statement: the function's body, its parameters bound to the arguments. */
bool c_call_statement(struct c_reader *reader, CXCursor call);

/* --- c_declare.c --- */
struct c_symbol *c_symbol(struct c_reader *reader, CXCursor reference);
bool c_declare_parameters(struct c_reader *reader);
bool c_declare_local(struct c_reader *reader, CXCursor declaration);
/* The first value of a scalar that is declared here; what was before does not count, so that
 * conditions on data do not either. `written`: what messages quote. */
bool c_write_initial(struct c_reader *reader, CXCursor written, CXCursor declaration,
        CXCursor initial, int array);
int c_add_array(struct c_reader *reader, const struct region_array *array);
void c_set_symbol(struct c_reader *reader, CXCursor declaration, struct c_symbol symbol);

/* --- c_statement.c --- */
bool c_statement(struct c_reader *reader, CXCursor cursor);
/* Begins a statement that writes this element; c_end_statement gives its value. */
void c_begin_statement(struct c_reader *reader, CXCursor cursor);
bool c_end_statement(
        struct c_reader *reader, const struct poly_access *target, struct c_value value);

/* --- c_multiplied.c --- */
/* Is the step i *= c, or another one that multiplies, divides or shifts? */
bool c_is_multiplied(struct c_reader *reader, CXCursor step, CXCursor variable);
/* The loop with such a step, whose counter begins with a number. */
bool c_multiplied_loop(struct c_reader *reader, CXCursor loop, CXCursor variable, int64_t first);

/* --- c_extent.c --- */
void c_find_sizes(struct c_reader *reader); /* fills sizes */
/* An integer parameter in the expression whose value is not known; NULL: there is none. */
const char *c_unknown_size(struct c_reader *reader, CXCursor cursor);

/* --- c_overlap.c --- */
/* false after a diagnostic: a call in the file passes an array for two parameters, one of which the
 * function writes. */
bool c_check_overlap(struct c_reader *reader);

/* --- c_double.c --- */
/* Notes the literal that makes a statement on floats one in double precision. */
void c_note_double(struct c_reader *reader, CXCursor cursor);

/* --- c_pragma.c --- */
void c_read_pragmas(struct c_reader *reader);

/* --- c_constant.c --- */
/* The value of a constant expression of a pragma, which may name macros. */
bool c_constant_text(struct c_reader *reader, const char *text, int64_t *value);
#endif
