/* Attention walks heads, and in each all tokens of the launch.  Where a unit takes tokens in
 * several tiles, the kernels between two of its phases walk a tile of tokens for all heads
 * before the next tile: so the unit works on a tile behind attention while attention works on
 * the next one (engine_job_order.c), and what lies between holds a head of a tile, not all
 * tokens. Keys and values of the launch are kept for all tiles; those of earlier launches are
 * read again for each. Needs: contractions in a unit, rows bound.  Guarantees: kernels whose
 * first loop is that of the tiles say so (`tiled`).  Exact. */
#include "attention/attention_passes.h"
#include "ir/contract.h"
#include "ir/kernel_edit.h"

/* a kernel, and the elements of its result between two tokens */
struct tiled_kernel {
	struct op *op;
	int64_t pitch;
};

struct tiler {
	struct module *module;
	struct block *block;
	int64_t tokens;
	struct launch_tokens run_time;
	VEC(struct tiled_kernel) walks;
	VEC(struct op *) sources; /* contractions that they begin with */
};

static const struct tiled_kernel *walk_of(const struct tiler *t, const struct op *op)
{
	for (size_t i = 0; i < t->walks.count; i++)
		if (t->walks.data[i].op == op)
			return &t->walks.data[i];
	return NULL;
}

static const struct access *access_of(const struct op *op, int operand)
{
	return operand < 0 ? &op->kernel->result : &op->kernel->operand[operand];
}

/* Elements between tokens, of a stride of the loop that walks them; where these are counted the
 * loop walks their tiles. */
static int64_t pitch_of(const struct tiler *t, int64_t stride)
{
	return t->run_time.tiles ? stride / t->run_time.tile : stride;
}

static int counted_loop(const struct tiler *t, const struct op *op, int operand, int64_t pitch)
{
	for (int l = 0; l < op->kernel->loops; l++) {
		if (run_time_same(op->kernel->loop[l].run_time, t->run_time.tiles) &&
		        access_of(op, operand)->stride[l] == pitch * t->run_time.tile &&
		        !kernel_is_guarded(op, l) && op->kernel->result.stride[l])
			return l;
	}
	return -1;
}

/* The loop that walks the tokens of an operand, or of the result (-1), and of the result; -1:
 * none does. */
static int token_loop(const struct tiler *t, struct op *op, int operand, int64_t pitch)
{
	if (t->run_time.tiles)
		return counted_loop(t, op, operand, pitch);
	kernel_cut_loops(t->module, op, operand, pitch, t->tokens);
	for (int l = 0; l < op->kernel->loops; l++) {
		const struct loop *loop = &op->kernel->loop[l];
		if (access_of(op, operand)->stride[l] == pitch && loop->extent == t->tokens &&
		        !loop->reduction && !loop->run_time && !kernel_is_guarded(op, l) &&
		        op->kernel->result.stride[l])
			return l;
	}
	return -1;
}

static void add_walk(struct tiler *t, struct op *op, int loop)
{
	VEC_PUSH(t->module->arena, &t->walks,
	        ((struct tiled_kernel){ op, pitch_of(t, op->kernel->result.stride[loop]) }));
}

/* From what a phase takes back to the phases that it is made of.  false: somewhere tokens are
 * not walked by a loop of their own. */
static bool walk_back(struct tiler *t, const struct value *value, int64_t pitch)
{
	struct op *op = value->def;
	const struct tiled_kernel *known = op ? walk_of(t, op) : NULL;
	if (!op || op->parent != t->block || op->code == OP_CONSTANT ||
	        op->code == OP_LAYER_SELECT || known)
		return !known || known->pitch == pitch;
	if (op->code == OP_CONTRACT)
		VEC_PUSH(t->module->arena, &t->sources, op);
	if (op->code != OP_KERNEL || kernel_is_gather(op))
		return op->code == OP_CONTRACT;
	int loop = token_loop(t, op, -1, pitch);
	if (loop < 0)
		return false;
	add_walk(t, op, loop);
	for (int j = 0; j < op->operands; j++) {
		int64_t stride = op->kernel->operand[j].stride[token_loop(t, op, -1, pitch)];
		if (stride && !walk_back(t, op->operand[j], pitch_of(t, stride)))
			return false;
	}
	return true;
}

