/* Makes the sequential nest of a group of statements.
 * Arrays that the group writes are on chip and run through their values as in C; what else it reads
 * enters as an operand. So its own reads need no selection: an array holds the value that C finds
 * there, whatever statements outside the group do in between. */
#include "raise/raise_loops.h"
#include <string.h>

/* An array of the nest. */
struct held_array {
	int array;             /* in C */
	struct value *initial; /* what it holds at first; NULL: nothing */
	bool written;
	bool shaped;            /* its elements are where those of C's array are */
	struct value *argument; /* of the nest's body */
};

struct nest_making {
	struct raising *r;
	int group;
	VEC(struct held_array) arrays;
	int *base; /* [arrays in C] instance whose values are in a written array at first; -1: the
	                   initial values */
	int *own;  /* [arrays in C] entry of `arrays` for a written one; -1: it is not written */
	bool *is_read; /* [arrays in C] outside the group */
	struct op *op;
};

static bool is_member(const struct nest_making *q, int instance)
{
	return instance >= 0 && raise_group_of(q->r, instance) == q->group;
}

/* --- what is in an array at first */

/* The first position of the group in C. */
static int begins_at(const struct nest_making *q)
{
	int first = INT32_MAX;
	for (int s = 0; s < q->r->statements; s++)
		if (q->r->group[s] == q->group && q->r->program.statement[s].position[0] < first)
			first = q->r->program.statement[s].position[0];
	return first;
}

/* Does one kernel give the whole array before the group begins? */
static bool fills(const struct nest_making *q, int instance, int array)
{
	struct raising *r = q->r;
	struct raise_layout *layout = &r->layout[instance];
	const struct region_array *of = &r->region->arrays.data[array];
	const struct poly_statement *statement = raise_statement(r, instance);
	if (statement->position[0] >= begins_at(q))
		return false;
	if (layout->by_element)
		return type_elements(layout->by_element->type) ==
		        type_elements(type_shaped(
		                r->module, TYPE_TENSOR, of->rank, of->extent, of->type)) &&
		        !layout->element_offset;
	int64_t stride = 1;
	bool same = layout->value->type ==
	        type_shaped(r->module, TYPE_TENSOR, of->rank, of->extent, of->type);
	int64_t offset = layout->offset;
	for (int i = of->rank - 1; same && i >= 0; i--) {
		const struct poly_form *form = &statement->write.subscript[i];
		int64_t along = 0;
		for (int d = 0; d < statement->dims; d++) {
			along += form->coefficient[d] == 1 && layout->stride[d] == stride;
			same = same &&
			        (!form->coefficient[d] ||
			                (form->coefficient[d] == 1 && layout->stride[d] == stride));
		}
		same = same && along == (of->extent[i] > 1);
		offset -= stride * form->constant;
		stride *= of->extent[i];
	}
	return same && !offset;
}

/* Initial values win; else a kernel, if it is the only one outside the group. */
static void offer_base(struct nest_making *q, int array, int instance, bool *several)
{
	int *base = &q->base[array];
	if (*base == RAISE_NO_BASE || instance < 0)
		*base = instance;
	else if (*base != instance && *base >= 0)
		several[array] = true;
}

static void find_bases(struct nest_making *q)
{
	struct raising *r = q->r;
	bool *several = ARENA_ARRAY(r->arena, bool, r->program.arrays);
	for (int i = 0; i < r->instances; i++) {
		const struct poly_statement *statement = raise_statement(r, i);
		bool output = i >= r->readers;
		for (int j = 0; r->live[i] && (output || is_member(q, i)) && j < statement->reads;
		        j++) {
			const struct poly_read_flow *read = &r->flow[i].read[j];
			int array = statement->read[j].array;
			bool mine = !output;
			for (int k = 0; k < read->sources; k++)
				mine = mine || is_member(q, read->source[k].instance);
			for (int k = 0; q->own[array] >= 0 && mine && k < read->sources; k++)
				if (!is_member(q, read->source[k].instance) &&
				        (!output || read->source[k].instance < 0))
					offer_base(q, array, read->source[k].instance, several);
		}
	}
	for (int a = 0; a < r->program.arrays; a++)
		if (q->base[a] >= 0 && (several[a] || !fills(q, q->base[a], a)))
			q->base[a] = RAISE_NO_BASE;
}

