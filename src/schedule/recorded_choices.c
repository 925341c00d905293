/* Writes the parallelism and the schedule of a kernel as attributes, and reads them back:
 *
 *     parallelism = {lanes = 64, operand = 1, ports = 4}
 *     schedule = {loops = [[1, 8, 16], [2, 512, 1], [0, 64, 1], [1, 16, 1]], lanes = 16}
 *
 * An item of `loops` is [loop of the kernel, trip count, step of its counter], outermost first. */
#include "schedule/recorded_choices.h"
#include "ir/kernel_edit.h"

void record_parallelism(struct module *module, struct op *op, const struct parallelism *parallelism)
{
	int64_t peer[KERNEL_OPERANDS];
	int peers = 0;
	for (int j = 0; j < KERNEL_OPERANDS; j++)
		if (parallelism->peers >> j & 1)
			peer[peers++] = j;
	const struct named items[] = {
		{ key_name(KEY_LANES), attr_integer(module, parallelism->lanes) },
		{ key_name(KEY_OPERAND), attr_integer(module, parallelism->bulk) },
		{ key_name(KEY_PORTS), attr_integer(module, parallelism->ports) },
		{ key_name(KEY_PEERS), attr_integers(module, peers, peer) },
	};
	int count = parallelism->bulk < 0 ? 1 : 3 + (peers > 0);
	attr_set(module, op, KEY_PARALLELISM, attr_dictionary(module, count, items));
}

struct parallelism recorded_parallelism(const struct op *op)
{
	const struct attr *attr = attr_get(op, KEY_PARALLELISM);
	const struct attr *peers = attr_item(attr, KEY_PEERS);
	struct parallelism parallelism = { .lanes = attr_item_integer(attr, KEY_LANES, 1),
		.bulk = (int)attr_item_integer(attr, KEY_OPERAND, -1),
		.ports = (int)attr_item_integer(attr, KEY_PORTS, 1) };
	for (int i = 0; peers && i < peers->count; i++)
		parallelism.peers |= 1u << peers->integers[i];
	return parallelism;
}

int operands_with_ports(int bulk, uint32_t peers)
{
	int operands = bulk >= 0;
	for (; peers; peers &= peers - 1)
		operands++;
	return operands;
}

static void record_as(
        struct module *module, struct op *op, enum attr_key key, const struct schedule *schedule)
{
	struct named items[6];
	int count = 0;
	const struct attr **part =
	        ARENA_ARRAY(module->arena, const struct attr *, schedule->parts + 1);
	for (int i = 0; i < schedule->parts; i++)
		part[i] = attr_integers(module, 3,
		        (const int64_t[]){ schedule->part[i].source, schedule->part[i].trip,
		                schedule->part[i].step });
	items[count++] =
	        (struct named){ key_name(KEY_LOOPS), attr_array(module, schedule->parts, part) };
	items[count++] =
	        (struct named){ key_name(KEY_LANES), attr_integer(module, schedule->lanes) };
	if (schedule->row_unroll > 1)
		items[count++] = (struct named){ key_name(KEY_ROW_UNROLL),
			attr_integer(module, schedule->row_unroll) };
	if (schedule->padded)
		items[count++] = (struct named){ key_name(KEY_PADDED), attr_unit(module) };
	if (schedule->held)
		items[count++] = (struct named){ key_name(KEY_HELD),
			attr_integers(module, op->operands, schedule->held) };
	if (schedule->ports)
		items[count++] = (struct named){ key_name(KEY_PORTS),
			attr_integers(module, op->operands, schedule->ports) };
	attr_set(module, op, key, attr_dictionary(module, count, items));
}

void record_schedule(struct module *module, struct op *op, const struct schedule *schedule)
{
	record_as(module, op, KEY_SCHEDULE, schedule);
}

void record_register_tile(struct module *module, struct op *op, const struct schedule *schedule)
{
	record_as(module, op, KEY_REGISTER_TILE, schedule);
}

void record_folding(struct module *module, struct op *op, const struct schedule *schedule)
{
	record_as(module, op, KEY_FOLDING, schedule);
}

bool has_folding(const struct op *op)
{
	return attr_get(op, KEY_FOLDING);
}

bool has_register_tile(const struct op *op)
{
	return attr_get(op, KEY_REGISTER_TILE);
}

