/* Emits a contraction, a job of the matmul engine, at stream level. The engine reads a tile of
 * tokens group by group, each group for all tokens, and produces its results word by word for all
 * tokens, in the same order: so kernels between two jobs of few tokens need no reorder buffers. */
#include "ir/contract.h"
#include "ir/kernel_edit.h"
#include "schedule/recorded_choices.h"
#include "streams/stream_builder.h"

/* Order of results: token tiles, words of a row, tokens of a tile. The last word of a row may
 * exceed the tensor's edge. */
static const struct type *tiled_order(const struct streams *s, const struct contract *contract,
        const struct type *tensor, int64_t lanes)
{
	struct module *module = s->module;
	const struct launch_tokens launch =
	        launch_tokens_of(module->arena, contract->token_symbol, contract->tokens);
	const int64_t tile = launch.tile;
	const int64_t word[2] = { 1, lanes };
	const struct run_time_trip *run_time[3] = { launch.tiles, NULL, launch.each };
	int64_t trip[3] = { contract->tokens / tile, (contract->outputs + lanes - 1) / lanes,
		tile };
	int64_t step[3] = { tile, lanes, 1 };
	int64_t *rows = affine_rows(module->arena, 3, 2);
	rows[0] = rows[2] = rows[4 + 1] = 1;
	return type_canonical(module,
	        lanes == 1 ? type_scalar(tensor)
	                   : type_shaped(module, TYPE_VECTOR, 2, word, type_scalar(tensor)),
	        &(struct itensor){ .dims = 3,
	                .trip = trip,
	                .step = step,
	                .run_time = run_time,
	                .map = { 3, 2, rows } });
}

static const struct type *in_words_of(
        struct module *module, const struct type *stream, int64_t lanes)
{
	const struct type *type =
	        stream_lanes(stream) == lanes ? stream : type_regroup(module, stream, lanes);
	INVARIANT(module->guard, type, "%s has no words of %lld", stream->text, (long long)lanes);
	return type;
}

/* Row-major words, of which the last one may exceed the tensor's edge. */
static const struct type *padded_order(
        struct module *module, const struct type *tensor, int64_t lanes)
{
	int rank = tensor->rank;
	int64_t trip = (type_elements(tensor) + lanes - 1) / lanes;
	int64_t step = lanes;
	int64_t *shape = ARENA_ARRAY(module->arena, int64_t, rank);
	int64_t *rows = affine_rows(module->arena, 1, rank);
	for (int d = 0; d < rank; d++)
		shape[d] = d == rank - 1 ? lanes : 1;
	rows[(rank - 1) * 2] = 1;
	return type_canonical(module,
	        type_shaped(module, TYPE_VECTOR, rank, shape, type_scalar(tensor)),
	        &(struct itensor){
	                .dims = 1, .trip = &trip, .step = &step, .map = { 1, rank, rows } });
}

/* Is it a reduction that accepts padded words (schedule_kernel.c)? */
static bool takes_padded(struct arena *arena, const struct op *op, int64_t lanes)
{
	if (op->code != OP_KERNEL || kernel_is_gather(op))
		return false;
	struct schedule schedule = recorded_schedule(arena, op);
	return schedule.padded && schedule.lanes == lanes &&
	        schedule_is_tree(op->kernel, &schedule);
}

/* Has it only one reader, which accepts padded words? */
static bool is_taken_padded(const struct streams *s, const struct op *old, int64_t lanes)
{
	int readers = 0;
	int padded = 0;
	for (const struct op *op = old->parent->first; op; op = op->next)
		for (int j = 0; j < op->operands; j++) {
			if (op->operand[j] != old->result[0])
				continue;
			readers++;
			padded += takes_padded(s->module->arena, op, lanes);
		}
	return readers == 1 && padded == 1;
}

/* Type of the result; padding at the end of a single row is allowed if all readers drop it. */
static const struct type *result_type(
        struct streams *s, const struct contract *contract, const struct op *old)
{
	const struct type *tensor = old->result[0]->type;
	const struct type *order = natural_order(s->module, tensor);
	int64_t lanes = contract->lanes;
	int64_t own = stream_lanes(order);
	if (contract->tokens > 1)
		return tiled_order(s, contract, tensor,
		        own < lanes && is_taken_padded(s, old, lanes)
		                ? lanes
		                : contract_result_lanes(s->module, contract, tensor));
	bool row = tensor->rank > 0 && tensor->shape[tensor->rank - 1] == type_elements(tensor);
	if (own < lanes && row && tensor->shape[tensor->rank - 1] > lanes &&
	        (is_only_stored(old) || is_taken_padded(s, old, lanes)))
		return padded_order(s->module, tensor, lanes);
	return in_words_of(s->module, order, contract_result_lanes(s->module, contract, tensor));
}

static void add_tensors(
        const struct tensor_source *tensor_source, struct value **operand, int *count)
{
	for (int i = 0; i < tensor_source->count; i++)
		operand[(*count)++] = tensor_source->argument[i];
}

/* Order of an operand with several tokens: token tiles, groups, tokens of a tile, because a PE
 * works on one group of all tokens while the next group arrives. */
