/* Operations, blocks and modules: the op table, building, walking. */
#include "ir/double_forms.h"
#include <string.h>

#define T LEVEL_TENSOR
#define S (LEVEL_DEMAND | LEVEL_STREAM)
#define H LEVEL_HARDWARE
#define B LEVEL_BODY
const struct op_info op_info[OP_COUNT] = {
#define X(code, name, levels, operands, results, regions, doc)                                     \
	[OP_##code] = { name, levels, operands, results, regions, doc },
#include "ir/ops.def"
#undef X
};
#undef T
#undef S
#undef H
#undef B

static const struct {
	const char *name;
	enum level level;
} levels[] = { { "tensor", LEVEL_TENSOR }, { "demand", LEVEL_DEMAND }, { "stream", LEVEL_STREAM },
	{ "hardware", LEVEL_HARDWARE } };

const char *level_name(enum level level)
{
	for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
		if (levels[i].level == level)
			return levels[i].name;
	return "body";
}

bool level_find(const char *name, enum level *level)
{
	for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
		if (!strcmp(levels[i].name, name)) {
			*level = levels[i].level;
			return true;
		}
	return false;
}

enum op_code op_code_of(const char *name, size_t size)
{
	for (int code = OP_NONE + 1; code < OP_COUNT; code++)
		if (strlen(op_info[code].name) == size && !memcmp(op_info[code].name, name, size))
			return (enum op_code)code;
	return OP_NONE;
}

bool type_is_double(const struct type *scalar)
{
	return scalar->kind == TYPE_FLOAT && scalar->width == 64;
}

bool has_double_form(enum op_code code)
{
	switch (code) {
	case OP_ADDF:
	case OP_SUBF:
	case OP_MULF:
	case OP_DIVF:
	case OP_NEGF:
	case OP_MAXIMUMF:
	case OP_MINIMUMF:
	case OP_MAXNUMF:
	case OP_MINNUMF:
	case OP_CMPF:
	case OP_SELECT:
	case OP_SITOFP:
	case OP_UITOFP:
	case OP_FPTOSI:
	case OP_FPTOUI:
	case OP_EXTF:
	case OP_TRUNCF:
	case OP_ABSF:
	case OP_SQRT:
	case OP_FLOOR:
	case OP_CEIL:
	case OP_ROUNDEVEN: return true;
	default: return false;
	}
}

struct module *module_new(
        struct arena *arena, struct guard *guard, struct diag *diag, enum level level)
{
	struct module *module = ARENA_NEW(arena, struct module);
	*module = (struct module){ .arena = arena,
		.guard = guard,
		.diag = diag,
		.types = map_new(arena),
		.level = level };
	module->op = op_new(module, OP_MODULE, NOWHERE, 0, NULL, 0, NULL);
	block_new(module, module->op, 0);
	return module;
}

struct block *module_body(const struct module *module)
{
	return module->op->region[0];
}

static bool is_called(const struct op *op, const char *symbol)
{
	return op->code == OP_FUNC && text_same(attr_text_or(op, KEY_SYM_NAME, NULL), symbol);
}

struct op *module_find(const struct module *module, const char *symbol)
{
	for (struct op *op = module_body(module)->first; op; op = op->next)
		if (is_called(op, symbol))
			return op;
	return NULL;
}

struct op *module_find_after(const struct module *module, const struct op *near, const char *symbol)
{
	for (struct op *op = near->next; op; op = op->next)
		if (is_called(op, symbol))
			return op;
	return module_find(module, symbol);
}

struct op *module_main(const struct module *module)
{
	for (struct op *op = module_body(module)->first; op; op = op->next) {
		bool private = text_same(attr_text_or(op, KEY_SYM_VISIBILITY, NULL), "private");
		if (op->code == OP_FUNC && !private && !attr_get(op, KEY_STREAM_PROCESS))
			return op;
	}
	return NULL;
}

static struct value *value_new(struct module *module, const struct type *type, int index)
{
	struct value *value = ARENA_NEW(module->arena, struct value);
	value->type = type;
	value->index = index;
	return value;
}

struct op *op_new(struct module *module, enum op_code code, struct location location, int operands,
        struct value *const *operand, int results, const struct type *const *result)
{
	struct op *op = ARENA_NEW(module->arena, struct op);
	op->code = code;
	op->location = location;
	op_set_operands(module, op, operands, operand);
	op->results = results;
	op->result = ARENA_ARRAY(module->arena, struct value *, results);
	for (int i = 0; i < results; i++) {
		op->result[i] = value_new(module, result[i], i);
		op->result[i]->def = op;
	}
	return op;
}

void op_set_operands(
        struct module *module, struct op *op, int operands, struct value *const *operand)
{
	op->operand = arena_copy(module->arena, operand, sizeof *operand * (size_t)operands);
	op->operands = operands;
}

int op_access(const struct op *op)
{
	static const int place[OP_COUNT] = {
		[OP_POP] = 1 + 1,
		[OP_PUSH] = 1 + 2,
		[OP_ACQUIRE] = 1 + 0,
		[OP_RELEASE] = 1 + 1,
		[OP_MEMREF_LOAD] = 1 + 0,
		[OP_MEMREF_STORE] = 1 + 1,
		[OP_WRITE] = 1 + 2,
	};
	return place[op->code] - 1;
}

const struct value *op_accessed(const struct op *op)
{
	int place = op_access(op);
	return place < 0 ? NULL : op->operand[place];
}

bool op_writes(const struct op *op, const struct value *array)
{
	return (op->code == OP_MEMREF_STORE || op->code == OP_WRITE) && op_accessed(op) == array;
}

bool op_is_conditional(const struct op *op)
{
	return op->code == OP_POP || op->code == OP_PUSH || op->code == OP_WRITE;
}

void op_append(struct block *block, struct op *op)
{
	op->parent = block;
	op->next = NULL;
	op->previous = block->last;
	if (block->last)
		block->last->next = op;
	else
		block->first = op;
	block->last = op;
}

void op_insert_before(struct op *before, struct op *op)
{
	struct block *block = before->parent;
	op->parent = block;
	op->next = before;
	op->previous = before->previous;
	if (before->previous)
		before->previous->next = op;
	else
		block->first = op;
	before->previous = op;
}

void op_remove(struct op *op)
{
	struct block *block = op->parent;
	if (!block)
		return;
	if (op->previous)
		op->previous->next = op->next;
	else
		block->first = op->next;
	if (op->next)
		op->next->previous = op->previous;
	else
		block->last = op->previous;
	op->parent = NULL;
	op->previous = op->next = NULL;
}

struct block *block_new(struct module *module, struct op *parent, int region)
{
	struct block *block = ARENA_NEW(module->arena, struct block);
	block->parent = parent;
	parent->region[region] = block;
	return block;
}

struct value *block_add_argument(
        struct module *module, struct block *block, const struct type *type)
{
	struct value **larger = ARENA_ARRAY(module->arena, struct value *, block->arguments + 1);
	if (block->arguments)
		memcpy(larger, block->argument, sizeof *larger * (size_t)block->arguments);
	struct value *value = value_new(module, type, block->arguments);
	value->block = block;
	larger[block->arguments++] = value;
	block->argument = larger;
	return value;
}

struct value *build(struct module *module, struct block *block, enum op_code code,
        const struct type *result, int operands, struct value *const *operand)
{
	struct location location = block->parent ? block->parent->location : NOWHERE;
	struct op *op = op_new(module, code, location, operands, operand, 1, &result);
	op_append(block, op);
	return op->result[0];
}

void ir_walk(struct block *block, void (*visit)(struct op *op, void *context), void *context)
{
	for (struct op *op = block->first, *next; op; op = next) {
		next = op->next;
		visit(op, context);
		for (int r = 0; r < 2 && op->parent; r++)
			if (op->region[r])
				ir_walk(op->region[r], visit, context);
	}
}

static void clear_arguments(const struct block *block)
{
	for (int i = 0; block && i < block->arguments; i++)
		block->argument[i]->uses = 0;
}

/* Operands are cleared too: they may be defined outside the block. */
static void clear_uses(struct op *op, void *context)
{
	(void)context;
	for (int i = 0; i < op->results; i++)
		op->result[i]->uses = 0;
	for (int i = 0; i < op->operands; i++)
		op->operand[i]->uses = 0;
	clear_arguments(op->region[0]);
	clear_arguments(op->region[1]);
}

static void add_uses(struct op *op, void *context)
{
	(void)context;
	for (int i = 0; i < op->operands; i++)
		op->operand[i]->uses++;
}

void ir_count_uses(struct block *block)
{
	clear_arguments(block);
	ir_walk(block, clear_uses, NULL);
	ir_walk(block, add_uses, NULL);
}

void ir_drop_unread_kernels(struct block *block)
{
	ir_count_uses(block);
	struct op *before;
	for (struct op *op = block->last; op; op = before) {
		before = op->previous;
		if (op->code != OP_KERNEL || op->result[0]->uses)
			continue;
		for (int j = 0; j < op->operands; j++)
			op->operand[j]->uses--;
		op_remove(op);
	}
}

struct replacement {
	const struct value *from;
	struct value *to;
};

static void replace_operands(struct op *op, void *context)
{
	const struct replacement *replacement = context;
	for (int i = 0; i < op->operands; i++)
		if (op->operand[i] == replacement->from)
			op->operand[i] = replacement->to;
}

void ir_clear_data(struct block *block)
{
	for (int i = 0; i < block->arguments; i++)
		block->argument[i]->data = NULL;
	for (struct op *op = block->first; op; op = op->next) {
		for (int r = 0; r < op->results; r++)
			op->result[r]->data = NULL;
		for (int r = 0; r < 2; r++)
			if (op->region[r])
				ir_clear_data(op->region[r]);
	}
}

void ir_replace(struct block *block, const struct value *from, struct value *to)
{
	ir_walk(block, replace_operands, &(struct replacement){ from, to });
}