static struct schedule recorded_as(struct arena *arena, const struct op *op, enum attr_key key)
{
	const struct attr *attr = attr_get(op, key);
	const struct attr *held = attr_item(attr, KEY_HELD);
	const struct attr *ports = attr_item(attr, KEY_PORTS);
	const struct attr *loops = attr_item(attr, KEY_LOOPS);
	const int parts = loops ? loops->count : 0;
	struct schedule schedule = { .parts = parts,
		.part = ARENA_ARRAY(arena, struct schedule_part, parts + 1),
		.lanes = attr_item_integer(attr, KEY_LANES, 1),
		.row_unroll = attr_item_integer(attr, KEY_ROW_UNROLL, 1),
		.padded = attr_item(attr, KEY_PADDED),
		.held = held ? held->integers : NULL,
		.ports = ports ? ports->integers : NULL };
	for (int i = 0; i < parts; i++) {
		const int64_t *part = loops->items[i].value->integers;
		schedule.part[i] = (struct schedule_part){
			.source = (int)part[0], .trip = part[1], .step = part[2]
		};
	}
	return schedule;
}

struct schedule recorded_schedule(struct arena *arena, const struct op *op)
{
	return recorded_as(arena, op, KEY_SCHEDULE);
}

struct schedule recorded_register_tile(struct arena *arena, const struct op *op)
{
	return recorded_as(arena, op, KEY_REGISTER_TILE);
}

struct schedule recorded_folding(struct arena *arena, const struct op *op)
{
	return recorded_as(arena, op, KEY_FOLDING);
}

bool unroll_of_kernel(
        const struct module *module, const char *kernel, struct fixed_parallelism *wish)
{
	const struct attr *list = attr_get(module_main(module), KEY_STREAM_UNROLL);
	for (int i = 0; list && i < list->count; i++) {
		const struct attr *item = list->items[i].value;
		if (item->kind == ATTR_STRING &&
		        fixed_parallelism_parse(module->diag, item->text, wish) &&
		        text_same(wish->kernel, kernel))
			return true;
	}
	return false;
}

/* The first kernel that lacks the attribute; NULL: none does. */
static const struct op *find_kernel_without(const struct block *block, enum attr_key key)
{
	const struct op *found = NULL;
	for (const struct op *op = block->first; op && !found; op = op->next) {
		if (op->code == OP_FOR)
			found = find_kernel_without(op->region[0], key);
		if (op->code == OP_KERNEL && !kernel_is_gather(op) && !attr_get(op, key))
			found = op;
	}
	return found;
}

static bool kernels_have(struct module *module, enum attr_key key, const char *pass)
{
	const struct op *without = find_kernel_without(module_main(module)->region[0], key);
	if (!without)
		return true;
	diag_error(module->diag, without->location, "kernel %s has no attribute `%s`",
	        without->kernel->name, key_name(key));
	return diag_note(module->diag, "--from %s chooses it for all kernels", pass);
}

bool kernels_have_parallelism(struct module *module)
{
	return kernels_have(module, KEY_PARALLELISM, "choose_parallelism");
}

static bool schedules_fit(struct module *module, const struct block *block)
{
	for (const struct op *op = block->first; op; op = op->next) {
		if (op->code == OP_FOR && !schedules_fit(module, op->region[0]))
			return false;
		if (op->code != OP_KERNEL || kernel_is_gather(op))
			continue;
		struct schedule schedule = recorded_schedule(module->arena, op);
		if (schedule_fits(module, op, &schedule))
			continue;
		diag_error(module->diag, op->location,
		        "kernel %s: with its schedule an operand or the result is no stream of its "
		        "tensor",
		        op->kernel->name);
		return diag_note(module->diag,
		        "lanes and rows have to follow one another in memory; --from "
		        "choose_loop_orders chooses the schedules of all kernels");
	}
	return true;
}

bool kernels_have_schedules(struct module *module)
{
	return kernels_have(module, KEY_SCHEDULE, "choose_loop_orders") &&
	        schedules_fit(module, module_main(module)->region[0]);
}

static void forget(struct op *op, void *context)
{
	if (op->code != OP_KERNEL)
		return;
	attr_set(context, op, KEY_PARALLELISM, NULL);
	attr_set(context, op, KEY_SCHEDULE, NULL);
	attr_set(context, op, KEY_REGISTER_TILE, NULL);
	attr_set(context, op, KEY_FOLDING, NULL);
}

void forget_recorded_choices(struct module *module)
{
	ir_walk(module_main(module)->region[0], forget, module);
}
