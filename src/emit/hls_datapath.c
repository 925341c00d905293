/* Loops that stand for one datapath are one function, called once for each of them: the vendor's compiler builds it once. */
#include "emit/hls.h"

struct uses {
	struct emitter *e;
	VEC(struct value *) value;        /* arrays and channels, in the order of their first use */
};

static void note_use(struct op *op, void *context)
{
	struct uses *uses = context;
	for (int i = 0; i < op->operands; i++) {
		struct value *value = op->operand[i];
		enum type_kind kind = value->type->kind;
		size_t known = 0;
		if (kind != TYPE_FIFO && kind != TYPE_BLOCKS && kind != TYPE_MEMREF)
			continue;
		while (known < uses->value.count && uses->value.data[known] != value)
			known++;
		if (known == uses->value.count)
			VEC_PUSH(uses->e->arena, &uses->value, value);
	}
}

static const char *array_parameter(struct emitter *e, const struct type *type, const char *name)
{
	struct text text = text_new(e->arena);
	text_add(&text, "%s %s", hls_type(e, type->element), name);
	for (int d = 0; d < type->rank; d++)
		text_add(&text, "[%lld]", (long long)type->shape[d]);
	return text.data;
}

/* The constants of the first loops that have another number in some other. */
static void find_numbers(struct emitter *e, struct op *const *nest, size_t nests, struct datapath *path)
{
	path->numbers = ARENA_ARRAY(e->arena, struct nest_numbers, nests);
	for (size_t n = 1; n < nests; n++) {
		if (!nest_match(e->arena, nest[0], nest[n], &path->numbers[n]))
			hls_fail(e, nest[n], "is not of one datapath with those before it");
		for (size_t i = 0; i < path->numbers[n].list.count; i++) {
			struct value *left = path->numbers[n].list.data[i].left;
			size_t known = 0;
			while (known < path->number.count && path->number.data[known] != left)
				known++;
			if (known == path->number.count)
				VEC_PUSH(e->arena, &path->number, left);
		}
	}
}

static struct value *number_of(const struct datapath *path, size_t nest, struct value *left)
{
	for (size_t i = 0; nest && i < path->numbers[nest].list.count; i++)
		if (path->numbers[nest].list.data[i].left == left)
			return path->numbers[nest].list.data[i].right;
	return left;
}

static void collect_marked(struct op *op, void *context)
{
	struct uses *marked = context;
	if (op->code == OP_FOR && attr_get(op, NEST_MARK))
		VEC_PUSH(marked->e->arena, &marked->e->datapath.nests, op);
}

/* The loops as a function of their channels, arrays and numbers. */
static void emit_function(struct emitter *e, struct op *nest)
{
	struct datapath *path = &e->datapath;
	struct text body = e->body, registers = e->registers, head = text_new(e->arena);
	struct spelling **kept = ARENA_ARRAY(e->arena, struct spelling *, (int)path->number.count + 1);
	int indent = e->indent, depth = e->depth;
	struct uses uses = {.e = e};
	note_use(nest, &uses);
	ir_walk(nest->region[0], note_use, &uses);
	for (size_t i = 0; i < uses.value.count; i++) {
		const struct value *value = uses.value.data[i];
		const char *name = hls_spelling(e, value)->text;
		bool channel = !value->def;
		text_add(&head, "%s%s", i ? ", " : "", channel ? hls_parameter(e, value->index, name) : array_parameter(e, value->type, name));
		text_add(&path->arguments, "%s%s", i ? ", " : "", name);
	}
	for (size_t i = 0; i < path->number.count; i++) {
		const char *name = names_add(&e->names, "", text_format(e->arena, "n%zu", i));
		kept[i] = path->number.data[i]->data;
		hls_bind(e, path->number.data[i], (struct spelling){.text = name, .atomic = true});
		text_add(&head, ", int %s", name);
	}
	e->body = text_new(e->arena);
	e->registers = text_new(e->arena);
	e->indent = 1;
	e->depth = 0;
	hls_loop(e, nest);
	if (e->registers.size)
		hls_fail(e, nest, "takes words on condition, which loops that share a datapath cannot");
	path->name = text_format(e->arena, "%s_datapath", (const char *)map_get(&e->processes, attr_text_or(e->process, "sym_name", "")));
	text_add(e->out, "static void %s(%s)\n{\n#pragma HLS inline off\n", path->name, head.data);
	text_add_bytes(e->out, e->body.data, e->body.size);
	text_add(e->out, "}\n\n");
	for (size_t i = 0; i < path->number.count; i++)
		path->number.data[i]->data = kept[i];
	e->body = body;
	e->registers = registers;
	e->indent = indent;
	e->depth = depth;
}

void hls_datapath_begin(struct emitter *e, struct op *process)
{
	struct uses marked = {.e = e};
	e->datapath = (struct datapath){.arguments = text_new(e->arena)};
	ir_walk(process->region[0], collect_marked, &marked);
	if (e->datapath.nests.count > 1)
		find_numbers(e, e->datapath.nests.data, e->datapath.nests.count, &e->datapath);
}

void hls_datapath(struct emitter *e, struct op *nest)
{
	struct datapath *path = &e->datapath;
	size_t at = 0;
	while (path->nests.data[at] != nest)
		at++;
	if (!at)
		emit_function(e, nest);
	struct text call = text_new(e->arena);
	text_add(&call, "%s(%s", path->name, path->arguments.data);
	for (size_t i = 0; i < path->number.count; i++)
		text_add(&call, ", %s", hls_spelling(e, number_of(path, at, path->number.data[i]))->text);
	hls_line(e, "%s);", call.data);
}
