/* Chooses which loops of a sequential nest run several iterations at once, and the banks of its
 * arrays: a lane finds its elements in banks of its own.
 * Before: for j: a[i][j] = b[i][j - 1]                  j is parallel
 * After:  for t: for l in 0 … 7 at once: j = 8 t + l    bank of a[i][j]: l, of b: (l - 1) mod 8 */
#include "base/number.h"
#include "ir/double_forms.h"
#include "predict/sequential_time.h"
#include "raise/raise_internal.h"
#include <math.h>
#include <string.h>

enum { LANES_MOST = 128, DRAIN_CYCLES = 16 };
/* Choices for the leaf of most work with which those of the others are tried. */
enum { CHOICES_KEPT = 8 };
/* A choice that is not the leaf's fastest replaces the best so far only if the time of all leaves
 * falls by this share. */
#define OTHER_SHARE 0.05
/* A lane or a bank is taken only if it saves this share of the time of the longest loop. */
#define LANE_SHARE 0.0003
enum {
	WORD_MOST = 16,    /* elements of a word that fills an array */
	WORDS_LEAST = 256, /* arrays of fewer elements are filled one by one */
	BANKS_LEAST = 512, /* of an array, at most; more on boards where each has so many LUTs */
	BANKS_MOST = 1024,
	BANK_LUT = 400
};

/* Loops with lanes of a leaf. */
struct lane_choice {
	int loops;
	int counter[POLY_LANES];
	int64_t lanes[POLY_LANES];
	int64_t interval; /* cycles between iterations; 0: not known */
};

/* Statements that run in the loops of a leaf, and what they access. */
struct leaf_accesses {
	struct arena *arena;
	VEC(const struct poly_access *) reads; /* whose words are not those of writes before */
	VEC(const struct poly_access *) all;
};

struct nest_units;

struct lane_search {
	struct raising *r;
	struct raise_group *group;
	const struct poly_leaf *leaf;
	struct leaf_accesses accesses;
	const struct nest_units *units; /* of the leaves before */
	int64_t most;                   /* lanes of a loop for which there are operators */
	double lane_time;               /* that a lane has to save */
	int64_t (*before)[POLY_DIMS];
	int wanted, kept; /* best choices, the fastest first */
	struct lane_choice best[CHOICES_KEPT];
	double time[CHOICES_KEPT];
};

/* --- banks */

static bool uses(const struct poly_statement *statement, int array)
{
	bool found = statement->write.array == array;
	for (int j = 0; j < statement->reads; j++)
		found = found || statement->read[j].array == array;
	return found;
}

static int64_t banks_most(const struct raising *r)
{
	int64_t most = r->options->platform->die[0].lut / BANK_LUT;
	most = most < BANKS_LEAST ? BANKS_LEAST : most;
	return most > BANKS_MOST ? BANKS_MOST : most;
}

static int64_t banks_of(const struct lane_search *s, int array)
{
	int64_t banks = 1;
	for (int d = 0; d < s->r->program.array[array].rank; d++)
		banks *= s->group->banks[array][d];
	return banks;
}

static bool same_element(const struct poly_access *a, const struct poly_access *b)
{
	return a->array == b->array && !poly_is_computed(a) && !poly_is_computed(b) &&
	        !memcmp(a->subscript, b->subscript, sizeof a->subscript);
}

/* Is the word one that the iteration has written before it reads it?  It comes from there. */
static bool is_forwarded(const struct raising *r, const struct poly_leaf *first,
        const struct poly_leaf *reader, const struct poly_access *read)
{
	bool forwarded = false;
	for (; first != reader; first = first->next) {
		const struct poly_access *write = &r->program.statement[first->statement].write;
		if (write->array == read->array)
			forwarded = same_element(write, read);
	}
	return forwarded;
}

static struct leaf_accesses accesses_of(const struct raising *r, const struct poly_leaf *leaf)
{
	struct leaf_accesses found = { .arena = r->arena };
	const struct poly_leaf *first = leaf;
	for (; leaf; leaf = leaf->next) {
		const struct poly_statement *statement = &r->program.statement[leaf->statement];
		VEC_PUSH(r->arena, &found.all, &statement->write);
		for (int j = 0; j < statement->reads; j++) {
			VEC_PUSH(r->arena, &found.all, &statement->read[j]);
			if (!is_forwarded(r, first, leaf, &statement->read[j]))
				VEC_PUSH(r->arena, &found.reads, &statement->read[j]);
		}
	}
	return found;
}

/* Words of an array that an iteration of the leaf reads. */
static int64_t words_read(const struct leaf_accesses *accesses, int array)
{
	int64_t words = 0;
	for (size_t j = 0; j < accesses->reads.count; j++) {
		const struct poly_access *read = accesses->reads.data[j];
		bool again = read->array != array;
		for (size_t k = 0; k < j; k++)
			again = again || same_element(read, accesses->reads.data[k]);
		words += !again;
	}
	return words;
}

