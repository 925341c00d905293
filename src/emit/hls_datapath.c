/* Emits loop nests that share one datapath as one function, which the HLS compiler builds once, and
 * a call for each nest.  Trip counts are parameters, so the function has one loop over all points
 * of the nest (hls_nest.c). */
#include "emit/hls.h"

static void add_once(struct emitter *e, struct values *values, struct value *value)
{
	for (size_t i = 0; i < values->list.count; i++)
		if (values->list.data[i] == value)
			return;
	VEC_PUSH(e->arena, &values->list, value);
}

struct gathering {
	struct emitter *e;
	struct datapath *path;
};

/* Arrays and channels, in the order of their first use. */
static void note_use(struct op *op, void *context)
{
	struct gathering *g = context;
	for (int i = 0; i < op->operands; i++) {
		enum type_kind kind = op->operand[i]->type->kind;
		if (kind == TYPE_FIFO || kind == TYPE_BLOCKS || kind == TYPE_MEMREF)
			add_once(g->e, &g->path->used, op->operand[i]);
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

static void add_marked(struct op *op, void *context)
{
	struct emitter *e = context;
	int mark = nest_datapath(op);
	if (mark >= 0)
		VEC_PUSH(e->arena, &e->datapath[mark].nests, op);
}

void hls_distances(struct emitter *e, const struct datapath *path)
{
	for (size_t i = 0; i < path->used.list.count; i++) {
		const struct value *value = path->used.list.data[i];
		int64_t distance =
		        value->def ? attr_integer_or(value->def, KEY_STREAM_DISTANCE, 0) : 0;
		if (distance && !hls_rotates(value))
			text_add(&e->body,
			        "#pragma HLS dependence variable=%s type=inter direction=RAW "
			        "distance=%lld true\n",
			        hls_spelling(e, value)->text, (long long)distance);
	}
}

void hls_datapath_uses(struct emitter *e, struct datapath *path)
{
	if (path->nests.count && !path->used.list.count)
		ir_walk(path->nests.data[0]->region[0], note_use, &(struct gathering){ e, path });
}

/* Adds the parameters for channels and arrays, and the arguments of a call. */
static void add_parameters(struct emitter *e, struct datapath *path, struct text *head)
{
	for (size_t i = 0; i < path->used.list.count; i++) {
		const struct value *value = path->used.list.data[i];
		if (hls_is_local(e, value))
			continue;
		const char *name = hls_spelling(e, value)->text;
		const char *separator = head->size ? ", " : "";
		const char *parameter = value->def ? array_parameter(e, value->type, name)
		                                   : hls_parameter(e, value->index, name);
		text_add(head, "%s%s", separator, parameter);
		text_add(&path->arguments, "%s%s", separator,
		        hls_channel_names(e, value->type, name));
	}
}

/* Adds the parameters for numbers and binds the nest's values to them; returns the spellings that
 * these values had. */
static struct spelling **bind_numbers(
        struct emitter *e, const struct nest_columns *columns, struct text *head)
{
	struct spelling **previous =
	        ARENA_ARRAY(e->arena, struct spelling *, (int)columns->parameters.count + 1);
	const char **number = ARENA_ARRAY(e->arena, const char *, (int)columns->list.count + 1);
	for (size_t c = 0; c < columns->list.count; c++) {
		number[c] = names_add(&e->names, "", text_format(e->arena, "n%zu", c));
		text_add(head, ", int %s", number[c]);
	}
	for (size_t i = 0; i < columns->parameters.count; i++) {
		struct nest_parameter parameter = columns->parameters.data[i];
		previous[i] = parameter.value->data;
		hls_bind(e, parameter.value,
		        (struct spelling){ .text = number[parameter.column], .atomic = true });
	}
	return previous;
}

/* The nest as a function of its channels, arrays and numbers. */
static void emit_function(struct emitter *e, struct datapath *path, struct op *nest)
{
	struct text body = e->body;
	struct text registers = e->registers;
	struct text head = text_new(e->arena);
	const struct nest_columns *columns = &path->columns;
	int indent = e->indent;
	int depth = e->depth;
	hls_datapath_uses(e, path);
	add_parameters(e, path, &head);
	struct spelling **previous = bind_numbers(e, columns, &head);
	e->body = text_new(e->arena);
	e->registers = text_new(e->arena);
	e->indent = 1;
	e->depth = 0;
	for (size_t i = 0; i < path->used.list.count; i++)
		if (hls_is_local(e, path->used.list.data[i]))
			hls_local_array(e, path->used.list.data[i]->def);
	struct op *loop[NEST_MOST];
	if (hls_nest(nest, loop) > 1)
		hls_one_loop(e, nest, path);
	else
		hls_loop(e, nest);
	path->name = text_format(e->arena, nest_datapath(nest) ? "%s_datapath%d" : "%s_datapath",
	        (const char *)map_get(&e->processes, attr_text_or(e->process, KEY_SYM_NAME, "")),
	        nest_datapath(nest));
	text_add(e->out, "static void %s(%s)\n{\n#pragma HLS inline off\n", path->name, head.data);
	text_add_bytes(e->out, e->registers.data, e->registers.size);
	text_add_bytes(e->out, e->body.data, e->body.size);
	text_add(e->out, "}\n\n");
	for (size_t i = 0; i < columns->parameters.count; i++)
		columns->parameters.data[i].value->data = previous[i];
	e->body = body;
	e->registers = registers;
	e->indent = indent;
	e->depth = depth;
}

void hls_datapath_begin(struct emitter *e, struct op *process)
{
	for (int mark = 0; mark < NEST_DATAPATHS_MOST; mark++)
		e->datapath[mark] = (struct datapath){ .arguments = text_new(e->arena) };
	ir_walk(process->region[0], add_marked, e);
	for (int mark = 0; mark < NEST_DATAPATHS_MOST; mark++) {
		struct datapath *path = &e->datapath[mark];
		size_t equal =
		        nest_columns(e->arena, path->nests.data, path->nests.count, &path->columns);
		if (equal < path->nests.count)
			hls_fail(e, path->nests.data[equal],
			        "is not of one datapath with those before it");
	}
}

bool hls_is_datapath(const struct emitter *e, const struct op *nest)
{
	int mark = nest_datapath(nest);
	return mark >= 0 && (e->rewinding || e->datapath[mark].nests.count > 1);
}

struct outside_use {
	const struct emitter *e;
	const struct value *array;
	bool found;
};

/* Is the array used where no shared datapath is? */
static void find_outside_use(struct op *op, void *context)
{
	struct outside_use *use = context;
	const struct op *nest = op;
	bool uses = false;
	for (int i = 0; i < op->operands; i++)
		uses |= op->operand[i] == use->array;
	while (uses && nest && nest_datapath(nest) < 0)
		nest = nest->parent ? nest->parent->parent : NULL;
	use->found |= uses && (!nest || use->e->datapath[nest_datapath(nest)].nests.count < 2);
}

bool hls_is_local(const struct emitter *e, const struct value *array)
{
	struct outside_use use = { .e = e, .array = array };
	if (!array->def || !attr_get(array->def, KEY_STREAM_LOCAL) || e->rewinding)
		return false;
	ir_walk(e->process->region[0], find_outside_use, &use);
	return !use.found;
}

size_t hls_datapath_place(const struct datapath *path, const struct op *nest)
{
	size_t at = 0;
	while (path->nests.data[at] != nest)
		at++;
	return at;
}

void hls_datapath(struct emitter *e, struct op *nest)
{
	if (e->rewinding) {
		hls_rewind_nest(e, nest);
		return;
	}
	struct datapath *path = &e->datapath[nest_datapath(nest)];
	size_t at = hls_datapath_place(path, nest);
	if (!at) {
		emit_function(e, path, nest);
		/* a call more is not a copy more */
		text_add(&e->registers, "#pragma HLS allocation function instances=%s limit=1\n",
		        path->name);
	}
	struct text call = text_new(e->arena);
	text_add(&call, "%s(%s", path->name, path->arguments.data);
	for (size_t c = 0; c < path->columns.list.count; c++)
		text_add(&call, ", %s",
		        hls_spelling(e, path->columns.list.data[c].number[at])->text);
	hls_line(e, "%s);", call.data);
}
