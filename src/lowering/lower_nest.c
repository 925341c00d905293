/* Arrays of a sequential nest in banks: where an element is, and the loops that fill and send them,
 * a word of the stream a cycle. */
#include "lowering/lower_nest.h"

/* bank and word of a subscript */
struct bank_word {
	struct value *bank, *word;
};

static bool is_lane(const struct value *value)
{
	return !value->def && attr_get(value->block->parent, KEY_STREAM_LANES);
}

/* The lane in `subscript` = lane + banks * words + a number, else NULL. */
static const struct value *lane_in(const struct value *subscript, int64_t banks)
{
	const struct op *def = subscript->def;
	const struct value *lane = NULL;
	if (!def)
		return is_lane(subscript) ? subscript : NULL;
	for (int i = 0; def->code == OP_APPLY && i < def->operands; i++) {
		int64_t factor = affine_at(attr_get(def, KEY_MAP)->map, 0, i);
		if (factor % banks == 0)
			continue;
		if (factor != 1 || lane || !is_lane(def->operand[i]))
			return NULL;
		lane = def->operand[i];
	}
	return lane;
}

/* The rest of it, without the lane and the number. */
static struct value *words_before(struct process *p, const struct op *def, int64_t banks)
{
	struct value *counter[NEST_DIMS * 2];
	int64_t stride[NEST_DIMS * 2];
	int terms = 0;
	for (int i = 0; def && i < def->operands && terms < NEST_DIMS * 2; i++) {
		int64_t factor = affine_at(attr_get(def, KEY_MAP)->map, 0, i);
		if (factor % banks)
			continue;
		counter[terms] = def->operand[i]->data;
		stride[terms++] = factor / banks;
	}
	return make_address(p, terms, counter, stride, 0);
}

/* The bank of a lane does not depend on a counter. */
static struct bank_word lane_part(
        struct process *p, const struct value *subscript, const struct value *lane, int64_t banks)
{
	const struct op *def = subscript->def;
	int64_t number = def ? affine_constant(attr_get(def, KEY_MAP)->map, 0) : 0;
	int64_t rest = ((number % banks) + banks) % banks;
	int64_t before = (number - rest) / banks;
	int64_t one[2] = { 1, 1 };
	struct value *of[2] = { lane->data, NULL };
	struct value *word = words_before(p, def, banks);
	struct bank_word part = { lane->data, word };
	if (rest) {
		struct value *bank = make_address(p, 1, of, one, rest);
		struct value *less = make_address(p, 1, of, one, rest - banks);
		struct value *next = make_compare(p, CMPI_SGE, bank, banks);
		part.bank = make_select(p, next, less, bank);
		of[0] = word;
		struct value *yes = make_index(p, 1);
		of[1] = make_select(p, next, yes, make_index(p, 0));
		part.word = make_address(p, 2, of, one, before);
	} else if (before) {
		of[0] = word;
		part.word = make_address(p, 1, of, one, before);
	}
	return part;
}

static struct bank_word divided_part(struct process *p, struct value *subscript, int64_t banks)
{
	struct value *bank = make_divided(p, OP_REMSI, subscript, banks);
	return (struct bank_word){ bank, make_divided(p, OP_DIVSI, subscript, banks) };
}

struct nest_element nest_element_of(struct process *p, const struct nest_array *layout,
        struct value *const *old, struct value *const *made)
{
	struct nest_element element = { 0 };
	struct value *word[NEST_DIMS];
	int64_t stride[NEST_DIMS];
	int64_t inner = 1;
	for (int d = layout->rank - 1; d >= 0; d--) {
		stride[d] = inner;
		inner *= layout->shape[d] / layout->banks[d];
	}
	for (int d = 0; d < layout->rank; d++) {
		int64_t banks = layout->banks[d];
		const struct value *lane = old && banks > 1 ? lane_in(old[d], banks) : NULL;
		word[d] = made[d];
		if (banks == 1)
			continue;
		struct bank_word part =
		        lane ? lane_part(p, old[d], lane, banks) : divided_part(p, made[d], banks);
		element.index[element.indices++] = part.bank;
		word[d] = part.word;
	}
	element.index[element.indices++] =
	        layout->rank == 1 ? word[0] : make_address(p, layout->rank, word, stride, 0);
	return element;
}

/* --- filling and sending */

/* The loops over the words of a tensor, the innermost pipelined. */
struct word_loops {
	const struct nest_array *array;
	int loops;
	int64_t lanes;                    /* of a word */
	struct value *counter[NEST_DIMS]; /* of the words of a row, the last one */
};

