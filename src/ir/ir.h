/* The intermediate representation: a module of operations in blocks, with values, attributes and
 * types. One structure serves all levels (see enum level); its text is MLIR's generic
 * form. A module owns everything through its arena, so no part is freed on its own. */
#ifndef STC_IR_H
#define STC_IR_H
#include "base/diag.h"
#include "base/guard.h"
#include "base/map.h"
#include "ir/attributes.h"
#include "ir/predicate.h"
#include "ir/type.h"

/* In the order of the pipeline.  Demand level is stream level before each stream has one reader;
 * the bodies of kernels are of no module's level. */
enum level {
	LEVEL_TENSOR = 1,
	LEVEL_DEMAND = 2,
	LEVEL_STREAM = 4,
	LEVEL_HARDWARE = 8,
	LEVEL_BODY = 16
};
const char *level_name(enum level level);
bool level_find(const char *name, enum level *level); /* of a module */

enum op_code {
	OP_NONE,
#define X(code, name, levels, operands, results, regions, doc) OP_##code,
#include "ir/ops.def"
#undef X
	OP_COUNT
};

struct op_info {
	const char *name;      /* MLIR name, "arith.addf" */
	int levels;            /* bit mask of enum level */
	int operands, results; /* -1: any */
	int regions;
	const char *doc;
};
extern const struct op_info op_info[OP_COUNT];
enum op_code op_code_of(const char *name, size_t size); /* OP_NONE if there is no such row */

struct value {
	const struct type *type;
	struct op *def;      /* NULL for block arguments */
	struct block *block; /* of a block argument */
	int index;           /* result or argument number */
	int uses;            /* filled by ir_count_uses */
	int id;     /* scratch: value number while printing; otherwise free for the running pass */
	void *data; /* scratch for one pass or evaluation */
};

struct op {
	enum op_code code;
	struct location location;
	int operands, results, attributes;
	struct value **operand;
	struct value **result;
	struct named *attribute; /* sorted by name */
	struct block *region[2]; /* regions have one block each; NULL where absent */
	struct kernel *kernel;   /* of an OP_KERNEL: all but operands and result type */
	struct block *parent;
	struct op *previous, *next;
};

struct block {
	struct op *first, *last;
	int arguments;
	struct value **argument;
	struct op *parent; /* the op whose region this is */
};

struct module {
	struct arena *arena;
	struct guard *guard;
	struct diag *diag;
	struct map types; /* text -> type */
	enum level level;
	struct op *op; /* builtin.module */
};

struct module *module_new(
        struct arena *arena, struct guard *guard, struct diag *diag, enum level level);
struct block *module_body(const struct module *module);
/* the function of this name; NULL if there is none */
struct op *module_find(const struct module *module, const char *symbol);
/* the same, but searches from `near` first: functions are mostly defined in the order of their
 * calls */
struct op *module_find_after(
        const struct module *module, const struct op *near, const char *symbol);
/* the function that is neither private nor a process: the model */
struct op *module_main(const struct module *module);
struct module *module_clone(const struct module *module, struct arena *arena);

/* Builders. op_new makes an op that is in no block yet. */
struct op *op_new(struct module *module, enum op_code code, struct location location, int operands,
        struct value *const *operand, int results, const struct type *const *result);
void op_append(struct block *block, struct op *op);
void op_insert_before(struct op *before, struct op *op);
/* removes the op from its block; its memory stays in the arena */
void op_remove(struct op *op);
void op_set_operands(
        struct module *module, struct op *op, int operands, struct value *const *operand);
/* index of the operand that is the channel, array or memory port which the op reads or writes (its
 * indices follow it); -1 if it accesses none */
int op_access(const struct op *op);
const struct value *op_accessed(const struct op *op); /* NULL if it accesses none */
/* does it write this array or memory port? */
bool op_writes(const struct op *op, const struct value *array);
/* true where operand 0 is a condition under which the op reads or writes */
bool op_is_conditional(const struct op *op);
struct block *block_new(struct module *module, struct op *parent, int region);
struct value *block_add_argument(
        struct module *module, struct block *block, const struct type *type);
/* Shorthand for an op with one result: makes it, appends it to block, returns the result. */
struct value *build(struct module *module, struct block *block, enum op_code code,
        const struct type *result, int operands, struct value *const *operand);

/* Visits all ops in pre-order, regions included; visit may remove the op that it is called for. */
void ir_walk(struct block *block, void (*visit)(struct op *op, void *context), void *context);
/* sets value->uses of all results and block arguments below `block` */
void ir_count_uses(struct block *block);
/* Removes the kernels of the block whose results nothing reads; sets uses. */
void ir_drop_unread_kernels(struct block *block);
/* clears value->data of everything below, before a pass uses it */
void ir_clear_data(struct block *block);
/* replaces operands `from` by `to` in every op below */
void ir_replace(struct block *block, const struct value *from, struct value *to);

/* Prints MLIR's generic form. Deterministic; byte-identical after reading it back. */
void ir_print(struct module *module, struct text *out);
/* the op in one line, for messages */
void op_print_short(const struct op *op, struct text *out);

/* Checks the op table (operand and result counts, level), the types and the structure. Returns
 * false after diagnostics in module->diag. */
bool ir_verify(struct module *module);

#endif
