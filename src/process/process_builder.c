/* Builds processes op by op: functions of the hardware level, called once by main. */
#include "process/operation_builder.h"
#include "ir/workload.h"

/* Is there more than one contraction outside of all layers? One may use the results of another,
 * whose words must then leave the pipeline even if no others follow. Beside an engine kernels do
 * not count. */
static bool has_several_contractions(const struct op *main)
{
	bool engine = workload_of(main) != WORKLOAD_NONE;
	int contractions = 0;
	for (const struct op *op = main->region[0]->first; op; op = op->next)
		contractions += op->code == OP_CONTRACT ||
		        (!engine && op->code == OP_KERNEL && kernel_has_reduction(op->kernel) &&
		                kernel_shares_operands(op->kernel, op->operands));
	return contractions > 1;
}

struct process process_new(struct design *design, const char *name)
{
	struct module *module = design->module;
	struct process p = { .design = design,
		.module = module,
		.location = design->location,
		.constants = map_new(module->arena) };
	p.function = op_new(module, OP_FUNC, NOWHERE, 0, NULL, 0, NULL);
	p.entry = p.block = block_new(module, p.function, 0);
	attr_set(module, p.function, KEY_SYM_NAME,
	        attr_string(module, text_format(module->arena, "p%d_%s", design->serial++, name)));
	attr_set(module, p.function, KEY_SYM_VISIBILITY, attr_string(module, "private"));
	attr_set(module, p.function, KEY_STREAM_PROCESS, attr_unit(module));
	attr_set(module, p.function, KEY_STREAM_STYLE,
	        attr_string(module,
	                design->layers || has_several_contractions(design->source) ? "flp"
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
	struct op *call = op_new(
	        module, OP_CALL, p->location, (int)p->channel.count, p->channel.data, 0, NULL);
	attr_set(module, call, KEY_CALLEE,
	        attr_symbol(module, attr_text_or(p->function, KEY_SYM_NAME, "")));
	op_append(p->design->block, call);
}

struct value *process_token_count(struct process *p, const struct launch_tokens *rows)
{
	struct value *count[2];
	count[0] = rows->tiles ? process_trip_count(p, rows->tiles, 1)
	                       : make_index(p, rows->most / rows->tile);
	count[1] = rows->each ? process_trip_count(p, rows->each, 1) : make_index(p, rows->tile);
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
	struct value *bounds[3] = { make_index(p, 0), trips };
	bounds[2] = make_index(p, 1);
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
	struct value *whole = make_op(p, OP_JOIN_LANES, to->type->element, (int)parts, joined);
	make_push(p, make_equal(p, part, parts - 1), whole, to);
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
	struct value *counter[2] = { process_loop(&p, wide) };
	counter[1] = process_loop(&p, parts);
	const int64_t pitch[2] = { parts, 1 };
	process_pipeline(&p, 1);
	struct value *inside = NULL;
	if (words % parts)
		inside = make_compare(&p, CMPI_SLT, make_address(&p, 2, counter, pitch, 0), words);
	widen_words(&p, inside, in, out, counter[1]);
	process_close(&p, 2 + (design->layers > 0));
	process_finish(&p);
}
