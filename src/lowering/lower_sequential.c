/* Lowers a sequential nest to a process.
 * Before: %y = stream.sequential(%x) { loops on arrays }
 * After:  a loop that fills the arrays of the operands from their FIFOs, the loops of the body, a
 *         loop that sends the arrays of the results */
#include "lowering/lowering_internal.h"
#include "predict/sequential_time.h"
#include "process/operation_builder.h"

struct lowered_nest {
	struct process p;
	struct design *design;
	const struct op *op;
};

static struct value *array_of(const struct value *array)
{
	return array->data;
}

static void make_arrays(struct lowered_nest *l)
{
	const struct block *body = l->op->region[0];
	for (int i = 0; i < body->arguments; i++) {
		const struct type *type = body->argument[i]->type;
		body->argument[i]->data =
		        make_array(&l->p, "values", type->shape[0], type->element, 1);
	}
}

/* A loop over the elements of an array, pipelined. */
static struct value *element_loop(struct lowered_nest *l, const struct value *array)
{
	struct value *counter = process_loop(&l->p, array->type->shape[0]);
	process_pipeline(&l->p, 1);
	return counter;
}

static void fill_arrays(struct lowered_nest *l)
{
	for (int j = 0; j < l->op->operands; j++) {
		const struct value *array = l->op->region[0]->argument[j];
		struct value *fifo =
		        process_argument(&l->p, stream_fifo(l->design, l->op->operand[j]), "x");
		struct value *element = element_loop(l, array);
		make_store(&l->p, make_pop(&l->p, NULL, fifo), array_of(array), element);
		process_close(&l->p, 1);
	}
}

static void send_arrays(struct lowered_nest *l)
{
	for (int i = 0; i < l->op->results; i++) {
		const struct value *array = l->op->region[0]->last->operand[i];
		struct value *fifo =
		        process_argument(&l->p, stream_fifo(l->design, l->op->result[i]), "y");
		struct value *element = element_loop(l, array);
		make_push(&l->p, NULL, make_load(&l->p, array_of(array), element), fifo);
		process_close(&l->p, 1);
	}
}

/* --- the body */

static void copy_block(struct process *p, const struct block *from);

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

static void copy_loop(struct process *p, const struct op *op)
{
	op->region[0]->argument[0]->data = process_loop_value(p, op->operand[1]->data);
	copy_block(p, op->region[0]);
	process_close(p, 1);
}

static void copy_op(struct process *p, const struct op *op)
{
	if (op->code == OP_YIELD || op->code == OP_SEQUENTIAL_YIELD)
		return;
	if (op->code == OP_FOR) {
		copy_loop(p, op);
		return;
	}
	if (op->code == OP_CONSTANT) {
		op->result[0]->data = copy_constant(p, op);
		return;
	}
	struct value **operand = ARENA_ARRAY(p->module->arena, struct value *, op->operands + 1);
	const struct type *type = op->results ? op->result[0]->type : NULL;
	for (int i = 0; i < op->operands; i++)
		operand[i] = op->operand[i]->data;
	struct op *made = op_new(
	        p->module, op->code, op->location, op->operands, operand, op->results, &type);
	for (int i = 0; i < op->attributes; i++)
		if (op->attribute[i].name != key_name(KEY_OPERAND_SEGMENT_SIZES))
			attr_set_named(
			        p->module, made, op->attribute[i].name, op->attribute[i].value);
	op_append(p->block, made);
	if (op->results)
		op->result[0]->data = made->result[0];
}

static void copy_block(struct process *p, const struct block *from)
{
	for (const struct op *op = from->first; op; op = op->next)
		copy_op(p, op);
}

static void copy_body(struct lowered_nest *l)
{
	struct process *p = &l->p;
	struct op *before = p->block->last;
	copy_block(p, l->op->region[0]);
	for (struct op *op = before ? before->next : p->block->first; op; op = op->next)
		if (op->code == OP_FOR)
			sequential_schedule(p->module, l->design->context->platform, op);
}

/* Arrays of which several words are read in a cycle have copies. */
static void set_read_ports(struct lowered_nest *l)
{
	const struct block *body = l->op->region[0];
	for (int i = 0; i < body->arguments; i++) {
		const struct value *array = array_of(body->argument[i]);
		int64_t reads = sequential_reads(l->p.entry, array);
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
