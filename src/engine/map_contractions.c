/* Maps quantized contractions to jobs of one matmul engine that they share.
 * Before: kernels s[o, g] = Σ_k w[o, g, k] * x[g, k] and y[o] = Σ_g s * scales, with an epilogue
 * After:  y = stream.contract(x, its scales, w, its scales);  the epilogue is a kernel
 * Decode reads each weight once, so one array of multipliers that is always busy is as fast as
 * memory; kernels of their own would idle while others work. Needs: pairs of kernels as quantize
 * makes them, with all outputs in one block. Guarantees: each such pair is one stream.contract;
 * other kernels stay. Exact. Ends: one walk over the program. */
#include "engine/engine_cost.h"
#include "ir/kernel_edit.h"
#include "engine/engine_passes.h"

/* tokens per cycle of launches of few tokens, as a batch: more would take PEs, and with them the
 * ports that bring weights */
#define FEW_TOKENS_PER_CYCLE 2
/* operand of a scaled sum that is the zero points of weights; the groups' sums of x follow */
#define ZERO_OPERAND 3

struct pair {
	struct op *sums, *scaled;
	bool zeros;              /* weights have zero points */
	int group, inner, token; /* loops of both kernels, -1: not found */
	int64_t groups, outputs, tokens, size;
};

static bool has_strides(const struct pair *pair, const struct access *access, int64_t group,
        int64_t inner, int64_t token)
{
	return access->offset == 0 && access_is_plain(access) &&
	        (pair->groups == 1 || access->stride[pair->group] == group) &&
	        (pair->outputs == 1 || access->stride[pair->inner] == inner) &&
	        (pair->tokens == 1 || access->stride[pair->token] == token);
}

/* Finds the loops: that of groups is the reduction. Among the others with an extent above 1, at
 * most one walks the scales of weights (outputs), and at most one does not (tokens). */
static bool find_loops(struct pair *pair)
{
	const struct kernel *kernel = pair->scaled->kernel;
	pair->group = pair->inner = pair->token = -1;
	pair->outputs = pair->tokens = 1;
	for (int l = 0; l < kernel->loops; l++) {
		int64_t extent = kernel->loop[l].extent;
		bool token = extent > 1 && !kernel->operand[2].stride[l];
		if (kernel->loop[l].run_time || (kernel->loop[l].reduction && pair->group >= 0))
			return false;
		if (kernel->loop[l].reduction) {
			pair->group = l;
			continue;
		}
		if (extent > 1 && (token ? pair->tokens : pair->outputs) > 1)
			return false;
		if (extent > 1 || pair->inner < 0)
			*(token ? &pair->token : &pair->inner) = l;
		if (extent > 1)
			*(token ? &pair->tokens : &pair->outputs) = extent;
	}
	if (pair->group < 0 || pair->inner < 0 || pair->sums->kernel->loops != kernel->loops + 1)
		return false;
	pair->groups = kernel->loop[pair->group].extent;
	pair->size = pair->sums->kernel->loop[kernel->loops].extent;
	return true;
}

/* Removes loops of extent 1 from both kernels, if another pass has removed some from
 * one of them. */
static void tidy_alike(struct module *module, struct op *sums, struct op *scaled)
{
	if (sums->kernel->loops == scaled->kernel->loops + 1)
		return;
	kernel_tidy(module, sums);
	kernel_tidy(module, scaled);
}

/* Is the scaled sum (float)(d - z * Σ x) * …, with the x of the sum d? */
static bool has_zeros(const struct op *scaled, const struct op *sums)
{
	if (scaled->operands <= ZERO_OPERAND + 1 ||
	        !body_uses_operand(&scaled->kernel->update, ZERO_OPERAND))
		return false;
	const struct op *maker = scaled->operand[ZERO_OPERAND + 1]->def;
	return maker && maker->code == OP_KERNEL && maker->operand[0] == sums->operand[0];
}

/* bits: of the engine's weights, whose words are all of one type */
static bool match_pair(int bits, struct module *module, struct op *op, struct pair *pair)
{
	struct op *maker = op->code == OP_KERNEL && op->kernel->ordered && op->operands >= 3
	        ? op->operand[0]->def
	        : NULL;
	if (!maker || maker->code != OP_KERNEL || !maker->kernel->ordered || maker->operands != 2 ||
	        maker->result[0]->uses != 1)
		return false;
	tidy_alike(module, maker, op);
	*pair = (struct pair){ .sums = maker, .scaled = op, .zeros = has_zeros(op, maker) };
	if (body_uses_operand(&op->kernel->update, ZERO_OPERAND) && !pair->zeros)
		return false;
	if (!find_loops(pair) || type_scalar(maker->operand[1]->type)->width != bits ||
	        pair->size * bits != ENGINE_WORD_BITS)
		return false;
	if (body_uses_counters(&op->kernel->post))
		return false;
	const struct access *sums = maker->kernel->operand;
	const struct access *scaled = op->kernel->operand;
	int64_t size = pair->size;
	int64_t outputs = pair->outputs;
	int64_t groups = pair->groups;
	return has_strides(pair, &sums[0], size, 0, groups * size) &&
	        has_strides(pair, &sums[1], outputs * size, size, 0) &&
	        has_strides(pair, &scaled[1], 1, 0, groups) &&
	        has_strides(pair, &scaled[2], outputs, 1, 0) &&
	        (!pair->zeros ||
	                (has_strides(pair, &scaled[ZERO_OPERAND], outputs, 1, 0) &&
	                        has_strides(pair, &scaled[ZERO_OPERAND + 1], 1, 0, groups))) &&
	        has_strides(pair, &op->kernel->result, 0, 1, outputs);
}