/* [arrays] Words that an iteration of some leaf reads, at most, of those that the nest uses. */
static int64_t *most_words(
        const struct raising *r, const struct raise_group *group, const struct poly_schedule *of)
{
	int64_t *words = ARENA_ARRAY(r->arena, int64_t, r->program.arrays + 1);
	for (int a = 0; a < r->program.arrays; a++)
		for (int s = 0; s < r->statements && !words[a]; s++)
			words[a] = group->inside[s] && uses(&r->program.statement[s], a);
	for (int i = 0; i < of->leaves; i++) {
		struct leaf_accesses accesses = accesses_of(r, of->leaf[i]);
		for (int a = 0; a < r->program.arrays; a++) {
			int64_t own = words_read(&accesses, a);
			words[a] = own > words[a] ? own : words[a];
		}
	}
	return words;
}

/* Words of a row that begin before its first element or end behind its last one. */
static int64_t words_around(
        const struct raising *r, const struct raise_group *group, int array, int dim)
{
	int64_t low = 0;
	int64_t high = 0;
	for (int i = 0; i < r->statements; i++) {
		const struct poly_statement *statement = &r->program.statement[i];
		for (int j = 0; group->inside[i] && j < statement->reads; j++) {
			int64_t number = statement->read[j].subscript[dim].constant;
			bool own = statement->read[j].array == array;
			low = own && number < low ? number : low;
			high = own && number > high ? number : high;
		}
	}
	return (low < 0) + (high > 0);
}

/* Can the lanes of another dim move in whole words of this one, as those of A[i][i]? */
static bool may_widen(const int64_t *banks, int rank, int dim)
{
	for (int d = 0; d < rank; d++)
		if (d != dim && banks[dim] > 1 && banks[d] % banks[dim] == 0)
			return true;
	return false;
}

static struct nest_memory array_cost(
        const struct raising *r, const struct raise_group *group, int array)
{
	const struct region_array *of = &r->region->arrays.data[array];
	bool uram = r->options->platform->die[0].uram > 0;
	int64_t bits = type_bits(of->type);
	int64_t banks = 1;
	int64_t words = 1;
	bool margins = false;
	for (int d = 0; d < of->rank; d++) {
		int64_t banks_of_row = group->banks[array][d];
		int64_t own = (of->extent[d] + banks_of_row - 1) / banks_of_row;
		int64_t around = banks_of_row > 1 ? words_around(r, group, array, d) : 0;
		banks *= banks_of_row;
		words *= own + around;
		margins = margins || around || may_widen(group->banks[array], of->rank, d);
	}
	words += margins ? words / 8 : 0; /* that reach farther */
	return sequential_array(bits, words, banks, uram);
}

/* A bank gives a word a cycle. Copies of an array for which there is room, at most, if those that
 * are read less have fewer; 0: the arrays do not fit. */
static int64_t copies_held(const struct raising *r, const struct raise_group *group)
{
	struct nest_memory *cost = ARENA_ARRAY(r->arena, struct nest_memory, r->program.arrays + 1);
	struct nest_memory *memory =
	        ARENA_ARRAY(r->arena, struct nest_memory, r->program.arrays + 1);
	int64_t copies = 1;
	for (int a = 0; a < r->program.arrays; a++) {
		if (group->words[a])
			cost[a] = array_cost(r, group, a);
		copies = group->words[a] > copies ? group->words[a] : copies;
	}
	for (; copies; copies--) {
		for (int a = 0; a < r->program.arrays; a++)
			memory[a] = sequential_copies(
			        &cost[a], group->words[a] < copies ? group->words[a] : copies);
		if (sequential_is_held(r->options->platform, r->program.arrays, memory))
			break;
	}
	return copies;
}

/* Cycles from an iteration of the leaf to the next one, with so many copies. */
static int64_t interval_of(
        const struct raising *r, const struct leaf_accesses *accesses, int64_t copies)
{
	int64_t most = 1;
	for (int a = 0; a < r->program.arrays; a++) {
		int64_t cycles = (words_read(accesses, a) + copies - 1) / copies;
		most = cycles > most ? cycles : most;
	}
	return most;
}

/* The subscript in terms of the leaf's loops: a skewed counter moves with parallel ones. */
static struct poly_form form_in_loops(const struct poly_leaf *leaf, const struct poly_form *form)
{
	struct poly_form moved = *form;
	for (int d = 0; d < POLY_DIMS; d++)
		for (int other = 0; form->coefficient[d] && other < POLY_DIMS; other++)
			moved.coefficient[other] += form->coefficient[d] * leaf->skew[d][other];
	return moved;
}

