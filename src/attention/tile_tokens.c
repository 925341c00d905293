/* Lets the kernels between two jobs of the engine walk tiles of tokens outermost.
 * Before: attention walks heads, and in each all tokens of the launch
 * After:  for each tile: all heads, for the tokens of the tile
 * So the engine works on a tile behind attention while attention works on the next one
 * (engine_job_order.c), and buffers between hold a head of a tile, not all tokens.  Keys and values
 * of the launch are buffered for all tiles; those of the KV cache are read anew for each tile.
 * Needs: contractions in the engine, token loops bound.
 * Guarantees: kernels whose first loop walks the tiles have `tile_outermost`.
 * Exact.
 * Ends: each contraction is visited once, and a kernel is added to the list at most once. */
#include "attention/attention_passes.h"
#include "ir/contract.h"
#include "ir/kernel_edit.h"

/* A kernel whose tokens are to be tiled. */
struct tiled_kernel {
	struct op *op;
	int64_t pitch; /* elements of its result between two tokens */
};

struct tiler {
	struct module *module;
	struct block *block;
	int64_t tokens;                /* of the compiled extent */
	struct launch_tokens run_time; /* tiles, and their number at run time */
	VEC(struct tiled_kernel) kernels;
	VEC(struct op *) sources; /* contractions whose results the kernels read */
};

static const struct tiled_kernel *tiled_kernel_of(const struct tiler *t, const struct op *op)
{
	for (size_t i = 0; i < t->kernels.count; i++)
		if (t->kernels.data[i].op == op)
			return &t->kernels.data[i];
	return NULL;
}

static const struct access *access_of(const struct op *op, int operand)
{
	return operand < 0 ? &op->kernel->result : &op->kernel->operand[operand];
}

/* Elements between tokens, by the stride of the outer token loop.  Where tokens are counted at run
 * time that loop walks tiles. */
static int64_t pitch_of(const struct tiler *t, int64_t stride)
{
	return t->run_time.tiles ? stride / t->run_time.tile : stride;
}

/* The loop over the tiles of tokens that are counted at run time; -1: none. */
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

/* The loop that walks the tokens of the result and of an operand (-1: of the result only); -1:
 * none. */
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

static void add_kernel(struct tiler *t, struct op *op, int loop)
{
	VEC_PUSH(t->module->arena, &t->kernels,
	        ((struct tiled_kernel){ op, pitch_of(t, op->kernel->result.stride[loop]) }));
}

/* Adds the kernels from an operand of a job back to the jobs whose results they read.  false: one
 * of them has no token loop of its own. */
static bool add_producers(struct tiler *t, const struct value *value, int64_t pitch)
{
	struct op *op = value->def;
	const struct tiled_kernel *known = op ? tiled_kernel_of(t, op) : NULL;
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
	add_kernel(t, op, loop);
	for (int j = 0; j < op->operands; j++) {
		int64_t stride = op->kernel->operand[j].stride[token_loop(t, op, -1, pitch)];
		if (stride && !add_producers(t, op->operand[j], pitch_of(t, stride)))
			return false;
	}
	return true;
}

/* Adds the kernels that read the value, up to those already added: the paths of keys and values,
 * which are results of the same job as the queries or of a job with the same input. */
static void add_consumers(struct tiler *t, const struct value *value, int64_t pitch)
{
	for (struct op *op = t->block->first; op; op = op->next)
		for (int j = 0; op->code == OP_KERNEL && j < op->operands; j++) {
			if (op->operand[j] != value || tiled_kernel_of(t, op) ||
			        kernel_is_gather(op))
				continue;
			int loop = token_loop(t, op, j, pitch);
			if (loop < 0)
				continue;
			add_kernel(t, op, loop);
			add_consumers(
			        t, op->result[0], pitch_of(t, op->kernel->result.stride[loop]));
		}
}

/* Does a kernel walk another loop, as that of heads, outside the tokens? */
static bool has_outer_loop(const struct tiler *t)
{
	bool outer = false;
	for (size_t i = 0; i < t->kernels.count; i++)
		for (int l = 0; l < t->kernels.data[i].op->kernel->loops; l++)
			outer = outer ||
			        t->kernels.data[i].op->kernel->result.stride[l] >=
			                t->kernels.data[i].pitch * t->tokens;
	return outer;
}

static void add_other_consumers(struct tiler *t)
{
	for (size_t i = 0, kernels = t->kernels.count; i < kernels; i++)
		add_consumers(t, t->kernels.data[i].op->result[0], t->kernels.data[i].pitch);
	for (size_t i = 0, sources = t->sources.count; i < sources; i++) {
		const struct op *first = t->sources.data[i];
		for (struct op *op = t->block->first; op; op = op->next) {
			struct contract contract;
			if (op->code == OP_CONTRACT && contract_of(op, &contract) &&
			        op->operand[0] == first->operand[0])
				add_consumers(t, op->result[0], contract.outputs);
		}
	}
}

/* Splits the token loops into tiles, where they are not yet, and moves the tiles outermost. */
static void move_tiles_outermost(struct tiler *t)
{
	for (size_t i = 0; i < t->kernels.count; i++) {
		struct op *op = t->kernels.data[i].op;
		int loop = token_loop(t, op, -1, t->kernels.data[i].pitch);
		if (!t->run_time.tiles && !kernel_split_loop(t->module, op, loop, t->run_time.tile))
			continue;
		kernel_move_loop(t->module, op, loop, 0);
		op->kernel->tile_outermost = true;
	}
}

/* Marks the last job of the group with one input, that of the queries: keys and values of all
 * tiles precede the first tile of queries, then the queries of a tile alternate with later jobs. */
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

/* Tiles the kernels between a job and the jobs whose results it reads. */
static void tile_before_job(struct module *module, struct op *op)
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
		if (!add_producers(
		            &t, op->operand[j], type_elements(op->operand[j]->type) / t.tokens))
			return;
	if (!has_outer_loop(&t))
		return;
	add_other_consumers(&t);
	move_tiles_outermost(&t);
	mark_second_pass(&t);
	if (t.run_time.tiles)
		attr_set(module, op, KEY_SINGLE_BLOCK, attr_unit(module));
}

static void tile_contraction(struct op *op, void *module)
{
	if (op->code == OP_CONTRACT)
		tile_before_job(module, op);
}

bool tile_tokens(struct pass_context *context, struct module *module)
{
	(void)context;
	ir_walk(module_main(module)->region[0], tile_contraction, module);
	return true;
}