/* --- arrays */

static int add_array(struct nest_making *q, int array, struct value *initial, bool written)
{
	for (size_t i = 0; !written && i < q->arrays.count; i++) {
		const struct held_array *known = &q->arrays.data[i];
		if (!known->written && known->initial == initial)
			return (int)i;
	}
	VEC_PUSH(q->r->arena, &q->arrays,
	        ((struct held_array){ array, initial, written, written, NULL }));
	return (int)q->arrays.count - 1;
}

static struct value *value_of_instance(const struct nest_making *q, int array, int instance)
{
	const struct raise_layout *layout = instance < 0 ? NULL : &q->r->layout[instance];
	if (!layout)
		return q->r->initial[array];
	return layout->value ? layout->value : layout->by_element;
}

static bool is_own(const struct nest_making *q, int array, const struct poly_source *source)
{
	return q->own[array] >= 0 &&
	        (is_member(q, source->instance) || source->instance == q->base[array]);
}

static void find_outside(struct nest_making *q)
{
	struct raising *r = q->r;
	for (int i = 0; i < r->instances; i++) {
		const struct poly_statement *statement = raise_statement(r, i);
		for (int j = 0; is_member(q, i) && j < statement->reads; j++) {
			const struct poly_read_flow *read = &r->flow[i].read[j];
			int array = statement->read[j].array;
			for (int k = 0; k < read->sources; k++) {
				if (is_own(q, array, &read->source[k]))
					continue;
				struct value *value = raise_source_value(
				        r, &statement->read[j], &read->source[k]);
				int number = add_array(q, array, value, false);
				int instance = read->source[k].instance;
				q->arrays.data[number].shaped =
				        instance < 0 || fills(q, instance, array);
			}
		}
	}
}

static void find_written(struct nest_making *q)
{
	struct raising *r = q->r;
	for (int s = 0; s < r->statements; s++) {
		int array = r->program.statement[s].write.array;
		if (r->group[s] == q->group && q->own[array] < 0)
			q->own[array] = add_array(q, array, NULL, true);
	}
}

static void find_readers(struct nest_making *q)
{
	struct raising *r = q->r;
	for (int i = 0; i < r->instances; i++)
		for (int j = 0; r->live[i] && !is_member(q, i) && j < raise_statement(r, i)->reads;
		        j++) {
			const struct poly_read_flow *read = &r->flow[i].read[j];
			for (int k = 0; k < read->sources; k++)
				if (is_member(q, read->source[k].instance))
					q->is_read[raise_statement(r, i)->read[j].array] = true;
		}
}

/* --- the op */

static const struct raise_group *group_of(const struct nest_making *q)
{
	return &q->r->groups.data[q->group];
}

static const struct type *array_type(struct nest_making *q, const struct held_array *array)
{
	struct raising *r = q->r;
	const struct region_array *of = &r->region->arrays.data[array->array];
	int64_t elements = 1;
	if (array->shaped && of->rank)
		return type_shaped(r->module, TYPE_MEMREF, of->rank,
		        group_of(q)->extent[array->array], of->type);
	if (array->initial)
		elements = type_elements(array->initial->type);
	return type_shaped(r->module, TYPE_MEMREF, 1, &elements, of->type);
}

struct layout_lists {
	VEC(int64_t) banks;
	VEC(int64_t) margins;
	VEC(int64_t) extents;
	bool any; /* of several banks */
};

