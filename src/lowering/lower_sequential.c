/* Lowers a sequential nest to a process.
 * Before: %y = stream.sequential(%x) { loops on arrays }
 * After:  a loop that fills the arrays of the operands from their FIFOs, the loops of the body, a
 *         loop that sends the arrays of the results */
#include "lowering/lower_nest.h"
#include "predict/sequential_time.h"

struct lowered_nest {
	struct process p;
	struct design *design;
	const struct op *op;
};

static struct value *array_of(const struct value *array)
{
	return array->data;
}

static struct nest_array layout_of(const struct lowered_nest *l, const struct value *array)
{
	return nest_array_of(l->op, array->index);
}

/* Banks by the last element of their subscripts, then the words of each. */
static void make_arrays(struct lowered_nest *l)
{
	struct block *body = l->op->region[0];
	for (int i = 0; i < body->arguments; i++) {
		const struct type *type = body->argument[i]->type;
		struct nest_array layout = layout_of(l, body->argument[i]);
		int64_t shape[NEST_DIMS + 1];
		int64_t words = 1;
		int64_t banks = 1;
		int rank = 0;
		for (int d = 0; d < layout.rank; d++) {
			words *= layout.shape[d] / layout.banks[d];
			banks *= layout.banks[d];
			if (layout.banks[d] > 1)
				shape[rank++] = layout.banks[d];
		}
		shape[rank++] = words;
		body->argument[i]->data = make_shaped_array(&l->p, "values",
		        type_shaped(l->p.module, TYPE_MEMREF, rank, shape, type->element), banks);
	}
}

static void fill_arrays(struct lowered_nest *l)
{
	for (int j = 0; j < l->op->operands; j++) {
		const struct value *array = l->op->region[0]->argument[j];
		struct nest_array layout = layout_of(l, array);
		struct value *fifo = stream_fifo(l->design, l->op->operand[j]);
		nest_fill(&l->p, &layout, array_of(array), process_argument(&l->p, fifo, "x"));
	}
}

static void send_arrays(struct lowered_nest *l)
{
	for (int i = 0; i < l->op->results; i++) {
		const struct value *array = l->op->region[0]->last->operand[i];
		struct nest_array layout = layout_of(l, array);
		struct value *fifo = stream_fifo(l->design, l->op->result[i]);
		nest_send(&l->p, &layout, array_of(array), process_argument(&l->p, fifo, "y"));
	}
}

/* --- the body */

static void copy_block(struct lowered_nest *l, const struct block *from);
static void copy_op(struct lowered_nest *l, const struct op *op);

static struct value *copy_constant(struct process *p, const struct op *op)
{
	const struct attr *number = attr_get(op, KEY_VALUE);
	const struct type *type = op->result[0]->type;
	if (type->kind == TYPE_INDEX)
		return make_index(p, number->integer);
	struct value *made = make_op(p, OP_CONSTANT, type, 0, NULL);
	attr_set(p->module, made->def, KEY_VALUE, number);
	return made;
}

/* Is it a number or a condition that depends neither on the counter nor on what arrays hold? */
static bool is_outside(const struct value *value, const struct value *counter)
{
	const struct op *def = value->def;
	if (value == counter || (def && op_accessed(def)))
		return false;
	for (int i = 0; def && i < def->operands; i++)
		if (!is_outside(def->operand[i], counter))
			return false;
	return true;
}

/* Copies the operation behind those of its operands. */
static void copy_whole(struct lowered_nest *l, const struct op *op)
{
	for (int i = 0; i < op->operands; i++)
		if (op->operand[i]->def && !op->operand[i]->data)
			copy_whole(l, op->operand[i]->def);
	copy_op(l, op);
}

/* Such numbers stand in front of the loop. */
static void copy_ahead(struct lowered_nest *l, const struct op *loop)
{
	const struct value *counter = loop->region[0]->argument[0];
	for (const struct op *op = loop->region[0]->first; op; op = op->next) {
		const struct type *type = op->results == 1 ? op->result[0]->type : NULL;
		bool number = type &&
		        (type->kind == TYPE_INDEX ||
		                (type->kind == TYPE_INTEGER && type->width == 1));
		if (number && is_outside(op->result[0], counter))
			copy_whole(l, op);
	}
}