/* The dim of the access whose subscript is this counter and a number, with these banks or still
 * without; -1: there is none. -2: the counter is in no subscript. */
static int banked_dim(
        const struct lane_search *s, const struct poly_access *access, int counter, int64_t lanes)
{
	int found = -2;
	if (poly_is_computed(access))
		return -1;
	for (int d = 0; d < s->r->program.array[access->array].rank; d++) {
		struct poly_form form = form_in_loops(s->leaf, &access->subscript[d]);
		int64_t banks = s->group->banks[access->array][d];
		bool alone = form.coefficient[counter] == 1;
		if (!form.coefficient[counter])
			continue;
		for (int other = 0; other < POLY_DIMS; other++)
			alone = alone && (other == counter || !form.coefficient[other]);
		if (alone && banks == lanes)
			return d;
		if (alone && banks == 1 && found < 0 &&
		        banks_of(s, access->array) * lanes <= banks_most(s->r))
			found = d;
		else if (found == -2)
			found = -1;
	}
	return found;
}

static bool can_have_banks(const struct lane_search *s, int counter, int64_t lanes)
{
	for (size_t i = 0; i < s->accesses.all.count; i++)
		if (banked_dim(s, s->accesses.all.data[i], counter, lanes) == -1)
			return false;
	return true;
}

static void set_banks(struct lane_search *s, const struct lane_choice *choice)
{
	for (int l = 0; l < choice->loops; l++)
		for (size_t i = 0; i < s->accesses.all.count; i++) {
			const struct poly_access *access = s->accesses.all.data[i];
			int d = banked_dim(s, access, choice->counter[l], choice->lanes[l]);
			if (d >= 0)
				s->group->banks[access->array][d] = choice->lanes[l];
		}
}

/* Banks that the arrays get with the choice. */
static int64_t new_banks(struct lane_search *s, const struct lane_choice *choice)
{
	int64_t banks = 0;
	for (size_t i = 0; i < s->accesses.all.count; i++) {
		const struct poly_access *access = s->accesses.all.data[i];
		int64_t factor = 1;
		for (int l = 0; l < choice->loops; l++) {
			int d = banked_dim(s, access, choice->counter[l], choice->lanes[l]);
			if (d >= 0 && s->group->banks[access->array][d] == 1)
				factor *= choice->lanes[l];
		}
		int64_t more = banks_of(s, access->array) * (factor - 1);
		banks = more > banks ? more : banks;
	}
	return banks;
}

/* Has each lane of the choice banks of its own, whichever other lanes use the array? */
static bool has_own_banks(const struct lane_search *s, const struct lane_choice *choice)
{
	for (int l = 0; l < choice->loops; l++)
		for (size_t i = 0; i < s->accesses.all.count; i++) {
			const struct poly_access *access = s->accesses.all.data[i];
			int d = banked_dim(s, access, choice->counter[l], choice->lanes[l]);
			if (d == -1 ||
			        (d >= 0 && s->group->banks[access->array][d] != choice->lanes[l]))
				return false;
		}
	return true;
}

/* Cycles between iterations of the leaf with the choice; 0: its arrays do not fit then. */
static int64_t interval_with(struct lane_search *s, const struct lane_choice *choice)
{
	size_t size = sizeof *s->group->banks * (size_t)s->r->program.arrays;
	memcpy(s->before, s->group->banks, size);
	set_banks(s, choice);
	int64_t copies = has_own_banks(s, choice) ? copies_held(s->r, s->group) : 0;
	memcpy(s->group->banks, s->before, size);
	if (!copies && choice->loops)
		return 0;
	return interval_of(s->r, &s->accesses, copies ? copies : 1);
}

/* --- operators */

enum { ACCESS_LUT = 250 }; /* addresses and conditions of an access in a lane, about */

/* Operators of a nest, whose loops run one after the other: of each kind as many as the loop takes
 * that takes most. */
struct nest_units {
	int64_t count[OP_COUNT][2]; /* of other types, of double */
	int64_t accesses;           /* at once */
};

static int64_t all_lanes(const struct lane_choice *choice)
{
	int64_t lanes = 1;
	for (int l = 0; l < choice->loops; l++)
		lanes *= choice->lanes[l];
	return lanes;
}

static const struct body *body_of(const struct raising *r, const struct poly_leaf *leaf)
{
	return &r->region->statements.data[leaf->statement].body;
}

/* Does a number that a form of the leaf's counters gives change with this counter? */
static bool form_varies(const struct poly_leaf *leaf, const struct poly_form *form, int counter)
{
	return form_in_loops(leaf, form).coefficient[counter];
}

static bool read_varies(
        const struct raising *r, const struct poly_leaf *leaf, int64_t read, int counter)
{
	const struct poly_access *access = &r->program.statement[leaf->statement].read[read];
	bool varies = access->when || poly_is_computed(access);
	for (int d = 0; d < r->program.array[access->array].rank; d++)
		varies = varies || form_varies(leaf, &access->subscript[d], counter);
	return varies;
}