static void add_layout(
        const struct nest_making *q, const struct held_array *array, struct layout_lists *lists)
{
	const struct region_array *of = &q->r->region->arrays.data[array->array];
	const struct raise_group *group = group_of(q);
	bool shaped = array->shaped && of->rank;
	for (int d = 0; d < array->argument->type->rank; d++) {
		int64_t banks = shaped ? group->banks[array->array][d] : 1;
		VEC_PUSH(q->r->arena, &lists->banks, banks);
		VEC_PUSH(q->r->arena, &lists->margins, shaped ? group->margin[array->array][d] : 0);
		VEC_PUSH(q->r->arena, &lists->extents,
		        shaped ? of->extent[d] : array->argument->type->shape[d]);
		lists->any = lists->any || banks > 1;
	}
}

/* Of all dims of all arrays, if one has several banks. */
static void set_banks(struct nest_making *q)
{
	struct module *module = q->r->module;
	struct layout_lists lists = { .any = false };
	const struct block *body = q->op->region[0];
	for (int i = 0; i < body->arguments; i++)
		for (size_t k = 0; k < q->arrays.count; k++)
			if (q->arrays.data[k].argument == body->argument[i])
				add_layout(q, &q->arrays.data[k], &lists);
	if (!lists.any)
		return;
	attr_set(module, q->op, KEY_STREAM_BANKS,
	        attr_integers(module, (int)lists.banks.count, lists.banks.data));
	attr_set(module, q->op, KEY_STREAM_MARGINS,
	        attr_integers(module, (int)lists.margins.count, lists.margins.data));
	attr_set(module, q->op, KEY_STREAM_EXTENTS,
	        attr_integers(module, (int)lists.extents.count, lists.extents.data));
}

static const struct type *tensor_type(struct nest_making *q, int array)
{
	const struct region_array *of = &q->r->region->arrays.data[array];
	return type_shaped(q->r->module, TYPE_TENSOR, of->rank, of->extent, of->type);
}

/* Operands and their arrays, then the arrays without a value. */
static void make_op(struct nest_making *q, struct location location)
{
	struct raising *r = q->r;
	VEC(struct value *) operands = { 0 };
	VEC(const struct type *) results = { 0 };
	for (size_t i = 0; i < q->arrays.count; i++)
		if (q->arrays.data[i].initial)
			VEC_PUSH(r->arena, &operands, q->arrays.data[i].initial);
	for (int a = 0; a < r->program.arrays; a++)
		if (q->is_read[a])
			VEC_PUSH(r->arena, &results, tensor_type(q, a));
	q->op = op_new(r->module, OP_SEQUENTIAL, location, (int)operands.count, operands.data,
	        (int)results.count, results.data);
	struct block *body = block_new(r->module, q->op, 0);
	for (int entering = 1; entering >= 0; entering--)
		for (size_t i = 0; i < q->arrays.count; i++) {
			struct held_array *array = &q->arrays.data[i];
			if ((array->initial != NULL) == entering)
				array->argument =
				        block_add_argument(r->module, body, array_type(q, array));
		}
}

static void set_layouts(struct nest_making *q)
{
	struct raising *r = q->r;
	int *result = ARENA_ARRAY(r->arena, int, r->program.arrays);
	int count = 0;
	for (int a = 0; a < r->program.arrays; a++)
		result[a] = q->is_read[a] ? count++ : -1;
	for (int i = 0; i < r->readers; i++) {
		int array = raise_statement(r, i)->write.array;
		if (!is_member(q, i) || result[array] < 0)
			continue;
		struct raise_layout *layout = &r->layout[i];
		int64_t inner = 1;
		layout->by_element = q->op->result[result[array]];
		layout->base = q->base[array];
		for (int d = r->program.array[array].rank - 1; d >= 0; d--) {
			layout->element_stride[d] = inner;
			inner *= r->program.array[array].extent[d];
		}
	}
}

/* --- statements */

struct iteration {
	struct nest_making *q;
	struct nest_builder *b;
	int instance;
	const struct poly_statement *statement;
	const struct nest_form *counter;
	const struct poly_step *step;
	struct value **operand; /* of the body, as far as they are read */
};

