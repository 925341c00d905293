/* Finds the iterations in which padded rows can be skipped. An operand that its producer pads to a
 * fixed number of rows (stream.pad_tokens) consists mostly of zeros in a launch of few tokens. A
 * schedule that walks the rows in order can leave out the iterations without any token;
 * ir/launch_tokens.h says which rows exist: tiles of min(n, tile) rows. */
#include "ir/launch_tokens.h"
#include "ir/kernel_edit.h"
#include "schedule/kernel_schedule.h"
#include "itensor/element_sequence.h"

static const struct run_time_trip *token_count_of(
        struct arena *arena, const char *symbol, int64_t tile, int64_t most)
{
	struct run_time_trip *count = ARENA_NEW(arena, struct run_time_trip);
	*count = (struct run_time_trip){ .symbol = symbol, .tile = tile, .most = most };
	return count;
}

int schedule_token_counts(struct arena *arena, const struct row_predicate *row_predicate,
        const struct run_time_trip **count)
{
	int64_t tile = row_predicate->rows.tile;
	int64_t most = row_predicate->rows.most;
	int64_t outer = row_predicate->step > tile ? row_predicate->step : tile;
	int counts = 0;
	if (outer < most)
		count[counts++] = token_count_of(arena, row_predicate->symbol, outer, most / outer);
	if (row_predicate->step < tile)
		count[counts++] = token_count_of(arena, row_predicate->symbol, row_predicate->step,
		        tile / row_predicate->step);
	return counts;
}

/* Rows by which an iteration of the part advances, if the parts inside it cover `inside` rows; 0:
 * it does not move along the rows; -1: it moves along them in another way. */
static int64_t tokens_moved(
        const struct op *op, int operand, int axis, const struct schedule_part *of, int64_t inside)
{
	const struct access *access = &op->kernel->operand[operand];
	const struct guard_range *guard = access_guard(access, of->source);
	int64_t stride = access->stride[of->source] * of->step;
	int64_t trip = guard ? guard->high - guard->low : of->trip;
	int64_t step;
	if (!stride || trip == 1)
		return 0;
	int dim = schedule_data_dim(op->operand[operand]->type, stride, trip, &step);
	if (dim >= 0 && dim != axis)
		return 0;
	return dim < 0 || guard || step != inside || op->kernel->loop[of->source].run_time ? -1
	                                                                                   : step;
}

const struct row_predicate *schedule_row_predicate(
        struct arena *arena, const struct op *op, const struct schedule *schedule, int operand)
{
	const struct op *fill = op->operand[operand]->def;
	if (!fill || fill->code != OP_PAD_TOKENS || fill->parent != op->parent ||
	        schedule->padded || kernel_is_post_operand(op->kernel, operand) ||
	        op->kernel->operand[operand].index_operand >= 0)
		return NULL;
	int axis = (int)attr_integer_or(fill, KEY_AXIS, 0);
	int64_t most = op->operand[operand]->type->shape[axis];
	int64_t inside = 1;
	int64_t word = 0;
	struct row_predicate *row_predicate = ARENA_NEW(arena, struct row_predicate);
	row_predicate->weight = ARENA_ARRAY(arena, int64_t, schedule->parts + 1);
	bool ended = false;
	for (int i = schedule->parts - 1; i >= 0; i--) {
		int64_t step = tokens_moved(op, operand, axis, &schedule->part[i], inside);
		bool loop = !schedule_is_lane(schedule, i) && !schedule_is_row(schedule, i);
		ended = ended || (word && !step && schedule->part[i].trip > 1);
		if (step < 0 || (step && ended))
			return NULL;
		if (!step)
			continue;
		word = word || !loop ? word : step;
		row_predicate->weight[i] = loop ? step / word : 0;
		inside *= schedule->part[i].trip;
	}
	row_predicate->step = word;
	row_predicate->symbol = attr_text_or(fill, KEY_TOKEN_COUNT, "");
	row_predicate->rows = launch_tokens_of(arena, row_predicate->symbol, most);
	bool straddles = word && word % row_predicate->rows.tile && row_predicate->rows.tile % word;
	return word && inside == most && !straddles ? row_predicate : NULL;
}

const struct type *schedule_padded_type(struct module *module, const struct type *some,
        const struct type *tensor, int axis, const struct row_predicate *row_predicate)
{
	struct arena *arena = module->arena;
	const struct run_time_trip *count[2];
	int rank = tensor->rank;
	int dims = 0;
	int counts = schedule_token_counts(arena, row_predicate, count);
	int64_t *trip = ARENA_ARRAY(arena, int64_t, rank + 2);
	int64_t *step = ARENA_ARRAY(arena, int64_t, rank + 2);
	int64_t lanes = stream_lanes(some);
	const struct run_time_trip **run_time =
	        ARENA_ARRAY(arena, const struct run_time_trip *, rank + 2);
	int *data = ARENA_ARRAY(arena, int, rank + 2);
	for (int d = 0; d < rank; d++) {
		int64_t word = d == rank - 1 ? lanes : 1;
		for (int c = 0; d == axis && c < counts; c++) {
			run_time[dims] = count[c];
			data[dims] = d;
			trip[dims] = count[c]->most;
			step[dims++] = count[c]->tile;
		}
		data[dims] = d;
		trip[dims] = d == axis ? row_predicate->step : tensor->shape[d] / word;
		step[dims++] = word;
	}
	int64_t *rows = affine_rows(arena, dims, rank);
	for (int i = 0; i < dims; i++)
		rows[data[i] * (dims + 1) + i] = 1;
	return type_canonical(module, some->element,
	        &(struct itensor){ .dims = dims,
	                .trip = trip,
	                .step = step,
	                .run_time = run_time,
	                .map = { dims, rank, rows } });
}