/* [nodes of the body] Are they other values in other lanes of the loop over this counter? */
static bool *varying_nodes(const struct raising *r, const struct poly_leaf *leaf, int counter)
{
	const struct body *body = body_of(r, leaf);
	bool *varies = ARENA_ARRAY(r->arena, bool, body->count + 1);
	for (int n = 0; n < body->count; n++) {
		const struct node *node = &body->node[n];
		struct poly_form own = { 0 };
		if (node->kind == NODE_OPERAND)
			varies[n] = read_varies(r, leaf, node->integer, counter);
		if (node->kind != NODE_OP)
			continue;
		if (node->code == OP_INDEX)
			own.coefficient[node->integer] = 1;
		varies[n] = form_varies(leaf, &own, counter);
		for (int k = 0; k < body_arguments(node); k++)
			varies[n] = varies[n] || varies[node->argument[k]];
	}
	return varies;
}

/* What is the same in all lanes of a loop is computed once, in front of it. */
static void add_units(const struct raising *r, const struct poly_leaf *leaf,
        const struct lane_choice *choice, struct nest_units *to)
{
	const struct body *body = body_of(r, leaf);
	int64_t *copies = ARENA_ARRAY(r->arena, int64_t, body->count + 1);
	int64_t lanes = 1;
	for (int l = 0; l < choice->loops; l++) {
		const bool *varies = varying_nodes(r, leaf, choice->counter[l]);
		lanes *= choice->lanes[l];
		for (int n = 0; n < body->count; n++)
			copies[n] = varies[n] ? lanes : copies[n];
	}
	for (int n = 0; n < body->count; n++) {
		const struct node *node = &body->node[n];
		if (node->kind == NODE_OP)
			to->count[node->code == OP_SUBF ? OP_ADDF : node->code]
			         [type_is_double(node->type)] += copies[n] ? copies[n] : 1;
	}
}

/* The operators with those of a leaf. Iterations with cycles between them share operators. */
static struct nest_units with_lanes(const struct raising *r, const struct nest_units *units,
        const struct poly_leaf *leaf, const struct lane_choice *choice)
{
	int64_t interval = choice->interval ? choice->interval : 1;
	struct nest_units own = { .accesses = 0 };
	for (const struct poly_leaf *part = leaf; part; part = part->next) {
		add_units(r, part, choice, &own);
		own.accesses +=
		        all_lanes(choice) * (1 + r->program.statement[part->statement].reads);
	}
	own.accesses = own.accesses > units->accesses ? own.accesses : units->accesses;
	for (int code = 0; code < OP_COUNT; code++)
		for (int wide = 0; wide < 2; wide++) {
			int64_t *count = &own.count[code][wide];
			int64_t before = units->count[code][wide];
			*count = (*count + interval - 1) / interval;
			*count = before > *count ? before : *count;
		}
	return own;
}

static struct resources cost_of(const struct raising *r, const struct nest_units *units)
{
	struct module *module = r->module;
	struct resources sum = { .lut = ACCESS_LUT * units->accesses };
	for (int code = 0; code < OP_COUNT; code++)
		for (int wide = 0; wide < 2; wide++) {
			int64_t count = units->count[code][wide];
			if (!count)
				continue;
			struct operator_cost cost = platform_operator(r->options->platform,
			        (enum op_code)code, type_float(module, wide ? 64 : 32));
			sum.dsp += count * cost.dsp;
			sum.lut += count * cost.lut;
		}
	return sum;
}

static bool is_within_budget(const struct raising *r, int64_t most, const struct nest_units *units)
{
	struct resources cost = cost_of(r, units);
	return cost.dsp <= most && cost.lut <= r->options->lut;
}

/* Lanes of a loop of the leaf for which there is room in the nest, at most. */
static int64_t most_lanes(const struct raising *r, int64_t dsp, const struct nest_units *units,
        const struct poly_leaf *leaf)
{
	int64_t most = 1;
	struct leaf_accesses accesses = accesses_of(r, leaf);
	int64_t interval = interval_of(r, &accesses, 1);
	for (int i = 0; i < leaf->loops; i++) {
		struct lane_choice more = { 1, { leaf->counter[i] }, { most + 1 }, interval };
		for (; more.lanes[0] <= LANES_MOST; more.lanes[0]++) {
			struct nest_units own = with_lanes(r, units, leaf, &more);
			if (!is_within_budget(r, dsp, &own))
				break;
			most = more.lanes[0];
		}
	}
	return most;
}

/* --- choosing */

