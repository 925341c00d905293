/* Names each converter's writer and readers, and finds what would make it unnecessary. */
#include "ir/converter.h"
#include "streams/explain_converters.h"
#include "itensor/itensor.h"
#include "streams/stream_builder.h"

struct reader_names {
	struct arena *arena;
	VEC(const char *) name;
};

int64_t converter_bytes(const struct op *convert)
{
	int64_t elements = attr_integer_or(convert, KEY_BUFFER_ELEMENTS, 0) *
	        attr_integer_or(convert, KEY_HALVES, 1);
	return elements * ((type_bits(type_scalar(convert->result[0]->type)) + 7) / 8);
}

static bool passes_on(const struct op *op)
{
	return op->code == OP_CAST || op->code == OP_FORK || op->code == OP_CHUNK ||
	        op->code == OP_REASSOCIATE;
}

static const char *op_name(const struct op *op)
{
	return op->code == OP_KERNEL ? op->kernel->name
	                             : op_info[op->code].name + sizeof "stream." - 1;
}

/* A load is named after the input that it reads. */
static const char *load_name(const struct module *module, const struct op *load)
{
	const struct attr *inputs = attr_get(module_main(module), KEY_STREAM_INPUTS);
	const struct value *from = load->operand[load->operands - 1];
	const struct attr *name = inputs && !from->def && from->index < inputs->count
	        ? attr_item(inputs->items[from->index].value, KEY_NAME)
	        : NULL;
	return name ? name->text : op_name(load);
}

static const char *writer_name(const struct module *module, const struct value *stream)
{
	while (stream->def && passes_on(stream->def))
		stream = stream->def->operand[0];
	if (!stream->def)
		return "the previous layer";
	if (stream->def->code == OP_LOAD)
		return load_name(module, stream->def);
	return stream->def->code == OP_FOR ? "the last layer" : op_name(stream->def);
}

static void find_readers(struct op *op, void *context)
{
	struct reader_names *scratch = context;
	for (int j = 0; j < op->operands && !passes_on(op); j++) {
		const struct op *def = op->operand[j]->def;
		while (def && passes_on(def))
			def = def->operand[0]->def;
		if (!def || def->code != OP_CONVERT)
			continue;
		struct reader_names *readers = def->result[0]->data
		        ? def->result[0]->data
		        : ARENA_NEW(scratch->arena, struct reader_names);
		def->result[0]->data = readers;
		VEC_PUSH(scratch->arena, &readers->name, op_name(op));
	}
}

static struct walk element_walk(struct arena *arena, const struct type *type)
{
	struct walk walk = itensor_walk(arena, type);
	struct walk all = {
		.scalar = walk.scalar, .rank = walk.rank, .offset = walk.offset, .loops = walk.loops
	};
	all.tile = ARENA_ARRAY(arena, int64_t, walk.rank + 1);
	all.trip = ARENA_ARRAY(arena, int64_t, walk.loops + walk.rank + 1);
	all.vector = ARENA_ARRAY(arena, int64_t, (walk.loops + walk.rank + 1) * (walk.rank + 1));
	for (int i = 0; i < walk.loops * walk.rank; i++)
		all.vector[i] = walk.vector[i];
	for (int l = 0; l < walk.loops; l++)
		all.trip[l] = walk.trip[l];
	for (int r = 0; r < walk.rank; r++) {
		all.tile[r] = 1;
		all.vector[all.loops * walk.rank + r] = 1;
		all.trip[all.loops++] = walk.tile[r];
	}
	return walk_normal(arena, all);
}

static bool is_replay_loop(const struct walk *walk, int loop)
{
	for (int r = 0; r < walk->rank; r++)
		if (walk->vector[loop * walk->rank + r])
			return false;
	return true;
}

/* What would avoid the converter: the first loops that differ between both orders say it. */
static const char *remedy(struct arena *arena, const struct op *convert, const char *writer)
{
	struct walk from = element_walk(arena, convert->operand[0]->type);
	struct walk to = element_walk(arena, convert->result[0]->type);
	int l = 0;
	while (l < from.loops && l < to.loops && from.rank == to.rank &&
	        from.trip[l] == to.trip[l] && !is_replay_loop(&to, l))
		l++;
	if (l < to.loops && is_replay_loop(&to, l))
		return text_format(arena,
		        "a reader that uses each word once: its loop %d, of %lld trips, re-reads "
		        "everything inside it",
		        l, (long long)to.trip[l]);
	if (from.rank != to.rank)
		return "a reader whose loops are split at the writer's tile boundaries";
	return text_format(arena,
	        "the same loop order on both sides from loop %d on: change that of %s or of its "
	        "readers",
	        l, writer);
}

struct explanation {
	struct module *module;
	VEC(const struct attr *) list;
};

static const struct attr *names_of(struct module *module, const struct reader_names *readers)
{
	size_t count = readers ? readers->name.count : 0;
	const struct attr **name = ARENA_ARRAY(module->arena, const struct attr *, count + 1);
	for (size_t i = 0; i < count; i++)
		name[i] = attr_string(module, readers->name.data[i]);
	return attr_array(module, (int)count, name);
}

static void add_explanation(struct op *op, void *context)
{
	struct explanation *all = context;
	struct module *module = all->module;
	if (op->code != OP_CONVERT)
		return;
	const char *writer = writer_name(module, op->operand[0]);
	struct named items[] = {
		{ key_name(KEY_WRITER), attr_string(module, writer) },
		{ key_name(KEY_READERS), names_of(module, op->result[0]->data) },
		{ key_name(KEY_FROM), attr_string(module, op->operand[0]->type->text) },
		{ key_name(KEY_TO), attr_string(module, op->result[0]->type->text) },
		{ key_name(KEY_BYTES), attr_integer(module, converter_bytes(op)) },
		{ key_name(KEY_SPILLED),
		        attr_bool(module, converter_form(op) == CONVERTER_SPILLED) },
		{ key_name(KEY_AVOIDED_BY),
		        attr_string(module, remedy(module->arena, op, writer)) },
	};
	VEC_PUSH(module->arena, &all->list,
	        attr_dictionary(module, sizeof items / sizeof *items, items));
}

void explain_converters(struct module *module)
{
	struct op *main = module_main(module);
	struct reader_names scratch = { .arena = module->arena };
	struct explanation all = { .module = module };
	ir_clear_data(main->region[0]);
	ir_walk(main->region[0], find_readers, &scratch);
	ir_walk(main->region[0], add_explanation, &all);
	attr_set(module, main, KEY_STREAM_CONVERTERS,
	        attr_array(module, (int)all.list.count, all.list.data));
}