/* An element of an array: a form of the statement's counters for each dim. */
struct nest_place {
	const struct held_array *array;
	int rank;
	struct poly_form subscript[POLY_DIMS];
	int computed[POLY_DIMS]; /* as in poly_access */
};

static struct nest_place place_in_c(const struct nest_making *q, const struct held_array *array,
        const struct poly_access *access)
{
	struct nest_place place = { .array = array,
		.rank = q->r->program.array[access->array].rank };
	for (int d = 0; d < place.rank; d++)
		place.subscript[d] = access->subscript[d];
	memcpy(place.computed, access->computed, sizeof place.computed);
	place.rank = place.rank ? place.rank : 1;
	return place;
}

/* Is the subscript a lane, but for multiples of the banks? */
static bool is_aligned(const struct nest_form *form, int64_t banks)
{
	bool lane = false;
	for (int i = 0; banks > 1 && i < form->terms; i++) {
		if (!form->factor[i] || form->factor[i] % banks == 0)
			continue;
		if (!nest_is_lane(form->value[i]))
			return false;
		lane = true;
	}
	return lane;
}

/* Lanes that run without effect find elements too, so that the bank of a lane stays the same. */
static struct value *aligned_subscript(
        struct nest_builder *b, const struct nest_form *form, int64_t banks)
{
	struct nest_form word = { 0 };
	struct nest_form lane = { .constant = form->constant };
	for (int i = 0; i < form->terms; i++) {
		bool whole = form->factor[i] % banks == 0;
		struct nest_form *to = whole ? &word : &lane;
		to->value[to->terms] = form->value[i];
		to->factor[to->terms++] = whole ? form->factor[i] / banks : form->factor[i];
	}
	struct value *at = nest_value(b, &word);
	at = b->branch ? nest_select(b, b->branch, at, nest_index(b, 0)) : at;
	lane.value[lane.terms] = at;
	lane.factor[lane.terms++] = banks;
	return nest_value(b, &lane);
}

static bool has_lane(const struct nest_form *form)
{
	for (int i = 0; i < form->terms; i++)
		if (form->factor[i] && nest_is_lane(form->value[i]))
			return true;
	return false;
}

/* A number outside the array, of an iteration without effect or of C that is wrong, becomes 0. */
static struct value *computed_subscript(
        const struct iteration *at, const struct nest_place *place, int d, struct value *when)
{
	struct nest_builder *b = at->b;
	const struct raising *r = at->q->r;
	int array = place->array->array;
	const struct region_statement *statement = &r->region->statements.data[at->step->statement];
	struct value *index =
	        nest_body(b, &statement->index[place->computed[d] - 1], at->operand, at->counter);
	struct value *inside = nest_compare(
	        b, CMPI_ULT, index, nest_index(b, r->region->arrays.data[array].extent[d]));
	inside = nest_both(b, nest_both(b, b->when, when), inside);
	struct nest_form form = { .terms = 1, .factor = { 1 } };
	form.value[0] = nest_select(b, inside, index, nest_index(b, 0));
	form.constant = place->array->shaped ? group_of(at->q)->margin[array][d] : 0;
	return nest_value(b, &form);
}

/* when: further condition under which the subscripts are inside, or NULL. Those that are the same
 * for all lanes are so whatever a lane does. */
static int subscripts(const struct iteration *at, const struct nest_place *place,
        struct value *when, struct value **index)
{
	struct nest_builder *b = at->b;
	const struct raise_group *group = group_of(at->q);
	bool shaped = place->array->shaped;
	for (int d = 0; d < place->rank; d++) {
		if (place->computed[d]) {
			index[d] = computed_subscript(at, place, d, when);
			continue;
		}
		struct nest_form form =
		        nest_compose(b, &place->subscript[d], at->counter, at->statement->dims);
		int64_t banks = shaped ? group->banks[place->array->array][d] : 1;
		form.constant += shaped ? group->margin[place->array->array][d] : 0;
		bool aligned = is_aligned(&form, banks);
		if (aligned) {
			index[d] = aligned_subscript(b, &form, banks);
			continue;
		}
		struct value *inside = has_lane(&form) ? b->when : b->branch;
		index[d] = nest_value(b, &form);
		inside = nest_both(b, inside, when);
		if (inside)
			index[d] = nest_select(b, inside, index[d], nest_index(b, 0));
	}
	return place->rank;
}