/* Forward to keys and values, which other phases of the same numbers make or the same one, up to
 * the kernels that are known. */
static void walk_on(struct tiler *t, const struct value *value, int64_t pitch)
{
	for (struct op *op = t->block->first; op; op = op->next)
		for (int j = 0; op->code == OP_KERNEL && j < op->operands; j++) {
			int loop =
			        op->operand[j] == value && !walk_of(t, op) && !kernel_is_gather(op)
			        ? token_loop(t, op, j, pitch)
			        : -1;
			if (loop < 0)
				continue;
			add_walk(t, op, loop);
			walk_on(t, op->result[0], pitch_of(t, op->kernel->result.stride[loop]));
		}
}

/* Is something else walked around the tokens? */
static bool is_inside(const struct tiler *t)
{
	bool inside = false;
	for (size_t i = 0; i < t->walks.count; i++)
		for (int l = 0; l < t->walks.data[i].op->kernel->loops; l++)
			inside = inside ||
			        t->walks.data[i].op->kernel->result.stride[l] >=
			                t->walks.data[i].pitch * t->tokens;
	return inside;
}

static void walk_other_consumers(struct tiler *t)
{
	for (size_t i = 0, walks = t->walks.count; i < walks; i++)
		walk_on(t, t->walks.data[i].op->result[0], t->walks.data[i].pitch);
	for (size_t i = 0, sources = t->sources.count; i < sources; i++) {
		const struct op *first = t->sources.data[i];
		for (struct op *op = t->block->first; op; op = op->next) {
			struct contract contract;
			if (op->code == OP_CONTRACT && contract_of(op, &contract) &&
			        op->operand[0] == first->operand[0])
				walk_on(t, op->result[0], contract.outputs);
		}
	}
}

static void tile(struct tiler *t)
{
	for (size_t i = 0; i < t->walks.count; i++) {
		struct op *op = t->walks.data[i].op;
		int loop = token_loop(t, op, -1, t->walks.data[i].pitch);
		if (!t->run_time.tiles && !kernel_split_loop(t->module, op, loop, t->run_time.tile))
			continue;
		kernel_move_loop(t->module, op, loop, 0);
		op->kernel->tile_outermost = true;
	}
}

/* Keys and values of all tiles come before the first queries, which a tile of attention waits
 * for: so other phases take turns with those of its next tile. */
static void mark_second_pass(const struct tiler *t)
{
	for (size_t i = 0; t->run_time.tiles && i < t->sources.count; i++) {
		struct op *op = t->sources.data[i];
		const struct op *next = op->next;
		while (next && next->code != OP_CONTRACT)
			next = next->next;
		if (attr_get(op, KEY_SAME_INPUT) && (!next || !attr_get(next, KEY_SAME_INPUT)))
			attr_set(t->module, op, KEY_SECOND_PASS, attr_unit(t->module));
	}
}

/* Between a phase and those that it takes from. */
static void tile_before(struct module *module, struct op *op)
{
	struct contract contract;
	struct tiler t = { .module = module, .block = op->parent };
	INVARIANT(module->guard, contract_of(op, &contract),
	        "a contraction whose operands do not fit together");
	t.tokens = contract.tokens;
	t.run_time = launch_tokens_of(module->arena, contract.token_symbol, t.tokens);
	int64_t tiles = t.tokens / t.run_time.tile;
	if (tiles == 1 || tiles > WAVEFRONT_TILES_MOST)
		return;
	for (int j = 0; j < 2; j++)
		if (!walk_back(&t, op->operand[j], type_elements(op->operand[j]->type) / t.tokens))
			return;
	if (!is_inside(&t))
		return;
	walk_other_consumers(&t);
	tile(&t);
	mark_second_pass(&t);
	if (t.run_time.tiles)
		attr_set(module, op, KEY_SINGLE_BLOCK, attr_unit(module));
}

static void tile_contraction(struct op *op, void *module)
{
	if (op->code == OP_CONTRACT)
		tile_before(module, op);
}

bool tile_tokens(struct pass_context *context, struct module *module)
{
	(void)context;
	ir_walk(module_main(module)->region[0], tile_contraction, module);
	return true;
}