static struct word_loops open_words(
        struct process *p, const struct nest_array *array, int64_t lanes)
{
	struct word_loops words = { .array = array, .lanes = lanes };
	int64_t trips[NEST_DIMS];
	for (int d = 0; d < array->rank; d++)
		trips[d] = array->extent[d] / (d + 1 == array->rank ? lanes : 1);
	words.loops = process_nest(p, array->rank, trips, 1, words.counter);
	for (int d = 0; d < array->rank; d++)
		words.counter[d] = words.counter[d] ? words.counter[d] : make_index(p, 0);
	return words;
}

/* Lane `lane` of all that the banks of a row hold together. */
static struct nest_element element_in_row(
        struct process *p, const struct word_loops *words, int64_t lane)
{
	const struct nest_array *array = words->array;
	int last = array->rank - 1;
	int64_t one = 1;
	int64_t banks = array->banks[last];
	struct value *subscript[NEST_DIMS];
	for (int d = 0; d < array->rank; d++)
		subscript[d] = make_address(p, 1, &words->counter[d], &one, array->margin[d]);
	if (words->lanes == 1)
		return nest_element_of(p, array, NULL, subscript);
	struct nest_array words_of_row = *array;
	words_of_row.banks[last] = 1;
	words_of_row.shape[last] = array->shape[last] / banks;
	struct value *group = make_divided(p, OP_DIVSI, words->counter[last], banks / words->lanes);
	subscript[last] = make_address(p, 1, &group, &one, array->margin[last] / banks);
	struct nest_element element = nest_element_of(p, &words_of_row, NULL, subscript);
	element.index[element.indices] = element.index[element.indices - 1];
	element.index[element.indices - 1] = make_index(p, lane);
	element.indices++;
	return element;
}

/* Is the lane of a row in the word at hand?  NULL: always. */
static struct value *is_in_word(struct process *p, const struct word_loops *words, int64_t lane)
{
	int last = words->array->rank - 1;
	int64_t parts = words->array->banks[last] / words->lanes;
	if (words->lanes == 1 || parts == 1)
		return NULL;
	struct value *part = make_divided(p, OP_REMSI, words->counter[last], parts);
	return make_equal(p, part, lane / words->lanes);
}

static int64_t lanes_in_row(const struct word_loops *words)
{
	return words->lanes == 1 ? 1 : words->array->banks[words->array->rank - 1];
}

static struct value *lane_of(struct process *p, struct value *word, int64_t lane)
{
	struct value *operand[2] = { word, make_index(p, lane) };
	return type_lanes(word->type) == 1
	        ? word
	        : make_op(p, OP_LANE, type_scalar(word->type), 2, operand);
}

void nest_fill(
        struct process *p, const struct nest_array *array, struct value *held, struct value *fifo)
{
	struct word_loops words = open_words(p, array, type_lanes(fifo->type->element));
	struct value *word = make_pop(p, NULL, fifo);
	for (int64_t lane = 0; lane < lanes_in_row(&words); lane++) {
		struct nest_element element = element_in_row(p, &words, lane);
		struct value *when = is_in_word(p, &words, lane);
		struct value *operand[NEST_DIMS + 4] = { when, lane_of(p, word, lane % words.lanes),
			held };
		for (int i = 0; i < element.indices; i++)
			operand[3 + i] = element.index[i];
		op_append(p->block,
		        op_new(p->module, when ? OP_WRITE : OP_MEMREF_STORE, NOWHERE,
		                element.indices + (when ? 3 : 2), operand + !when, 0, NULL));
	}
	process_close(p, words.loops);
}

static struct value *load_lane(
        struct process *p, const struct word_loops *words, struct value *held, int64_t lane)
{
	struct nest_element element = element_in_row(p, words, lane);
	struct value *operand[NEST_DIMS + 2] = { held };
	for (int i = 0; i < element.indices; i++)
		operand[1 + i] = element.index[i];
	return make_op(p, OP_MEMREF_LOAD, held->type->element, 1 + element.indices, operand);
}

void nest_send(
        struct process *p, const struct nest_array *array, struct value *held, struct value *fifo)
{
	const struct type *type = fifo->type->element;
	struct word_loops words = open_words(p, array, type_lanes(type));
	struct value *part[NEST_LANES_MOST] = { NULL };
	for (int64_t lane = 0; lane < lanes_in_row(&words); lane++) {
		struct value *when = is_in_word(p, &words, lane);
		struct value *one = load_lane(p, &words, held, lane);
		struct value **to = &part[lane % words.lanes];
		*to = *to ? make_select(p, when, one, *to) : one;
	}
	struct value *word = words.lanes == 1
	        ? part[0]
	        : make_op(p, OP_JOIN_LANES, type, (int)words.lanes, part);
	make_push(p, NULL, word, fifo);
	process_close(p, words.loops);
}