static const struct type *grouped_order(struct module *module, const struct contract *contract,
        const struct type *tensor, int64_t lanes)
{
	const struct launch_tokens launch =
	        launch_tokens_of(module->arena, contract->token_symbol, contract->tokens);
	int axis = token_axis(tensor, type_elements(tensor) / contract->tokens, contract->tokens);
	int rank = tensor->rank;
	int inner = lanes > 1 ? rank - 1 : rank;
	int dims = 0;
	int wide = rank + 2;
	INVARIANT(module->guard, axis >= 0 && (lanes == 1 || tensor->shape[rank - 1] == lanes),
	        "%s has no groups of %lld for each token", tensor->text, (long long)lanes);
	int64_t *trip = ARENA_ARRAY(module->arena, int64_t, wide);
	int64_t *step = ARENA_ARRAY(module->arena, int64_t, wide);
	int64_t *rows = affine_rows(module->arena, inner - axis + 1, rank);
	int64_t *word = ARENA_ARRAY(module->arena, int64_t, rank + 1);
	const struct run_time_trip **run_time =
	        ARENA_ARRAY(module->arena, const struct run_time_trip *, wide);
	int columns = inner - axis + 2;
	/* tiles are the outermost loop, tokens of a tile the innermost one */
	for (int d = axis; d <= inner; d++) {
		bool tiles = d == axis;
		bool tokens = d == inner;
		trip[dims] = tensor->shape[d];
		if (tokens) {
			run_time[dims] = launch.each;
			trip[dims] = launch.tile;
		}
		if (tiles) {
			run_time[dims] = launch.tiles;
			trip[dims] = contract->tokens / launch.tile;
		}
		step[dims] = tiles ? launch.tile : 1;
		rows[(tokens ? axis : d) * columns + dims++] = 1;
	}
	for (int d = 0; d < rank; d++)
		word[d] = d == inner ? lanes : 1;
	return type_canonical(module,
	        lanes == 1 ? type_scalar(tensor)
	                   : type_shaped(module, TYPE_VECTOR, rank, word, type_scalar(tensor)),
	        &(struct itensor){ .dims = dims,
	                .trip = trip,
	                .step = step,
	                .run_time = run_time,
	                .map = { dims, rank, rows } });
}

/* Order of an operand: row-major for one token, else by groups, because tokens share the
 * weights. */
static const struct type *operand_order(struct module *module, const struct contract *contract,
        const struct type *tensor, int64_t lanes)
{
	if (contract->tokens > 1)
		return grouped_order(module, contract, tensor, lanes);
	return in_words_of(module, natural_order(module, tensor), lanes);
}

bool emit_contract(struct streams *s, const struct op *old)
{
	struct module *module = s->module;
	struct contract contract;
	INVARIANT(module->guard, contract_of(old, &contract),
	        "a contraction whose operands do not fit together");
	const struct tensor_source *x = tensor_source_of(old->operand[0]);
	const struct tensor_source *scales = tensor_source_of(old->operand[1]);
	const struct tensor_source *w = tensor_source_of(old->operand[2]);
	const struct tensor_source *own = tensor_source_of(old->operand[3]);
	const struct tensor_source *zeros =
	        contract.zero ? tensor_source_of(old->operand[4]) : NULL;
	INVARIANT(module->guard,
	        w->kind == SOURCE_MEMORY && own->kind == SOURCE_MEMORY && w->count == own->count &&
	                (!zeros || (zeros->kind == SOURCE_MEMORY && zeros->count == w->count)),
	        "a contraction's weights are not in memory");
	struct value **operand = ARENA_ARRAY(module->arena, struct value *, 3 + 3 * w->count);
	int count = 0;
	operand[count++] =
	        demand_stream(s, x, operand_order(module, &contract, x->tensor, contract.size), 0);
	operand[count++] =
	        demand_stream(s, scales, operand_order(module, &contract, scales->tensor, 1), 0);
	if (w->layered)
		operand[count++] = s->layer;
	add_tensors(w, operand, &count);
	add_tensors(own, operand, &count);
	if (zeros)
		add_tensors(zeros, operand, &count);
	const struct type *type = result_type(s, &contract, old);
	struct op *op = op_new(module, OP_CONTRACT, old->location, count, operand, 1, &type);
	attr_set(module, op, KEY_NAME, attr_get(old, KEY_NAME));
	if (contract.tokens > 1)
		attr_set(module, op, KEY_TOKENS, attr_get(old, KEY_TOKENS));
	if (contract.tokens_per_cycle > 1)
		attr_set(module, op, KEY_TOKENS_PER_CYCLE, attr_get(old, KEY_TOKENS_PER_CYCLE));
	if (contract.pes_per_port > 1)
		attr_set(module, op, KEY_PES_PER_PORT, attr_get(old, KEY_PES_PER_PORT));
	if (attr_get(old, KEY_LANES))
		attr_set(module, op, KEY_LANES, attr_get(old, KEY_LANES));
	if (contract.token_symbol)
		attr_set(module, op, KEY_TOKEN_COUNT, attr_get(old, KEY_TOKEN_COUNT));
	if (contract.same_input)
		attr_set(module, op, KEY_SAME_INPUT, attr_unit(module));
	if (contract.second_pass)
		attr_set(module, op, KEY_SECOND_PASS, attr_unit(module));
	if (contract.single_block)
		attr_set(module, op, KEY_SINGLE_BLOCK, attr_unit(module));
	append_producer(s, old, op);
	return true;
}
