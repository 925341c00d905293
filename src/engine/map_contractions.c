/* Contractions become phases of one unit, which they share: decode reads each weight once, so
 * one array that is always fed needs no more multipliers than memory delivers words, and no
 * bandwidth waits for a kernel whose turn it is not.  With several tokens no multiplier does.
 * Needs: pairs of kernels as quantise makes them, sums of products in groups and scaled sums of
 * those, with all outputs in one block. Guarantees: each such pair is one stream.contract, what
 * follows the sums a kernel of its own; other kernels are as they were.  Exact. */
#include "engine/engine_cost.h"
#include "ir/kernel_edit.h"
#include "engine/engine_passes.h"

/* tokens a cycle where a launch has few, as a batch: more would take slices, and with them the
 * ports that bring its weights */
#define FEW_TOKENS_PER_CYCLE 2

struct pair {
	struct op *sums, *scaled;
	int group, inner, token; /* loops of both: the groups, the outputs, the tokens */
	int64_t groups, outputs, tokens, size;
};

static bool strides(const struct pair *pair, const struct access *access, int64_t group,
        int64_t inner, int64_t token)
{
	return access->offset == 0 && access_is_plain(access) &&
	        (pair->groups == 1 || access->stride[pair->group] == group) &&
	        (pair->outputs == 1 || access->stride[pair->inner] == inner) &&
	        (pair->tokens == 1 || access->stride[pair->token] == token);
}

/* The loop of groups is the reduction; of the others, one at most that walks the weights' scales
 * has several points, and one that does not. */
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

/* Where another pass has left out loops of one point in one of the two, they go in both. */
static void tidy_alike(struct module *module, struct op *sums, struct op *scaled)
{
	if (sums->kernel->loops == scaled->kernel->loops + 1)
		return;
	kernel_tidy(module, sums);
	kernel_tidy(module, scaled);
}

/* bits: of the weights of all phases, since their words are of one type. */
static bool is_pair(int bits, struct module *module, struct op *op, struct pair *pair)
{
	struct op *maker = op->code == OP_KERNEL && op->kernel->ordered && op->operands >= 3
	        ? op->operand[0]->def
	        : NULL;
	if (!maker || maker->code != OP_KERNEL || !maker->kernel->ordered || maker->operands != 2 ||
	        maker->result[0]->uses != 1)
		return false;
	tidy_alike(module, maker, op);
	*pair = (struct pair){ .sums = maker, .scaled = op };
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
	return strides(pair, &sums[0], size, 0, groups * size) &&
	        strides(pair, &sums[1], outputs * size, size, 0) &&
	        strides(pair, &scaled[1], 1, 0, groups) &&
	        strides(pair, &scaled[2], outputs, 1, 0) &&
	        strides(pair, &op->kernel->result, 0, 1, outputs);
}

static void replace_pair(struct module *module, struct pair *pair)
{
	struct op *scaled = pair->scaled;
	if (scaled->kernel->post.count)
		kernel_split_epilogue(module, scaled);
	struct value *operand[4] = { pair->sums->operand[0], scaled->operand[1],
		pair->sums->operand[1], scaled->operand[2] };
	struct op *op = op_new(
	        module, OP_CONTRACT, scaled->location, 4, operand, 1, &scaled->result[0]->type);
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
}

static void map_block(int bits, struct module *module, struct block *block)
{
	struct pair pair;
	for (struct op *op = block->first, *next; op; op = next) {
		next = op->next;
		if (op->code == OP_FOR)
			map_block(bits, module, op->region[0]);
		if (is_pair(bits, module, op, &pair))
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

/* Contractions of the same numbers come in the reverse order: attention wants values last, so
 * they are made first, and queries last, of which it takes one head after the other. Where
 * phases take turns nobody waits for that, and the first, the largest, takes the groups for the
 * others (plan_engine.c). Where tokens are counted the queries come last as well, but values
 * right before them: one token alone waits for keys first (engine_job_order.c). */
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

/* What tokens share a tile, contractions of the same numbers share with it: queries, keys and
 * values of a tile are there before those of the next. */
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

/* One token alone, of many that a launch may have, waits for memory, of which each slice brings
 * some: with eight abreast there would be 16 slices. */
static int64_t requested_tokens_per_cycle(
        const struct pass_context *context, const struct op *main, int64_t tokens)
{
	if (context->choices.value[CHOICE_TOKENS_PER_CYCLE] ||
	        (tokens > FEW_TOKENS && !run_time_tokens_least(main)))
		return choice_count(&context->choices, CHOICE_TOKENS_PER_CYCLE);
	return tokens > FEW_TOKENS ? ENGINE_BASE_LANES : FEW_TOKENS_PER_CYCLE;
}

/* In pairs.  A tile of more than a few takes two cycles a word of weights, which is what memory
 * brings; and there are as many slices as words of results are wide. */
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
	while (tokens_per_cycle > 1 && whole_words(tokens_per_cycle) > most)
		tokens_per_cycle = tokens_per_cycle > ENGINE_BASE_LANES ? ENGINE_BASE_LANES : 1;
	while (tokens_per_cycle > 2 &&
	        !pes_fit(context, module, bits, (int)tokens_per_cycle,
	                whole_words(tokens_per_cycle)))
		tokens_per_cycle -= 2;
	/* a loop over the words of a tile has to be there, whatever is counted */
	if (counts_few_tokens(module_main(module)) && tokens_per_cycle >= tokens)
		tokens_per_cycle = tokens > 2 ? (tokens - 1) / 2 * 2 : 1;
	return tokens_per_cycle;
}

/* One token alone, of many that a launch may have, uses a word once: while it waits for
 * attention, words are brought ahead, and two slices use these twice as fast then, each with
 * half of the tokens abreast. */
static struct engine_shape shape_of(
        const struct pass_context *context, const struct op *main, int64_t tokens, int64_t uses)
{
	int64_t pes_per_port = tokens > FEW_TOKENS && run_time_tokens_least(main)
	        ? choice_count(&context->choices, CHOICE_PES_PER_PORT)
	        : 1;
	pes_per_port = uses % (2 * pes_per_port) ? 1 : pes_per_port;
	return (struct engine_shape){ (int)(uses / pes_per_port), (int)pes_per_port };
}

/* Of a dump that is read again nobody says how its weights were quantised: contractions have the
 * fewest bits, tables of embeddings may have more.  0: no weight has few. */
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

bool map_contractions(struct pass_context *context, struct module *module)
{
	if (!has_engine(context))
		return true;
	const struct op *main = module_main(module);
	int bits = context->quant ? context->quant->weight : 0;
	if (!bits)
		bits = least_bits(main);
	ir_count_uses(module_body(module));
	map_block(bits, module, main->region[0]);
	reverse_same_input(main->region[0], run_time_tokens_least(main));
	mark_same_input(module, main->region[0]);
	int64_t tokens = engine_tokens(main->region[0], NULL);
	if (tokens > 1)
		mark_engine_shape(module, main->region[0],
		        shape_of(context, main, tokens,
		                tokens_per_cycle_of(context, module, bits, tokens)));
	if (has_contraction(main->region[0]))
		mark_result_lanes(module, main->region[0],
		        engine_port_limit(context, module, bits,
		                engine_word_uses(engine_shape(main->region[0])),
		                run_time_tokens_least(main), context->platform->ports / 2));
	return true;
}
