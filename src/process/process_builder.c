/* Builds processes op by op: functions of the hardware level, called once by main. */
#include "process/process_builder.h"

static const struct type *bool_type(struct process *p)
{
	return type_integer(p->module, 1);
}

/* Is there more than one contraction outside of all layers? One may use the results of another,
 * whose words must then leave the pipeline even if no others follow. */
static bool has_several_contractions(const struct block *main)
{
	int contractions = 0;
	for (const struct op *op = main->first; op; op = op->next)
		contractions += op->code == OP_CONTRACT;
	return contractions > 1;
}

struct process process_new(struct design *design, const char *name)
{
	struct module *module = design->module;
	struct process p = {
		.design = design, .module = module, .constants = map_new(module->arena)
	};
	p.function = op_new(module, OP_FUNC, NOWHERE, 0, NULL, 0, NULL);
	p.entry = p.block = block_new(module, p.function, 0);
	attr_set(module, p.function, KEY_SYM_NAME,
	        attr_string(module, text_format(module->arena, "p%d_%s", design->serial++, name)));
	attr_set(module, p.function, KEY_SYM_VISIBILITY, attr_string(module, "private"));
	attr_set(module, p.function, KEY_STREAM_PROCESS, attr_unit(module));
	attr_set(module, p.function, KEY_STREAM_STYLE,
	        attr_string(module,
	                design->layers || has_several_contractions(design->source->region[0])
	                        ? "flp"
	                        : "stp"));
	attr_set(module, p.function, KEY_STREAM_DIE, attr_integer(module, 0));
	if (design->layers)
		attr_set(module, p.function, KEY_STREAM_LAYERS,
		        attr_integer(module, design->layers));
	process_last_chunk(&p); /* process_finish closes its loop */
	return p;
}

struct value *process_argument(struct process *p, struct value *channel, const char *name)
{
	struct module *module = p->module;
	struct named item = { key_name(KEY_STREAM_NAME), attr_string(module, name) };
	VEC_PUSH(module->arena, &p->channel, channel);
	VEC_PUSH(module->arena, &p->argument_attrs, attr_dictionary(module, 1, &item));
	return block_add_argument(module, p->entry, channel->type);
}

void process_finish(struct process *p)
{
	struct module *module = p->module;
	while (p->block != p->entry)
		process_close(p, 1);
	op_append(p->entry, op_new(module, OP_RETURN, NOWHERE, 0, NULL, 0, NULL));
	const struct type **types =
	        ARENA_ARRAY(module->arena, const struct type *, p->channel.count + 1);
	for (size_t i = 0; i < p->channel.count; i++)
		types[i] = p->channel.data[i]->type;
	attr_set(module, p->function, KEY_FUNCTION_TYPE,
	        attr_type(module, type_function(module, (int)p->channel.count, types, 0, NULL)));
	attr_set(module, p->function, KEY_ARG_ATTRS,
	        attr_array(module, (int)p->argument_attrs.count, p->argument_attrs.data));
	op_append(module_body(module), p->function);
	struct op *call =
	        op_new(module, OP_CALL, NOWHERE, (int)p->channel.count, p->channel.data, 0, NULL);
	attr_set(module, call, KEY_CALLEE,
	        attr_symbol(module, attr_text_or(p->function, KEY_SYM_NAME, "")));
	op_append(p->design->block, call);
}

struct value *process_token_count(struct process *p, const struct launch_tokens *rows)
{
	struct value *count[2] = { rows->tiles ? process_trip_count(p, rows->tiles, 1)
		                               : make_index(p, rows->most / rows->tile),
		rows->each ? process_trip_count(p, rows->each, 1) : make_index(p, rows->tile) };
	const int64_t step[2] = { rows->tile, 1 };
	return make_address(p, 2, count, step, -rows->tile);
}

struct value *process_loop(struct process *p, int64_t trips)
{
	return process_loop_run_time(p, trips, NULL);
}

struct value *process_loop_run_time(
        struct process *p, int64_t trips, const struct run_time_trip *run_time)
{
	int64_t times = run_time ? trips / run_time->most : 1;
	struct value *counter = process_loop_value(
	        p, run_time ? process_trip_count(p, run_time, times) : make_index(p, trips));
	if (run_time)
		attr_set(p->module, p->block->parent, KEY_STREAM_RUN_TIME,
		        run_time_attr(p->module, run_time, times));
	return counter;
}