static void replace_pair(struct module *module, struct pair *pair)
{
	struct op *scaled = pair->scaled;
	struct op *group_sums = pair->zeros ? scaled->operand[ZERO_OPERAND + 1]->def : NULL;
	if (scaled->kernel->post.count)
		kernel_split_epilogue(module, scaled);
	struct value *operand[5] = { pair->sums->operand[0], scaled->operand[1],
		pair->sums->operand[1], scaled->operand[2],
		pair->zeros ? scaled->operand[ZERO_OPERAND] : NULL };
	struct op *op = op_new(module, OP_CONTRACT, scaled->location, pair->zeros ? 5 : 4, operand,
	        1, &scaled->result[0]->type);
	struct contract contract;
	if (pair->tokens > 1)
		attr_set(module, op, KEY_TOKENS, attr_integer(module, pair->tokens));
	attr_set(module, op, KEY_NAME, attr_string(module, scaled->kernel->name));
	INVARIANT(module->guard, contract_of(op, &contract),
	        "kernel %s is not a contraction of the matmul engine", scaled->kernel->name);
	op_insert_before(scaled, op);
	ir_replace(module_main(module)->region[0], scaled->result[0], op->result[0]);
	op_remove(pair->sums);
	op_remove(scaled);
	/* the engine's feed sums a group up itself */
	if (group_sums && !--group_sums->result[0]->uses)
		op_remove(group_sums);
}

static void map_block(int bits, struct module *module, struct block *block)
{
	struct pair pair;
	for (struct op *op = block->first, *next; op; op = next) {
		next = op->next;
		if (op->code == OP_FOR)
			map_block(bits, module, op->region[0]);
		if (match_pair(bits, module, op, &pair))
			replace_pair(module, &pair);
	}
}

static bool stands_before(const struct value *value, const struct op *place)
{
	for (const struct op *op = place; op; op = op->next)
		if (op == value->def)
			return false;
	return true;
}

static bool may_move(const struct op *op, const struct op *place)
{
	bool may = true;
	for (int j = 0; j < op->operands; j++)
		may = may && stands_before(op->operand[j], place);
	return may;
}

/* Reverses the order of contractions of the same activations, so that values come first and queries
 * last: attention needs all values, and queries head by head. In a wavefront nobody waits for this,
 * and the first contraction, the largest, pops the groups for the others (plan_jobs.c). counted:
 * with a dynamic token count queries are last as well, and values right before them, since a launch
 * of one token waits for keys first (engine_job_order.c). */
static void reverse_same_input(struct block *block, bool counted)
{
	struct op *first = NULL;
	for (struct op *op = block->first, *next; op; op = next) {
		next = op->next;
		if (op->code == OP_FOR)
			reverse_same_input(op->region[0], counted);
		if (op->code != OP_CONTRACT)
			continue;
		int64_t tokens = attr_integer_or(op, KEY_TOKENS, 1);
		int64_t tiles = tokens / token_tile(tokens, false);
		bool reversed = tiles > 1 &&
		        (tiles <= WAVEFRONT_TILES_LEAST || tiles > WAVEFRONT_TILES_MOST);
		bool same = first && reversed && op->operand[0] == first->operand[0] &&
		        op->operand[1] == first->operand[1] && may_move(op, first);
		if (same) {
			op_remove(op);
			op_insert_before(first, op);
		}
		first = same && counted ? first : op;
	}
}

/* Marks a contraction that has the same activations as the one before it: queries, keys and values
 * of a tile are made before those of the next tile. */
static void mark_same_input(struct module *module, struct block *block)
{
	const struct op *last = NULL;
	for (struct op *op = block->first; op; op = op->next) {
		int64_t tokens = op->code == OP_CONTRACT ? attr_integer_or(op, KEY_TOKENS, 1) : 1;
		if (op->code == OP_FOR)
			mark_same_input(module, op->region[0]);
		if (last && (tokens == 1 || tokens > token_tile(tokens, false)) &&
		        op->operand[0] == last->operand[0] && op->operand[1] == last->operand[1])
			attr_set(module, op, KEY_SAME_INPUT, attr_unit(module));
		last = op->code == OP_CONTRACT ? op : last;
	}
}