static struct value *load(
        const struct iteration *at, const struct nest_place *place, struct value *when)
{
	struct value *argument = place->array->argument;
	struct value *operand[POLY_DIMS + 1] = { argument };
	int rank = subscripts(at, place, when, operand + 1);
	return nest_op(at->b, OP_MEMREF_LOAD, argument->type->element, 1 + rank, operand);
}

static void set_distance(const struct iteration *at, struct value *word, int read)
{
	int64_t distance = at->step->distance ? at->step->distance[read] : 0;
	if (distance)
		attr_set(at->q->r->module, word->def, KEY_STREAM_DISTANCE,
		        attr_integer(
		                at->q->r->module, distance < INT32_MAX ? distance : INT32_MAX));
}

static struct value *load_own(const struct iteration *at, int read, struct value *when)
{
	const struct poly_access *access = &at->statement->read[read];
	struct nest_place place =
	        place_in_c(at->q, &at->q->arrays.data[at->q->own[access->array]], access);
	struct value *word = load(at, &place, when);
	set_distance(at, word, read);
	return word;
}

/* Where in the iteration's domain the source is the origin. */
static struct value *source_condition(const struct iteration *at, const struct poly_source *source)
{
	static const int64_t low[POLY_DIMS] = { 0 };
	struct module *module = at->q->r->module;
	struct body body = { 0 };
	if (raise_is_always(&source->set))
		return NULL;
	body.result = raise_condition(module, &body, &source->set, low);
	return nest_body(at->b, &body, NULL, at->counter);
}

static struct value *load_outside(
        const struct iteration *at, int read, const struct poly_source *source, struct value *when)
{
	struct nest_making *q = at->q;
	const struct poly_access *access = &at->statement->read[read];
	struct value *value = raise_source_value(q->r, access, source);
	int array = add_array(q, access->array, value, false);
	struct nest_place place = place_in_c(q, &q->arrays.data[array], access);
	if (place.array->shaped)
		return load(at, &place, when);
	place.rank = 1;
	place.subscript[0] = raise_address(q->r, access, source);
	return load(at, &place, when);
}

/* The value of a read: that in an own array, unless another source's condition holds. */
static struct value *read_value(const struct iteration *at, int read)
{
	struct nest_making *q = at->q;
	const struct poly_access *access = &at->statement->read[read];
	const struct poly_read_flow *flow = &q->r->flow[at->instance].read[read];
	struct nest_builder *b = at->b;
	struct value *happens = nest_condition(b, access->when, at->counter, at->statement->dims);
	struct value *word = NULL;
	for (int i = 0; i < flow->sources && !word; i++)
		if (is_own(q, access->array, &flow->source[i]))
			word = load_own(at, read, happens);
	for (int i = 0; i < flow->sources; i++) {
		const struct poly_source *source = &flow->source[i];
		if (is_own(q, access->array, source))
			continue;
		struct value *when = source_condition(at, source);
		struct value *other = load_outside(at, read, source, nest_both(b, happens, when));
		struct value *choice[3] = { when, other, word };
		word = word && when ? nest_op(b, OP_SELECT, other->type, 3, choice) : other;
	}
	if (word)
		return word;
	struct body none = { 0 };
	none.result = body_add(q->r->module, &none,
	        (struct node){ .kind = NODE_CONSTANT,
	                .type = q->r->region->arrays.data[access->array].type });
	return nest_body(b, &none, NULL, at->counter);
}