struct value *process_loop_value(struct process *p, struct value *trips)
{
	struct value *bounds[3] = { make_index(p, 0), trips, make_index(p, 1) };
	struct op *loop = op_new(p->module, OP_FOR, NOWHERE, 3, bounds, 0, NULL);
	op_append(p->block, loop);
	p->block = block_new(p->module, loop, 0);
	return block_add_argument(p->module, p->block, type_index(p->module));
}

int process_last_chunk(struct process *p)
{
	const struct run_time_trip *last_chunk = p->design->last_chunk;
	if (last_chunk)
		process_loop_run_time(p, 1, last_chunk);
	return last_chunk != NULL;
}

void process_mark(struct process *p, enum attr_key key)
{
	attr_set(p->module, p->block->parent, key, attr_unit(p->module));
}

void process_pipeline(struct process *p, int interval)
{
	attr_set(p->module, p->block->parent, KEY_STREAM_PIPELINE,
	        attr_integer(p->module, interval));
}

void process_close(struct process *p, int loops)
{
	for (int i = 0; i < loops; i++) {
		op_append(p->block, op_new(p->module, OP_YIELD, NOWHERE, 0, NULL, 0, NULL));
		p->block = p->block->parent->parent;
	}
}

void process_layers(struct process *p)
{
	if (!p->design->layers)
		return;
	p->layer = process_loop(p, p->design->layers);
	p->rolled++;
	process_mark(p, KEY_STREAM_LAYER);
}

int process_nest(
        struct process *p, int dims, const int64_t *trip, int interval, struct value **counter)
{
	return process_nest_run_time(
	        p, (struct loop_bounds){ dims, trip, NULL }, interval, counter);
}

int process_nest_run_time(
        struct process *p, struct loop_bounds bounds, int interval, struct value **counter)
{
	int opened = 0;
	for (int i = 0; i < bounds.loops; i++) {
		const struct run_time_trip *to = bounds.run_time ? bounds.run_time[i] : NULL;
		bool loop = to || bounds.trip[i] > 1;
		counter[i] = loop ? process_loop_run_time(p, bounds.trip[i], to) : NULL;
		opened += loop;
	}
	if (!opened) {
		process_loop(p, 1);
		opened = 1;
	}
	process_pipeline(p, interval);
	return opened;
}

int process_word_loops(struct process *p, const struct type *stream)
{
	const struct itensor *order = stream->itensor;
	int64_t fixed = itensor_tiles(order);
	int opened = 0;
	for (int i = 0; order->run_time && i < order->dims; i++)
		fixed /= order->run_time[i] ? order->trip[i] : 1;
	for (int i = 0; order->run_time && i < order->dims; i++) {
		if (!order->run_time[i])
			continue;
		process_loop_run_time(p, order->trip[i] * (opened ? 1 : fixed), order->run_time[i]);
		opened++;
	}
	if (!opened) {
		process_loop(p, fixed);
		opened = 1;
	}
	return opened;
}

int process_word_pipeline(struct process *p, const struct type *stream)
{
	int opened = process_word_loops(p, stream);
	process_pipeline(p, 1);
	return opened;
}

struct value *make_op(struct process *p, enum op_code code, const struct type *type, int operands,
        struct value *const *operand)
{
	return build(p->module, p->block, code, type, operands, operand);
}

/* Constants and arrays are made once, at the head of the process. */
static void at_head(struct process *p, struct op *op)
{
	if (p->entry->first)
		op_insert_before(p->entry->first, op);
	else
		op_append(p->entry, op);
}

static struct value *own_constant(
        struct process *p, const struct type *type, const struct attr *value)
{
	struct op *op = op_new(p->module, OP_CONSTANT, NOWHERE, 0, NULL, 1, &type);
	attr_set(p->module, op, KEY_VALUE, value);
	at_head(p, op);
	return op->result[0];
}

static struct value *make_constant(
        struct process *p, const char *key, const struct type *type, const struct attr *value)
{
	struct value *known = map_get(&p->constants, key);
	if (known)
		return known;
	struct value *constant = own_constant(p, type, value);
	map_set(&p->constants, key, constant);
	return constant;
}

struct value *make_index(struct process *p, int64_t number)
{
	const struct type *index = type_index(p->module);
	return make_constant(p, text_format(p->module->arena, "%lld", (long long)number), index,
	        attr_typed_integer(p->module, number, index));
}

struct value *make_unshared_index(struct process *p, int64_t number)
{
	const struct type *index = type_index(p->module);
	return own_constant(p, index, attr_typed_integer(p->module, number, index));
}

struct value *make_bool(struct process *p, bool value)
{
	return make_constant(
	        p, value ? "true" : "false", bool_type(p), attr_bool(p->module, value));
}