/* Iterations of the loop over a counter, from words that begin at multiples of the lanes. */
static double trips_of(const struct poly_leaf *leaf, int counter, int64_t lanes)
{
	int64_t low = leaf->low[counter];
	int64_t high = leaf->high[counter];
	if (!leaf->parallel[counter])
		return 1;
	double exact = (double)(floor_div(high, lanes) - floor_div(low, lanes) + 1);
	double mean = (double)(high - low + 1) / (double)lanes + (lanes > 1 ? 0.5 : 0);
	return (exact + mean) / 2;
}

static int64_t lanes_of(const struct lane_choice *choice, int counter)
{
	for (int l = 0; l < choice->loops; l++)
		if (choice->counter[l] == counter)
			return choice->lanes[l];
	return 1;
}

static bool is_inner(const struct poly_leaf *leaf, int counter)
{
	for (int i = 0; i < leaf->loops; i++)
		if (leaf->counter[i] == counter)
			return true;
	return false;
}

static bool has_operators(const struct lane_search *s, const struct lane_choice *choice)
{
	struct nest_units own = with_lanes(s->r, s->units, s->leaf, choice);
	return !choice->loops || is_within_budget(s->r, s->group->dsp, &own);
}

/* Time of the leaf with the choice, and of what its lanes and banks have to save. */
static double time_with(struct lane_search *s, const struct lane_choice *choice)
{
	double all = 1;
	double longest = 1;
	for (int i = 0; i < s->leaf->loops; i++) {
		int counter = s->leaf->counter[i];
		double trips = trips_of(s->leaf, counter, lanes_of(choice, counter));
		all *= trips;
		longest = trips > longest ? trips : longest;
	}
	double drains = s->leaf->is_box ? 1 : all / longest;
	double time =
	        all * (double)(choice->interval ? choice->interval : 1) + DRAIN_CYCLES * drains;
	for (int d = 0; d < POLY_DIMS; d++)
		if (!is_inner(s->leaf, d))
			time *= (double)(s->leaf->high[d] - s->leaf->low[d] + 1);
	return time + s->lane_time * (double)(all_lanes(choice) + new_banks(s, choice));
}

static bool is_slower_than_kept(const struct lane_search *s, double time)
{
	return s->kept == s->wanted && time >= s->time[s->kept - 1];
}

static void try_choice(struct lane_search *s, const struct lane_choice *lanes)
{
	struct lane_choice choice = *lanes;
	if (is_slower_than_kept(s, time_with(s, &choice)))
		return;
	choice.interval = interval_with(s, &choice);
	if (!choice.interval || !has_operators(s, &choice))
		return;
	double time = time_with(s, &choice);
	if (is_slower_than_kept(s, time))
		return;
	s->kept += s->kept < s->wanted;
	int at = s->kept - 1;
	for (; at > 0 && s->time[at - 1] > time; at--) {
		s->time[at] = s->time[at - 1];
		s->best[at] = s->best[at - 1];
	}
	s->time[at] = time;
	s->best[at] = choice;
}

/* May the loop over this counter have so many lanes? It is parallel and long enough, and its arrays
 * can have the banks. */
static bool allows_lanes(const struct lane_search *s, int counter, int64_t lanes)
{
	return s->leaf->parallel[counter] &&
	        lanes <= s->leaf->high[counter] - s->leaf->low[counter] + 1 &&
	        can_have_banks(s, counter, lanes);
}

static void try_second(struct lane_search *s, const struct lane_choice *first, const bool *may)
{
	for (int i = 0; i < s->leaf->loops; i++) {
		int counter = s->leaf->counter[i];
		if (counter <= first->counter[0])
			continue;
		for (int64_t lanes = 2; lanes * first->lanes[0] <= s->most; lanes++) {
			struct lane_choice both = *first;
			both.loops = 2;
			both.counter[1] = counter;
			both.lanes[1] = lanes;
			if (may[counter * (LANES_MOST + 1) + lanes])
				try_choice(s, &both);
		}
	}
}

static void search(struct lane_search *s)
{
	bool *may = ARENA_ARRAY(s->r->arena, bool, POLY_DIMS *(LANES_MOST + 1));
	for (int i = 0; i < s->leaf->loops; i++)
		for (int64_t lanes = 2; lanes <= s->most; lanes++)
			may[s->leaf->counter[i] * (LANES_MOST + 1) + lanes] =
			        allows_lanes(s, s->leaf->counter[i], lanes);
	struct lane_choice choice = { 0 };
	try_choice(s, &choice);
	for (int i = 0; i < s->leaf->loops; i++)
		for (int64_t lanes = 2; lanes <= s->most; lanes++) {
			choice = (struct lane_choice){ 1, { s->leaf->counter[i] }, { lanes }, 0 };
			if (!may[s->leaf->counter[i] * (LANES_MOST + 1) + lanes])
				continue;
			try_choice(s, &choice);
			try_second(s, &choice, may);
		}
}