static void store(const struct iteration *at, struct value *word)
{
	struct nest_making *q = at->q;
	struct nest_builder *b = at->b;
	const struct poly_access *access = &at->statement->write;
	struct nest_place place = place_in_c(q, &q->arrays.data[q->own[access->array]], access);
	struct value *operand[POLY_DIMS + 3] = { b->when, word, place.array->argument };
	int rank = subscripts(at, &place, NULL, operand + 3);
	struct op *op = b->when
	        ? op_new(q->r->module, OP_WRITE, b->location, 3 + rank, operand, 0, NULL)
	        : op_new(q->r->module, OP_MEMREF_STORE, b->location, 2 + rank, operand + 1, 0,
	                  NULL);
	op_append(b->block, op);
}

static bool make_iteration(
        struct nest_builder *b, const struct poly_step *step, const struct nest_form *counter)
{
	struct nest_making *q = b->context;
	struct raising *r = q->r;
	struct iteration at = { .q = q, .b = b, .counter = counter, .step = step };
	while (r->instance[at.instance].statement != step->statement)
		at.instance++;
	at.statement = raise_statement(r, at.instance);
	struct value **operand = ARENA_ARRAY(r->arena, struct value *, at.statement->reads + 1);
	at.operand = operand;
	for (int j = 0; j < at.statement->reads; j++)
		operand[j] = read_value(&at, j);
	const struct body *body = &r->region->statements.data[step->statement].body;
	struct value *word = nest_body(b, body, operand, counter);
	store(&at, word);
	return true;
}

/* --- all of it */

static int loops_of(const struct poly_step *step)
{
	int most = step->kind == POLY_STEP_LOOP ? step->loop + 1 : 0;
	for (int i = 0; i < step->parts; i++) {
		int own = loops_of(step->part[i]);
		most = own > most ? own : most;
	}
	return most;
}

static bool make_body(struct nest_making *q)
{
	struct raising *r = q->r;
	const struct poly_step *step = r->groups.data[q->group].nest;
	struct block *body = q->op->region[0];
	struct nest_builder b = { .r = r,
		.head = body,
		.block = body,
		.constants = map_new(r->arena),
		.counter = ARENA_ARRAY(r->arena, struct nest_form, loops_of(step) + 1),
		.location = q->op->location,
		.context = q,
		.statement = make_iteration };
	if (!nest_step(&b, step))
		return false;
	VEC(struct value *) results = { 0 };
	for (int a = 0; a < r->program.arrays; a++)
		if (q->is_read[a])
			VEC_PUSH(r->arena, &results, q->arrays.data[q->own[a]].argument);
	op_append(body,
	        op_new(r->module, OP_SEQUENTIAL_YIELD, q->op->location, (int)results.count,
	                results.data, 0, NULL));
	return true;
}

bool raise_sequential(struct raising *r, int group)
{
	struct nest_making q = { .r = r,
		.group = group,
		.base = ARENA_ARRAY(r->arena, int, r->program.arrays),
		.own = ARENA_ARRAY(r->arena, int, r->program.arrays),
		.is_read = ARENA_ARRAY(r->arena, bool, r->program.arrays) };
	int first = 0;
	for (int a = 0; a < r->program.arrays; a++) {
		q.base[a] = RAISE_NO_BASE;
		q.own[a] = -1;
	}
	while (r->group[first] != group)
		first++;
	struct location location = r->region->statements.data[first].location;
	find_written(&q);
	find_bases(&q);
	for (int a = 0; a < r->program.arrays; a++)
		if (q.own[a] >= 0 && q.base[a] != RAISE_NO_BASE)
			q.arrays.data[q.own[a]].initial = value_of_instance(&q, a, q.base[a]);
	find_readers(&q);
	find_outside(&q);
	make_op(&q, location);
	int array = r->program.statement[first].write.array;
	attr_set(r->module, q.op, KEY_STREAM_NAME,
	        attr_string(r->module,
	                raise_kernel_name(r, r->region->arrays.data[array].name, location.line)));
	if (group_of(&q)->used_dsp)
		attr_set(r->module, q.op, KEY_STREAM_DSP,
		        attr_integer(r->module, group_of(&q)->used_dsp));
	set_layouts(&q);
	set_banks(&q);
	op_append(r->block, q.op);
	return make_body(&q);
}