/* Few tokens and dynamic token counts have their own tokens per cycle: a launch of one token waits
 * for memory, and with fewer tokens per cycle more PEs and their ports fit. */
static int64_t requested_tokens_per_cycle(
        const struct pass_context *context, const struct op *main, int64_t tokens)
{
	if (context->choices.value[CHOICE_TOKENS_PER_CYCLE] ||
	        (tokens > FEW_TOKENS && !run_time_tokens_least(main)))
		return choice_count(&context->choices, CHOICE_TOKENS_PER_CYCLE);
	return tokens > FEW_TOKENS ? ENGINE_BASE_LANES : FEW_TOKENS_PER_CYCLE;
}

/* An even number, as tokens share multipliers in pairs. A tile of more than a few takes two cycles
 * for a word of weights, which is what memory brings, and there are as many PEs as words of results
 * have lanes. */
static int64_t tokens_per_cycle_of(
        const struct pass_context *context, struct module *module, int bits, int64_t tokens)
{
	int64_t requested = requested_tokens_per_cycle(context, module_main(module), tokens);
	int64_t tile = token_tile(tokens, run_time_tokens_least(module_main(module)));
	int64_t most = choice_count(&context->choices, CHOICE_ENGINE_PES);
	int64_t tokens_per_cycle = tile > ENGINE_BASE_LANES ? (tile + 1) / 2 : tile;
	tokens_per_cycle =
	        requested < tokens_per_cycle ? requested : (tokens_per_cycle + 1) / 2 * 2;
	tokens_per_cycle = tokens_per_cycle < requested ? tokens_per_cycle : requested;
	while (tokens_per_cycle > 1 && engine_port_multiple(tokens_per_cycle) > most)
		tokens_per_cycle = tokens_per_cycle > ENGINE_BASE_LANES ? ENGINE_BASE_LANES : 1;
	while (tokens_per_cycle > 2 &&
	        !pes_fit(context, module, (struct port_pes){ bits, (int)tokens_per_cycle },
	                engine_port_multiple(tokens_per_cycle)))
		tokens_per_cycle -= 2;
	/* with a dynamic count there is a loop over the words of a tile, so a tile has several */
	if (counts_few_tokens(module_main(module)) && tokens_per_cycle >= tokens)
		tokens_per_cycle = tokens > 2 ? (tokens - 1) / 2 * 2 : 1;
	return tokens_per_cycle;
}

/* With a dynamic count, a launch of one token uses a word of weights once. Words are prefetched
 * during attention, and several PEs per port, with as many fewer tokens per cycle each, use these
 * faster. */
static struct engine_shape shape_of(
        const struct pass_context *context, const struct op *main, int64_t tokens, int64_t uses)
{
	int64_t pes_per_port = tokens > FEW_TOKENS && run_time_tokens_least(main)
	        ? choice_count(&context->choices, CHOICE_PES_PER_PORT)
	        : 1;
	pes_per_port = uses % (2 * pes_per_port) ? 1 : pes_per_port;
	return (struct engine_shape){ (int)(uses / pes_per_port), (int)pes_per_port };
}

/* Bits of the engine's weights in a module that was read from a dump: contractions have the fewest
 * bits, embedding tables may have more. 0: no weight is quantized. */
static int least_bits(const struct op *main)
{
	int least = 0;
	for (int i = 0; i < main->region[0]->arguments; i++) {
		const struct type *scalar = type_scalar(main->region[0]->argument[i]->type);
		bool few = function_argument_attr(main, i, KEY_STREAM_DERIVED_FROM) &&
		        scalar->kind == TYPE_INTEGER && scalar->width <= 8;
		least = few && (!least || scalar->width < least) ? scalar->width : least;
	}
	return least;
}

/* Sets tokens per cycle, PEs per port and the lanes of results as attributes of contractions. */
static void shape_engine(
        const struct pass_context *context, struct module *module, const struct op *main, int bits)
{
	struct block *body = main->region[0];
	int64_t tokens = engine_tokens(body, NULL);
	if (tokens > 1) {
		int64_t uses = tokens_per_cycle_of(context, module, bits, tokens);
		mark_engine_shape(module, body, shape_of(context, main, tokens, uses));
	}
	if (!tokens)
		return;
	const struct port_pes pes = { bits, engine_word_uses(engine_shape(body)) };
	mark_result_lanes(module, body,
	        engine_port_limit(context, module, pes, run_time_tokens_least(main),
	                context->platform->ports / 2));
}

bool map_contractions(struct pass_context *context, struct module *module)
{
	if (!engine_allowed(context))
		return true;
	const struct op *main = module_main(module);
	int bits = context->quant ? context->quant->weight : 0;
	if (!bits)
		bits = least_bits(main);
	ir_count_uses(module_body(module));
	map_block(bits, module, main->region[0]);
	reverse_same_input(main->region[0], run_time_tokens_least(main));
	mark_same_input(module, main->region[0]);
	workload_record(module);
	shape_engine(context, module, main, bits);
	return true;
}