/* --- leaves */

/* The longest loop inside. */
static void order_loops(struct poly_leaf *leaf, const struct lane_choice *choice)
{
	for (int i = 1; i < leaf->loops; i++)
		for (int j = i; j > 0; j--) {
			int *pair = &leaf->counter[j - 1];
			double first = trips_of(leaf, pair[0], lanes_of(choice, pair[0]));
			double second = trips_of(leaf, pair[1], lanes_of(choice, pair[1]));
			int counter = pair[0];
			if (first <= second)
				break;
			pair[0] = pair[1];
			pair[1] = counter;
		}
}

static double work_of(const struct poly_leaf *leaf)
{
	double work = 1;
	for (int d = 0; d < POLY_DIMS; d++)
		work *= (double)(leaf->high[d] - leaf->low[d] + 1);
	return work;
}

/* Is there a node of the same operation in front? */
static bool is_repeated(const struct body *body, int n)
{
	for (int k = 0; k < n; k++)
		if (body->node[k].kind == NODE_OP && body->node[k].code == body->node[n].code &&
		        body->node[k].type == body->node[n].type)
			return true;
	return false;
}

/* DSPs of an iteration of a statement; shared: each operation has one operator, whose parts take
 * turns. */
static int64_t dsp_of(const struct raising *r, int statement, bool shared)
{
	const struct body *body = &r->region->statements.data[statement].body;
	int64_t dsp = 0;
	for (int n = 0; n < body->count; n++) {
		if (body->node[n].kind != NODE_OP || (shared && is_repeated(body, n)))
			continue;
		struct operator_cost cost = platform_operator(
		        r->options->platform, body->node[n].code, body->node[n].type);
		int64_t parts = cost.parts < SCALAR_INTERVAL ? cost.parts : SCALAR_INTERVAL;
		dsp += shared && parts > 1 ? (cost.dsp + parts - 1) / parts : cost.dsp;
	}
	return dsp;
}

/* Operators that the iterations of a leaf take in all, about. */
static double weight_of(const struct raising *r, const struct poly_leaf *leaf)
{
	double each = 0;
	for (const struct poly_leaf *part = leaf; part; part = part->next)
		each += 1 + (double)dsp_of(r, part->statement, false);
	return each * work_of(leaf);
}

/* The part of the box around a leaf that is iterations of its statement, at most 1. */
static double share_of_box(const struct raising *r, const struct poly_leaf *leaf)
{
	double points = (double)raise_points(&r->program.statement[leaf->statement]);
	double box = work_of(leaf);
	return points && points < box ? points / box : 1;
}

/* What is known of the leaves whose lanes are chosen. */
struct chosen_lanes {
	struct nest_units units;
	double longest, sum; /* of their times */
};

/* Takes the n-th fastest choice, or the slowest if there are fewer. */
static void choose_lanes(struct raising *r, struct raise_group *group, struct poly_leaf *leaf,
        int nth, struct chosen_lanes *chosen)
{
	struct lane_search s = {
		.r = r, .group = group, .leaf = leaf, .units = &chosen->units, .wanted = nth + 1
	};
	s.accesses = accesses_of(r, leaf);
	s.before = arena_alloc(r->arena, sizeof *s.before * (size_t)(r->program.arrays + 1));
	s.most = most_lanes(r, group->dsp, s.units, leaf);
	s.lane_time = chosen->longest * LANE_SHARE;
	search(&s);
	const struct lane_choice *best = &s.best[s.kept - 1];
	double time = s.time[s.kept - 1];
	chosen->longest = time > chosen->longest ? time : chosen->longest;
	chosen->sum += time * share_of_box(r, leaf);
	set_banks(&s, best);
	leaf->lane_loops = best->loops;
	memcpy(leaf->lane_counter, best->counter, sizeof leaf->lane_counter);
	memcpy(leaf->lanes, best->lanes, sizeof leaf->lanes);
	chosen->units = with_lanes(r, s.units, leaf, best);
	order_loops(leaf, best);
}

/* --- extents: a word that begins before the first element, or ends behind the last one */

static int64_t round_up(int64_t number, int64_t to)
{
	return (number + to - 1) / to * to;
}

static void widen(struct raise_group *group, const struct poly_access *access, int d,
        const struct poly_leaf *leaf)
{
	int64_t *margin = &group->margin[access->array][d];
	int64_t *extent = &group->extent[access->array][d];
	int64_t banks = group->banks[access->array][d];
	for (int l = 0; l < leaf->lane_loops; l++) {
		int counter = leaf->lane_counter[l];
		int64_t lanes = leaf->lanes[l];
		if (!access->subscript[d].coefficient[counter] || lanes % banks)
			continue; /* lanes without effect find element 0 */
		int64_t low = floor_div(leaf->low[counter], lanes) * lanes;
		int64_t high = floor_div(leaf->high[counter], lanes) * lanes + lanes - 1;
		low += access->subscript[d].constant;
		high += access->subscript[d].constant;
		*margin = low < -*margin ? round_up(-low, banks) : *margin;
		*extent = high >= *extent ? high + 1 : *extent;
	}
}

