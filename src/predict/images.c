/* Finds the channels from which results are stored, and checks that they come image by image. */
#include "predict/images.h"
#include "predict/timing.h"

#define NEST_MOST 16
/* Part of the least interval: results that follow each other faster wait for others.  Those of the
 * first images of a launch come a little faster than later ones. */
#define FOLLOWING 0.7

/* A loop nest of a process that stores results. */
struct store_nest {
	const struct op *loop[NEST_MOST]; /* outermost first */
	int loops;
	int64_t factor[NEST_MOST]; /* of each counter in the address */
	bool other;                /* the address has a term that is not linear */
};

struct image_search {
	struct arena *arena;
	const struct op *main, *call;
	const struct block *entry; /* of the process that is called */
	struct image_channels *found;
	bool in_order;
};

int64_t images_of(const struct module *module)
{
	int64_t images = attr_integer_or(module_main(module), KEY_STREAM_IMAGES, 0);
	return images > 0 ? images : 0;
}

struct image_times image_times_of(
        struct image_times found, int64_t images, int64_t cycles, int64_t busiest)
{
	int64_t least = busiest / images;
	if ((double)found.interval < FOLLOWING * (double)least)
		return (struct image_times){ found.first, cycles / images, true };
	found.interval = found.interval > least ? found.interval : least;
	return found;
}

static void add_terms(struct store_nest *nest, const struct value *value, int64_t factor)
{
	const struct op *def = value->def;
	const struct attr *map = def && def->code == OP_APPLY ? attr_get(def, KEY_MAP) : NULL;
	for (int i = 0; !def && i < nest->loops; i++)
		nest->factor[i] += value == nest->loop[i]->region[0]->argument[0] ? factor : 0;
	nest->other |= def && !map && def->code != OP_CONSTANT;
	for (int i = 0; map && i < def->operands; i++)
		add_terms(nest, def->operand[i], factor * affine_at(map->map, 0, i));
}

/* Is each address above those before? */
static bool is_rising(const struct store_nest *nest)
{
	int64_t inside = 0; /* the farthest that inner loops go */
	for (int i = nest->loops - 1; i >= 0; i--) {
		int64_t trips = timing_trips(nest->loop[i], 0, NULL);
		if (trips > 1 && nest->factor[i] <= inside)
			return false;
		inside += nest->factor[i] * (trips - 1);
	}
	return !nest->other;
}

static int channel_number(const struct image_search *search, const struct value *argument)
{
	const struct value *channel = search->call->operand[argument->index];
	int number = 0;
	for (const struct op *op = search->main->region[0]->first; op; op = op->next) {
		if (op == channel->def)
			return number;
		number += op->code == OP_FIFO || op->code == OP_BLOCK_CHANNEL;
	}
	return -1;
}

static bool is_true(const struct value *condition)
{
	const struct attr *value = condition->def && condition->def->code == OP_CONSTANT
	        ? attr_get(condition->def, KEY_VALUE)
	        : NULL;
	return value && value->integer;
}

/* The channels that are read in the body with the store, every time. */
static void add_channels(struct image_search *search, const struct block *body, int64_t times)
{
	int read = 0;
	for (const struct op *op = body->first; op; op = op->next) {
		if (op->code != OP_POP)
			continue;
		const struct value *channel = op_accessed(op);
		search->in_order &= is_true(op->operand[0]) && channel->block == search->entry;
		if (!search->in_order)
			return;
		search->found->channel[search->found->count++] =
		        (struct image_channel){ channel_number(search, channel), times };
		read++;
	}
	search->in_order &= read == 1;
}

static void visit_store(struct op *op, void *context)
{
	struct image_search *search = context;
	struct store_nest nest = { .loops = 0 };
	const struct op *inner[NEST_MOST];
	int64_t times = 1;
	search->in_order &= op->code != OP_WRITE;
	if (op->code != OP_MEMREF_STORE || !type_is_port(op->operand[op_access(op)]->type))
		return;
	int count = 0;
	for (const struct op *at = op->parent->parent;
	        at && at->code == OP_FOR && count < NEST_MOST; at = at->parent->parent)
		inner[count++] = at;
	for (int i = count - 1; i >= 0; i--) {
		nest.loop[nest.loops++] = inner[i];
		times *= timing_trips(inner[i], 0, NULL);
	}
	add_terms(&nest, op->operand[op_access(op) + 1], 1);
	search->in_order &= op_access(op) == 1 && count < NEST_MOST && is_rising(&nest);
	if (search->in_order)
		add_channels(search, op->parent, times);
}

static bool holds_results(const struct op *main, const struct value *port)
{
	const struct attr *buffer = function_argument_attr(main, port->index, KEY_STREAM_BUFFER);
	const struct attr *image =
	        buffer ? attr_entry(attr_get(main, KEY_STREAM_BUFFERS), buffer->text) : NULL;
	const struct attr *segments = attr_item(image, KEY_SEGMENTS);
	return segments && segments->count &&
	        text_same(attr_item_text(segments->items[0].value, KEY_ROLE), "output");
}

static bool stores_results(const struct op *main, const struct op *call)
{
	for (int i = 0; i < call->operands; i++)
		if (!call->operand[i]->def && holds_results(main, call->operand[i]))
			return true;
	return false;
}

static void count_pops(struct op *op, void *count)
{
	*(int *)count += op->code == OP_POP;
}

struct image_channels image_channels_of(struct arena *arena, const struct module *module)
{
	const struct op *main = module_main(module);
	struct image_channels found = { .images = images_of(module) };
	struct image_search search = {
		.arena = arena, .main = main, .found = &found, .in_order = true
	};
	int pops = 0;
	ir_walk(module_body(module), count_pops, &pops);
	found.channel = ARENA_ARRAY(arena, struct image_channel, pops + 1);
	for (const struct op *op = main->region[0]->first; op && found.images > 1; op = op->next) {
		if (op->code != OP_CALL || !stores_results(main, op))
			continue;
		const struct op *process = module_find(module, attr_text_or(op, KEY_CALLEE, ""));
		search.call = op;
		search.entry = process->region[0];
		ir_walk(process->region[0], visit_store, &search);
	}
	for (int i = 0; i < found.count; i++)
		search.in_order &=
		        found.channel[i].channel >= 0 && found.channel[i].words >= found.images;
	if (!search.in_order || !found.count)
		found.images = 0;
	return found;
}
