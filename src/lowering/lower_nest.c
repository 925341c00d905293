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

/* Words of a row begin at other banks in turn: word c at that of phase c mod phases. Lane l of it
 * is in bank (lanes * phase + l) mod banks, in the group of banks (c / phases) * groups +
 * (lanes * phase + l) / banks. */
struct word_phases {
	int64_t lanes, banks, phases, groups;
	struct value *phase, *group; /* NULL phase: there is one; group: in front of phase 0 */
};

static struct word_phases phases_of(struct process *p, const struct word_loops *words)
{
	const struct nest_array *array = words->array;
	int last = array->rank - 1;
	struct word_phases phases = { .lanes = words->lanes,
		.banks = words->lanes == 1 ? 1 : array->banks[last] };
	phases.phases = phases.banks / common_divisor(words->lanes, phases.banks);
	phases.groups = words->lanes * phases.phases / phases.banks;
	struct value *turn = make_divided(p, OP_DIVSI, words->counter[last], phases.phases);
	phases.group =
	        make_address(p, 1, &turn, &phases.groups, array->margin[last] / phases.banks);
	if (phases.phases > 1)
		phases.phase = make_divided(p, OP_REMSI, words->counter[last], phases.phases);
	return phases;
}

/* The lane of the word that is in the bank in this phase; lanes or more: none is. */
static int64_t lane_in_bank(const struct word_phases *phases, int64_t bank, int64_t phase)
{
	int64_t from = phases->lanes * phase % phases->banks;
	return (bank - from + phases->banks) % phases->banks;
}

/* Where the bank's element of the word is; by bank and word. */
static struct nest_element element_in_bank(struct process *p, const struct word_loops *words,
        const struct word_phases *phases, int64_t bank)
{
	const struct nest_array *array = words->array;
	int last = array->rank - 1;
	int64_t one = 1;
	struct value *subscript[NEST_DIMS];
	for (int d = 0; d < array->rank; d++)
		subscript[d] = make_address(p, 1, &words->counter[d], &one, array->margin[d]);
	if (words->lanes == 1)
		return nest_element_of(p, array, NULL, subscript);
	struct nest_array groups = *array;
	groups.banks[last] = 1;
	groups.shape[last] = array->shape[last] / phases->banks;
	struct value *further = make_index(p, 0);
	for (int64_t k = 0; k < phases->phases; k++) {
		int64_t lane = lane_in_bank(phases, bank, k);
		int64_t group = (words->lanes * k + lane) / phases->banks;
		if (lane >= words->lanes || !group)
			continue;
		struct value *now = make_equal(p, phases->phase, k);
		further = make_select(p, now, make_index(p, group), further);
	}
	struct value *part[2] = { phases->group, further };
	int64_t factor[2] = { 1, 1 };
	subscript[last] = make_address(p, 2, part, factor, 0);
	struct nest_element element = nest_element_of(p, &groups, NULL, subscript);
	element.index[element.indices] = element.index[element.indices - 1];
	element.index[element.indices - 1] = make_index(p, bank);
	element.indices++;
	return element;
}

static struct value *either(struct process *p, struct value *a, struct value *b)
{
	struct value *operand[2] = { a, b };
	return a ? make_op(p, OP_ORI, a->type, 2, operand) : b;
}

/* The bank's element of the word that was read; *when: it has one, NULL: always. */
static struct value *lane_for_bank(struct process *p, const struct word_phases *phases,
        struct value *const *lane, int64_t bank, struct value **when)
{
	struct value *chosen = NULL;
	bool always = true;
	*when = NULL;
	for (int64_t k = 0; k < phases->phases; k++) {
		int64_t own = lane_in_bank(phases, bank, k);
		always = always && own < phases->lanes;
		if (own >= phases->lanes)
			continue;
		struct value *now = phases->phase ? make_equal(p, phases->phase, k) : NULL;
		chosen = chosen ? make_select(p, now, lane[own], chosen) : lane[own];
		*when = either(p, *when, now);
	}
	*when = always ? NULL : *when;
	return chosen;
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
	struct word_phases phases = phases_of(p, &words);
	struct value *word = make_pop(p, NULL, fifo);
	struct value *part[NEST_LANES_MOST] = { NULL };
	for (int64_t lane = 0; lane < words.lanes; lane++)
		part[lane] = lane_of(p, word, lane);
	for (int64_t bank = 0; bank < phases.banks; bank++) {
		struct nest_element element = element_in_bank(p, &words, &phases, bank);
		struct value *when;
		struct value *one = lane_for_bank(p, &phases, part, bank, &when);
		struct value *operand[NEST_DIMS + 4] = { when, one, held };
		for (int i = 0; i < element.indices; i++)
			operand[3 + i] = element.index[i];
		op_append(p->block,
		        op_new(p->module, when ? OP_WRITE : OP_MEMREF_STORE, NOWHERE,
		                element.indices + (when ? 3 : 2), operand + !when, 0, NULL));
	}
	process_close(p, words.loops);
}

static struct value *load_bank(struct process *p, const struct word_loops *words,
        const struct word_phases *phases, struct value *held, int64_t bank)
{
	struct nest_element element = element_in_bank(p, words, phases, bank);
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
	struct word_phases phases = phases_of(p, &words);
	struct value *part[NEST_LANES_MOST] = { NULL };
	for (int64_t bank = 0; bank < phases.banks; bank++) {
		struct value *one = load_bank(p, &words, &phases, held, bank);
		for (int64_t k = 0; k < phases.phases; k++) {
			int64_t lane = lane_in_bank(&phases, bank, k);
			if (lane >= words.lanes)
				continue;
			struct value **to = &part[lane];
			*to = *to ? make_select(p, make_equal(p, phases.phase, k), one, *to) : one;
		}
	}
	struct value *word = words.lanes == 1
	        ? part[0]
	        : make_op(p, OP_JOIN_LANES, type, (int)words.lanes, part);
	make_push(p, NULL, word, fifo);
	process_close(p, words.loops);
}