/* Rows that have one bank get some, so that arrays are filled and sent in words, if as many copies
 * have room. */
static void widen_rows(struct raising *r, struct raise_group *group)
{
	for (int a = 0; a < r->program.arrays; a++) {
		const struct poly_array *array = &r->program.array[a];
		int64_t all = 1;
		int64_t banks = 1;
		int64_t words = WORD_MOST;
		int64_t copies = copies_held(r, group);
		for (int d = 0; d < array->rank; d++) {
			all *= array->extent[d];
			banks *= group->banks[a][d];
		}
		if (!array->rank || group->banks[a][array->rank - 1] > 1 || all < WORDS_LEAST)
			continue;
		do {
			group->banks[a][array->rank - 1] = words;
			words /= 2;
		} while (words &&
		        (array->extent[array->rank - 1] % (2 * words) ||
		                banks * 2 * words > banks_most(r) ||
		                copies_held(r, group) < copies));
	}
}

static void find_extents(struct raising *r, struct raise_group *group, struct poly_schedule *of)
{
	for (int a = 0; a < r->program.arrays; a++)
		for (int d = 0; d < r->program.array[a].rank; d++)
			group->extent[a][d] = r->program.array[a].extent[d];
	for (int i = 0; i < of->leaves; i++) {
		struct leaf_accesses accesses = accesses_of(r, of->leaf[i]);
		for (size_t k = 0; k < accesses.all.count; k++) {
			const struct poly_access *access = accesses.all.data[k];
			for (int d = 0; d < r->program.array[access->array].rank; d++)
				if (group->banks[access->array][d] > 1)
					widen(group, access, d, of->leaf[i]);
		}
	}
	for (int a = 0; a < r->program.arrays; a++)
		for (int d = 0; d < r->program.array[a].rank; d++)
			group->extent[a][d] = round_up(
			        group->extent[a][d] + group->margin[a][d], group->banks[a][d]);
}

/* --- all of it */

static void clear_banks(struct raising *r, struct raise_group *group)
{
	size_t arrays = (size_t)r->program.arrays;
	group->banks = arena_alloc(r->arena, sizeof *group->banks * (arrays + 1));
	group->margin = arena_alloc(r->arena, sizeof *group->margin * (arrays + 1));
	group->extent = arena_alloc(r->arena, sizeof *group->extent * (arrays + 1));
	for (size_t a = 0; a < arrays; a++)
		for (int d = 0; d < POLY_DIMS; d++) {
			group->banks[a][d] = 1;
			group->margin[a][d] = 0;
			group->extent[a][d] = r->program.array[a].extent[d];
		}
}

/* Cycles in which the arrays are filled or sent. */
static double cycles_of_words(const struct raising *r, const struct raise_group *group)
{
	double cycles = 0;
	for (int a = 0; a < r->program.arrays; a++) {
		const struct poly_array *array = &r->program.array[a];
		double all = 1;
		int64_t word = 1;
		bool used = false;
		for (int s = 0; s < r->statements && !used; s++)
			used = group->inside[s] && uses(&r->program.statement[s], a);
		for (int d = 0; d < array->rank; d++)
			all *= (double)array->extent[d];
		while (array->rank && 2 * word <= WORD_MOST &&
		        2 * word <= group->banks[a][array->rank - 1] &&
		        array->extent[array->rank - 1] % (2 * word) == 0)
			word *= 2;
		cycles += used ? all / (double)word : 0;
	}
	return cycles;
}

/* The leaf of most work, or of most operators, whose lanes are not chosen. */
static int next_leaf(
        const struct raising *r, const struct poly_schedule *schedule, const bool *done, bool work)
{
	int most = -1;
	double least = 0;
	for (int i = 0; i < schedule->leaves; i++) {
		const struct poly_leaf *leaf = schedule->leaf[i];
		double own = work ? work_of(leaf) : weight_of(r, leaf);
		if (done[i] || (most >= 0 && own <= least))
			continue;
		most = i;
		least = own;
	}
	return most;
}

/* Chooses the lanes of all leaves: of the first one the n-th fastest choice; even numbers begin
 * with most work, odd ones with most operators. Returns about how many cycles they take. */