static void copy_loop(struct lowered_nest *l, const struct op *op)
{
	struct process *p = &l->p;
	if (attr_get(op, KEY_STREAM_PARALLEL))
		copy_ahead(l, op);
	op->region[0]->argument[0]->data = process_loop_value(p, op->operand[1]->data);
	if (attr_get(op, KEY_STREAM_PARALLEL))
		process_mark(p, KEY_STREAM_PARALLEL);
	if (attr_get(op, KEY_STREAM_LANES))
		process_mark(p, KEY_STREAM_LANES);
	copy_block(l, op->region[0]);
	process_close(p, 1);
}

/* The operands of an access, its element by bank and word. */
static int copy_access(struct lowered_nest *l, const struct op *op, struct value **operand)
{
	int place = op_access(op);
	const struct value *array = op->operand[place];
	struct nest_array layout = layout_of(l, array);
	struct nest_element element =
	        nest_element_of(&l->p, &layout, op->operand + place + 1, operand + place + 1);
	for (int i = 0; i < element.indices; i++)
		operand[place + 1 + i] = element.index[i];
	return place + 1 + element.indices;
}

static void copy_op(struct lowered_nest *l, const struct op *op)
{
	struct process *p = &l->p;
	if (op->code == OP_YIELD || op->code == OP_SEQUENTIAL_YIELD)
		return;
	if (op->results && op->result[0]->data) /* in front of the loop */
		return;
	if (op->code == OP_FOR) {
		copy_loop(l, op);
		return;
	}
	if (op->code == OP_CONSTANT) {
		op->result[0]->data = copy_constant(p, op);
		return;
	}
	int operands = op->operands;
	struct value **operand =
	        ARENA_ARRAY(p->module->arena, struct value *, operands + NEST_DIMS + 1);
	const struct type *type = op->results ? op->result[0]->type : NULL;
	for (int i = 0; i < operands; i++)
		operand[i] = op->operand[i]->data;
	if (op_accessed(op))
		operands = copy_access(l, op, operand);
	struct op *made =
	        op_new(p->module, op->code, op->location, operands, operand, op->results, &type);
	for (int i = 0; i < op->attributes; i++)
		if (op->attribute[i].name != key_name(KEY_OPERAND_SEGMENT_SIZES))
			attr_set_named(
			        p->module, made, op->attribute[i].name, op->attribute[i].value);
	op_append(p->block, made);
	if (op->results)
		op->result[0]->data = made->result[0];
}

static void copy_block(struct lowered_nest *l, const struct block *from)
{
	for (const struct op *op = from->first; op; op = op->next)
		copy_op(l, op);
}

static void clear_values(struct op *op, void *context)
{
	(void)context;
	for (int i = 0; i < op->results; i++)
		op->result[i]->data = NULL;
}

static void copy_body(struct lowered_nest *l)
{
	struct process *p = &l->p;
	struct op *before = p->block->last;
	ir_walk(l->op->region[0], clear_values, NULL);
	copy_block(l, l->op->region[0]);
	nest_share_numbers(p->entry);
	nest_share_words(p->module, p->entry);
	sequential_schedule(
	        p->module, l->design->context->platform, before ? before->next : p->block->first);
}

/* Arrays of which several words are read in a cycle have copies. */
static void set_read_ports(struct lowered_nest *l)
{
	const struct block *body = l->op->region[0];
	for (int i = 0; i < body->arguments; i++) {
		const struct value *array = array_of(body->argument[i]);
		int64_t reads = sequential_reads(l->p.module->arena, l->p.entry, array);
		if (reads > 1)
			attr_set(l->p.module, array->def, KEY_STREAM_READ_PORTS,
			        attr_integer(l->p.module, reads));
	}
}

void lower_sequential(struct design *design, const struct op *op)
{
	struct lowered_nest l = { .p = process_new(
		                          design, attr_text_or(op, KEY_STREAM_NAME, "nest")),
		.design = design,
		.op = op };
	make_arrays(&l);
	fill_arrays(&l);
	copy_body(&l);
	send_arrays(&l);
	set_read_ports(&l);
	process_finish(&l.p);
}
