/* Rolls equal layers into one scf.for.
 * Before: kernels of layer 0, layer 1, ...     After: scf.for with the kernels of one layer
 * Layers are found by structure only: kernels with equal signatures (loops, accesses, bodies) at a
 * constant distance.  Of all periods the one that covers most kernels is taken, and of possible
 * starts the one that carries fewest values (a final norm looks like a layer's first kernel).
 * Operands: results within the layer; values that all layers share; values carried from the layer
 * before (the hidden state); or one value per layer (weights, caches), read by stream.layer_select.
 * Results read after the layers are collected by stream.insert_layer, read by stream.layer_extract.
 * A convolution of integers is in no layer: its stages run at once, each on other pixels
 * (fold_convolutions.c).
 * Needs: fused kernels.   Guarantees: without two layers that carry a value nothing changes.
 * Exact.
 * Ends: each candidate of period and start is tried once. */
#include "ir/kernel_signature.h"
#include "layers/layers_passes.h"
#include "ir/kernel_edit.h"
#include "layers/roll.h"

static void mark_elsewhere(struct op *op, void *context)
{
	(void)context;
	for (int r = 0; r < op->results; r++)
		op->result[r]->id = 0;
}

/* Moves tensor constants to the front, so that layers consist of kernels only. */
static void constants_first(struct block *block)
{
	struct op *next;
	struct op *last = NULL;
	for (struct op *op = block->first; op; op = next) {
		next = op->next;
		if (op->code != OP_CONSTANT)
			continue;
		struct op *place = last ? last->next : block->first;
		last = op;
		if (place == op)
			continue;
		op_remove(op);
		op_insert_before(place, op);
	}
}

static struct roll list_kernels(struct module *module, struct block *block)
{
	struct roll roll = { .module = module };
	struct map seen = map_new(module->arena);
	VEC(struct op *) kernels = { 0 };
	VEC(int) shapes = { 0 };
	ir_walk(block, mark_elsewhere, NULL);
	for (int i = 0; i < block->arguments; i++)
		block->argument[i]->id = 0;
	for (struct op *op = block->first; op; op = op->next) {
		if (op->code != OP_KERNEL)
			continue;
		struct text key = text_new(module->arena);
		kernel_signature(op, module, &key);
		bool unique = kernel_has_window(op->kernel, op->operands) &&
		        body_has(&op->kernel->update, OP_MULI);
		int *number = unique ? NULL : map_get(&seen, key.data);
		if (!number) {
			number = ARENA_NEW(module->arena, int);
			*number = (int)kernels.count;
			map_set(&seen, key.data, number);
		}
		VEC_PUSH(module->arena, &kernels, op);
		VEC_PUSH(module->arena, &shapes, *number);
		op->result[0]->id = (int)kernels.count;
	}
	roll.kernel = kernels.data;
	roll.kernels = (int)kernels.count;
	roll.shape = shapes.data;
	return roll;
}

struct layer_run {
	int start, period, length; /* covered kernels: [start, start + length) */
};

static int covered(struct layer_run run)
{
	return run.length / run.period * run.period;
}

/* The longest run of equal kernels at this distance. */
static struct layer_run longest_run(const struct roll *roll, int period)
{
	struct layer_run best = { 0, period, 0 };
	for (int i = 0; i + period < roll->kernels; i++) {
		int start = i;
		while (i + period < roll->kernels && roll->shape[i] == roll->shape[i + period])
			i++;
		if (i > start && i - start + period > best.length)
			best = (struct layer_run){ start, period, i - start + period };
	}
	return best;
}

/* Of the starts that leave room for that many layers, the one with fewest carried values whose
 * operands correspond. */
static bool choose_start(struct roll *roll, struct layer_run run, int layers)
{
	struct roll best = { .cost = -1 };
	for (int slack = run.length - layers * run.period; slack >= 0; slack--) {
		struct roll candidate = { .module = roll->module,
			.kernels = roll->kernels,
			.kernel = roll->kernel,
			.shape = roll->shape };
		candidate.start = run.start + run.length - layers * run.period - slack;
		candidate.period = run.period;
		candidate.layers = layers;
		if (roll_classify(&candidate) && (best.cost < 0 || candidate.cost < best.cost))
			best = candidate;
	}
	if (best.cost < 0)
		return false;
	*roll = best;
	return true;
}

/* Tries runs by falling coverage, then rising period, until the operands of one correspond; a run
 * may lose up to two layers for that. */
static bool find_layers(struct roll *roll)
{
	int periods = roll->kernels / 2;
	struct layer_run *run = ARENA_ARRAY(roll->module->arena, struct layer_run, periods);
	for (int p = 0; p < periods; p++)
		run[p] = longest_run(roll, p + 1);
	for (int tries = 0; tries < 8; tries++) {
		int best = -1;
		for (int p = 0; p < periods; p++)
			if (run[p].length >= 2 * run[p].period &&
			        (best < 0 || covered(run[p]) > covered(run[best])))
				best = p;
		if (best < 0)
			return false;
		int most = run[best].length / run[best].period;
		for (int layers = most; layers >= 2 && layers >= most - 2; layers--)
			if (choose_start(roll, run[best], layers))
				return true;
		run[best].length = 0;
	}
	return false;
}

bool roll_layers(struct pass_context *context, struct module *module)
{
	(void)context;
	struct block *block = module_main(module)->region[0];
	if (!block_is_flat(block) || block_has_loop(block))
		return true;
	constants_first(block);
	struct roll roll = list_kernels(module, block);
	if (find_layers(&roll))
		roll_build(&roll);
	return true;
}