struct value *make_number(struct process *p, double number, const struct type *type)
{
	const struct type *scalar = type_scalar(type);
	const struct attr *value = type_is_real(scalar)
	        ? attr_float(p->module, number, scalar)
	        : attr_typed_integer(p->module, kernel_init_integer(number), scalar);
	struct value *constant = make_constant(
	        p, text_format(p->module->arena, "%a:%s", number, scalar->text), scalar, value);
	return type == scalar ? constant : make_op(p, OP_BROADCAST, type, 1, &constant);
}

struct value *make_integer(struct process *p, int64_t number, const struct type *type)
{
	const struct type *scalar = type_scalar(type);
	struct value *constant;
	if (kernel_init_integer((double)number) == number)
		return make_number(p, (double)number, type);
	constant = make_constant(p,
	        text_format(p->module->arena, "%lld:%s", (long long)number, scalar->text), scalar,
	        attr_typed_integer(p->module, number, scalar));
	return type == scalar ? constant : make_op(p, OP_BROADCAST, type, 1, &constant);
}

static struct value *make_comparison(
        struct process *p, int predicate, struct value *index, struct value *other)
{
	struct value *operand[2] = { index, other };
	struct value *result = make_op(p, OP_CMPI, bool_type(p), 2, operand);
	attr_set(p->module, result->def, KEY_PREDICATE, attr_integer(p->module, predicate));
	return result;
}

struct value *make_compare(struct process *p, int predicate, struct value *index, int64_t number)
{
	return make_comparison(p, predicate, index, make_index(p, number));
}

struct value *make_equal_values(struct process *p, struct value *index, struct value *other)
{
	return make_comparison(p, 0, index, other);
}

struct value *make_not_equal(struct process *p, struct value *index, struct value *other)
{
	return make_comparison(p, 1, index, other);
}

struct value *make_below(struct process *p, struct value *index, struct value *other)
{
	return make_comparison(p, 2, index, other);
}

struct value *make_equal(struct process *p, struct value *index, int64_t number)
{
	return make_compare(p, 0, index, number);
}

struct value *make_and(struct process *p, struct value *left, struct value *right)
{
	if (!left || !right)
		return left ? left : right;
	struct value *operand[2] = { left, right };
	return make_op(p, OP_ANDI, bool_type(p), 2, operand);
}

struct value *make_condition(struct process *p, struct value *condition)
{
	return condition ? condition : make_bool(p, true);
}

struct value *make_select(
        struct process *p, struct value *when, struct value *yes, struct value *no)
{
	struct value *operand[3] = { when, yes, no };
	return make_op(p, OP_SELECT, yes->type, 3, operand);
}

struct value *make_address(struct process *p, int dims, struct value *const *counter,
        const int64_t *stride, int64_t offset)
{
	struct value **used = ARENA_ARRAY(p->module->arena, struct value *, dims + 1);
	int64_t *row = affine_rows(p->module->arena, dims, 1);
	int count = 0;
	for (int i = 0; i < dims; i++) {
		if (!counter[i] || !stride[i])
			continue;
		row[count] = stride[i];
		used[count++] = counter[i];
	}
	row[count] = offset;
	if (!count)
		return make_index(p, offset);
	if (count == 1 && row[0] == 1 && !offset)
		return used[0];
	struct value *address = make_op(p, OP_APPLY, type_index(p->module), count, used);
	attr_set(p->module, address->def, KEY_MAP,
	        attr_map(p->module,
	                (struct affine_map){ .dims = count, .results = 1, .coefficient = row }));
	return address;
}

struct value *make_divided(struct process *p, enum op_code code, struct value *number, int64_t by)
{
	struct value *operand[2] = { number, make_index(p, by) };
	return make_op(p, code, type_index(p->module), 2, operand);
}

struct value *make_clamped(struct process *p, struct value *number, int64_t limit)
{
	const struct type *index = type_index(p->module);
	if (number->type != index)
		number = make_op(p, OP_INDEX_CAST, index, 1, &number);
	struct value *low[2] = { number, make_index(p, 0) };
	struct value *high[2] = { make_op(p, OP_MAXSI, index, 2, low), make_index(p, limit - 1) };
	return make_op(p, OP_MINSI, index, 2, high);
}

struct value *make_pop(struct process *p, struct value *when, struct value *fifo)
{
	struct value *operand[2] = { make_condition(p, when), fifo };
	return make_op(p, OP_POP, fifo->type->element, 2, operand);
}

