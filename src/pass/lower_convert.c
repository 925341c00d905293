/* A converter as two processes, *fill* and *drain*, on a channel of blocks (src/model/box.h says what a block holds and how each side steps through it).
 * One block a turn of the shared loops; with two halves both sides work at once. */
#include "pass/lower_box.h"

static void lower_side(struct design *design, const struct side *side, struct value *blocks, struct value *fifo, bool fill, bool once)
{
	struct process p = process_new(design, fill ? "fill" : "drain");
	struct value *channel = process_argument(&p, blocks, "blocks"), *words = process_argument(&p, fifo, fill ? "x" : "y");
	int loops = side->shared;
	struct value **counter = ARENA_ARRAY(p.module->arena, struct value *, side->steps->loops + 1);
	if (!once) {
		process_layers(&p);
		loops += design->layers > 0;
	}
	for (int i = 0; i < side->shared; i++)
		process_loop_to(&p, side->steps->trip[i], side->steps->run_time[i]);
	struct value *array = make_op(&p, OP_ACQUIRE, blocks->type->element, 1, &channel);
	attr_set(p.module, array->def, "side", attr_string(p.module, fill ? "write" : "read"));
	int held = once && design->layers && !fill;
	if (held)                             /* the block is kept for all layers */
		process_layers(&p);
	int opened = side_loops(&p, side, counter);
	if (fill)
		side_write(&p, side, array, counter, make_take(&p, NULL, words));
	else
		make_push(&p, NULL, side_read(&p, side, array, counter), words);
	process_close(&p, opened + held);
	struct value *operand[2] = {array, channel};
	op_append(p.block, op_new(p.module, OP_RELEASE, NOWHERE, 2, operand, 0, NULL));
	process_close(&p, loops);
	process_finish(&p);
}

bool lower_convert(struct design *design, const struct op *op, bool crossing)
{
	struct module *module = design->module;
	const struct type *tensor = attr_get(op, "tensor")->type, *from = op->operand[0]->type, *to = op->result[0]->type;
	struct box box = box_between(module->arena, tensor, from, to, (int)attr_integer_or(op, "shared", 0));
	if (!box_is_right(design, op, to, &box, crossing))
		return false;
	int64_t word = box_word(&box), size = box.elements / word, widest = box.fill.lanes > box.drain.lanes ? box.fill.lanes : box.drain.lanes;
	const struct type *element = word > 1 ? type_shaped(module, TYPE_VECTOR, 1, &word, type_scalar(tensor)) : type_scalar(tensor);
	struct value *blocks = design_blocks(design, "b_convert", type_shaped(module, TYPE_MEMREF, 1, &size, element), box.halves);
	if (word < widest)
		attr_set(module, blocks->def, "stream.partition", attr_integer(module, widest / word));
	struct side fill = {.steps = &box.fill, .shared = box.shared, .word = word, .type = stream_word(module, from)};
	struct side drain = {.steps = &box.drain, .shared = box.shared, .word = word, .type = stream_word(module, to)};
	struct value *in = stream_fifo(design, op->operand[0]), *out = stream_fifo(design, op->result[0]);
	int64_t layers = design->layers;
	design->layers = crossing ? 0 : layers;
	lower_side(design, &fill, blocks, in, true, crossing);
	design->layers = layers;
	lower_side(design, &drain, blocks, out, false, crossing);
	return true;
}