static struct chosen_lanes choose_with(
        struct raising *r, struct raise_group *group, struct poly_schedule *schedule, int number)
{
	bool *done = ARENA_ARRAY(r->arena, bool, schedule->leaves);
	struct chosen_lanes chosen = { .longest = 0 };
	clear_banks(r, group);
	for (int i = 0; i < schedule->leaves; i++)
		chosen.units =
		        with_lanes(r, &chosen.units, schedule->leaf[i], &(struct lane_choice){ 0 });
	for (int n = 0; n < schedule->leaves; n++) {
		int next = next_leaf(r, schedule, done, number % 2 == 0);
		done[next] = true;
		choose_lanes(r, group, schedule->leaf[next], n ? 0 : number / 2, &chosen);
	}
	widen_rows(r, group);
	chosen.sum += cycles_of_words(r, group);
	return chosen;
}

static void choose_all(struct raising *r, struct raise_group *group, struct poly_schedule *schedule)
{
	struct poly_leaf *before = ARENA_ARRAY(r->arena, struct poly_leaf, schedule->leaves + 1);
	int best = 0;
	double least = HUGE_VAL;
	group->words = most_words(r, group, schedule);
	for (int i = 0; i < schedule->leaves; i++)
		before[i] = *schedule->leaf[i];
	for (int number = 0; number <= 2 * CHOICES_KEPT; number++) {
		bool last = number == 2 * CHOICES_KEPT;
		for (int i = 0; i < schedule->leaves; i++)
			*schedule->leaf[i] = before[i];
		struct chosen_lanes chosen = choose_with(r, group, schedule, last ? best : number);
		group->used_dsp = cost_of(r, &chosen.units).dsp;
		if (!last && chosen.sum < (number ? 1 - OTHER_SHARE : 1) * least) {
			best = number;
			least = chosen.sum;
		}
	}
	find_extents(r, group, schedule);
}

/* DSPs of an iteration of what a group runs at once: loop nests, of which one is at a time. */
static int64_t least_dsp(const struct raising *r, int group)
{
	int64_t most = 0;
	for (int i = 0; i < r->readers; i++) {
		int64_t sum = 0;
		for (int k = 0; k < r->readers; k++)
			if (r->live[k] && raise_group_of(r, k) == group &&
			        raise_statement(r, k)->position[0] ==
			                raise_statement(r, i)->position[0])
				sum += dsp_of(
				        r, r->instance[k].statement, !raise_statement(r, k)->dims);
		most = sum > most ? sum : most;
	}
	return most;
}

/* DSPs of a group. Each statement outside first has those of one iteration, and so has the group.
 * The rest is divided by the square root of the work: so the sum of the times of what runs one
 * after the other is least. */
static int64_t share_of(const struct raising *r, int group)
{
	double all = 0;
	double own = 0;
	int64_t least = least_dsp(r, group);
	int64_t left = r->options->dsp - least;
	for (int i = 0; i < r->readers; i++) {
		int statement = r->instance[i].statement;
		bool scalar = !raise_statement(r, i)->dims;
		int64_t dsp = dsp_of(r, statement, scalar);
		double work = (double)dsp;
		for (int d = 0; d < raise_statement(r, i)->dims; d++)
			work *= (double)(r->flow[i].high[d] - r->flow[i].low[d] + 1);
		if (!r->live[i])
			continue;
		bool inside = r->group[statement] == group;
		all += inside ? 0 : sqrt(work);
		own += inside ? work : 0;
		left -= inside ? 0 : dsp;
	}
	if (!all)
		return r->options->dsp;
	own = sqrt(own);
	all += own;
	return least + (left > 0 ? (int64_t)((double)left * own / all) : 0);
}

/* Does the statement do no more than to copy? */
static bool is_light(const struct raising *r, int statement)
{
	const struct body *body = &r->region->statements.data[statement].body;
	for (int n = 0; n < body->count; n++)
		if (body->node[n].kind == NODE_OP)
			return false;
	return true;
}

static struct poly_traits traits_of(const struct raising *r, int group)
{
	bool *light = ARENA_ARRAY(r->arena, bool, r->statements + 1);
	for (int s = 0; s < r->statements; s++)
		light[s] = is_light(r, s);
	return (struct poly_traits){ raise_alike(r, group), light };
}

struct poly_step *raise_nest(struct raising *r, struct poly *poly, int number)
{
	struct raise_group *group = &r->groups.data[number];
	for (int s = 0; r->options->reassociate && s < r->statements; s++)
		if (group->inside[s])
			raise_factors(r, s);
	struct poly_traits traits = traits_of(r, number);
	struct poly_schedule *schedule = poly_schedule_new(poly, group->inside, &traits);
	struct poly_step *step = NULL;
	clear_banks(r, group);
	if (schedule) {
		group->dsp = r->options->platform ? share_of(r, number) : 0;
		if (r->options->platform)
			choose_all(r, group, schedule);
		step = poly_nest(poly, group->inside, schedule);
		poly_schedule_free(schedule);
	}
	if (step)
		return step;
	clear_banks(r, group);
	return poly_nest(poly, group->inside, NULL);
}