void make_push(struct process *p, struct value *when, struct value *word, struct value *fifo)
{
	struct value *operand[3] = { make_condition(p, when), word, fifo };
	op_append(p->block, op_new(p->module, OP_PUSH, NOWHERE, 3, operand, 0, NULL));
}

struct value *make_array(struct process *p, const char *name, int64_t size,
        const struct type *element, int64_t partition)
{
	const struct type *type = type_shaped(p->module, TYPE_MEMREF, 1, &size, element);
	struct op *array = op_new(p->module, OP_ALLOCA, NOWHERE, 0, NULL, 1, &type);
	at_head(p, array);
	attr_set(p->module, array, KEY_STREAM_NAME, attr_string(p->module, name));
	if (partition > 1)
		attr_set(
		        p->module, array, KEY_STREAM_PARTITION, attr_integer(p->module, partition));
	return array->result[0];
}

struct value *make_load(struct process *p, struct value *array, struct value *index)
{
	struct value *operand[2] = { array, index };
	return make_op(p, OP_MEMREF_LOAD, array->type->element, 2, operand);
}

void make_store(struct process *p, struct value *word, struct value *array, struct value *index)
{
	struct value *operand[3] = { word, array, index };
	op_append(p->block, op_new(p->module, OP_MEMREF_STORE, NOWHERE, 3, operand, 0, NULL));
}

void make_write(struct process *p, struct value *when, struct value *word, struct value *port,
        struct value *address)
{
	struct value *operand[4] = { make_condition(p, when), word, port, address };
	op_append(p->block, op_new(p->module, OP_WRITE, NOWHERE, 4, operand, 0, NULL));
}

/* inside: condition for a word to be popped; NULL: always */
static void widen_words(struct process *p, struct value *inside, struct value *from,
        struct value *to, struct value *part)
{
	int64_t parts = type_lanes(to->type->element) / type_lanes(from->type->element);
	struct value *word = make_pop(p, inside, from);
	struct value *array = make_array(p, "parts", parts, from->type->element, parts);
	struct value **joined = ARENA_ARRAY(p->module->arena, struct value *, parts);
	make_store(p, word, array, part);
	for (int64_t i = 0; i < parts - 1; i++)
		joined[i] = make_load(p, array, make_index(p, i));
	joined[parts - 1] = word;
	make_push(p, make_equal(p, part, parts - 1),
	        make_op(p, OP_JOIN_LANES, to->type->element, (int)parts, joined), to);
}

static void narrow_words(
        struct process *p, struct value *from, struct value *to, struct value *part)
{
	struct value *operand[2] = { make_pop(p, make_equal(p, part, 0), from), part };
	make_push(p, NULL, make_op(p, OP_SPLIT_LANES, to->type->element, 2, operand), to);
}

void add_cast(struct design *design, const char *name, struct value *from, struct value *to,
        const struct type *stream)
{
	int64_t narrow = type_lanes(from->type->element);
	int64_t wide = type_lanes(to->type->element);
	bool widens = narrow < wide;
	int64_t parts = widens ? wide / narrow : narrow / wide;
	int64_t words = itensor_tiles(stream->itensor);
	struct process p = process_new(design, name);
	struct value *in = process_argument(&p, from, "x");
	struct value *out = process_argument(&p, to, "y");
	process_layers(&p);
	int opened = stream->itensor->run_time || words > 1 ? process_word_loops(&p, stream) : 0;
	struct value *part = process_loop(&p, parts);
	process_pipeline(&p, 1);
	if (widens)
		widen_words(&p, NULL, in, out, part);
	else
		narrow_words(&p, in, out, part);
	process_close(&p, opened + 1 + (design->layers > 0));
	process_finish(&p);
}

void add_pack(struct design *design, struct value *from, struct value *to, int64_t words)
{
	int64_t parts = type_lanes(to->type->element) / type_lanes(from->type->element);
	int64_t wide = (words + parts - 1) / parts;
	struct process p = process_new(design, "pack");
	struct value *in = process_argument(&p, from, "x");
	struct value *out = process_argument(&p, to, "y");
	process_layers(&p);
	struct value *counter[2] = { process_loop(&p, wide), process_loop(&p, parts) };
	const int64_t pitch[2] = { parts, 1 };
	process_pipeline(&p, 1);
	struct value *inside = NULL;
	if (words % parts)
		inside = make_compare(&p, 2, make_address(&p, 2, counter, pitch, 0), words);
	widen_words(&p, inside, in, out, counter[1]);
	process_close(&p, 2 + (design->layers > 0));
	process_finish(&p);
}
