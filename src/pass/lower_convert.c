/* A converter as two processes, *fill* and *drain*, on a channel of blocks (src/model/box.h says what a block holds and how each side steps through it).
 * One block a turn of the shared loops; with two halves both sides work at once. */
#include "pass/again.h"
#include "pass/later.h"
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

/* One process, in each turn of which a tile is taken and all are given (pass/later.h). */
static bool lower_later(struct design *design, const struct op *op)
{
	struct module *module = design->module;
	struct later later = later_between(module->arena, attr_get(op, "tensor")->type, op->operand[0]->type, op->result[0]->type, attr_get(op, "later"));
	if (later.why) {
		diag_error(module->diag, op->location, "stream.convert: tiles that are waited for in turn, but %s", later.why);
		return diag_note(module->diag, "from %s to %s", op->operand[0]->type->text, op->result[0]->type->text);
	}
	int64_t word = box_word(&later.box), widest = later.fill.lanes > later.drain.lanes ? later.fill.lanes : later.drain.lanes;
	const struct type *scalar = type_scalar(op->result[0]->type), *element = word > 1 ? type_shaped(module, TYPE_VECTOR, 1, &word, scalar) : scalar;
	struct side fill = {.steps = &later.fill, .word = word}, drain = {.steps = &later.drain, .word = word, .type = stream_word(module, op->result[0]->type)};
	struct process p = process_new(design, "later");
	struct value *in = process_argument(&p, stream_fifo(design, op->operand[0]), "x"), *out = process_argument(&p, stream_fifo(design, op->result[0]), "y");
	struct value *array = make_array(&p, "words", later.box.elements / word, element, word < widest ? widest / word : 1);
	struct value **counter = ARENA_ARRAY(module->arena, struct value *, later.fill.loops + later.drain.loops);
	const int64_t one = 1;
	process_layers(&p);
	struct value *turn = process_loop_to(&p, later.tiles, later.there);
	int opened = side_loops(&p, &fill, counter);
	counter[0] = turn;
	side_write(&p, &fill, array, counter, make_take(&p, NULL, in));
	process_close(&p, opened);
	opened = side_loops(&p, &drain, counter);
	struct value *tile = make_address(&p, 1, &counter[later.part], &one, later.first), *there = make_select(&p, make_below(&p, turn, tile), turn, tile);
	counter[later.part] = make_address(&p, 1, &there, &one, -later.first);
	make_push(&p, NULL, side_read(&p, &drain, array, counter), out);
	process_close(&p, opened + 1 + (design->layers > 0));
	process_finish(&p);
	return true;
}

bool lower_convert(struct design *design, const struct op *op, bool crossing)
{
	if (attr_get(op, "later"))
		return lower_later(design, op);
	struct module *module = design->module;
	struct again again;
	if (!crossing && attr_get(op, "again") && again_of(module->arena, op, &again)) {
		lower_again(design, op, &again);
		return true;
	}
	const struct type *tensor = attr_get(op, "tensor")->type, *from = op->operand[0]->type, *to = op->result[0]->type;
	struct box box = box_between(module->arena, tensor, from, to, (int)attr_integer_or(op, "shared", 0));
	if (!box_is_right(design, op, to, &box, crossing))
		return false;
	int64_t halves = attr_integer_or(op, "halves", box.halves);
	if (halves < 1 || halves > box.halves)
		return diag_error(module->diag, op->location, "%s: %lld halves, where %d can work at once", op_info[op->code].name, (long long)halves, box.halves);
	int64_t word = box_word(&box), size = box.elements / word, widest = box.fill.lanes > box.drain.lanes ? box.fill.lanes : box.drain.lanes;
	const struct type *element = word > 1 ? type_shaped(module, TYPE_VECTOR, 1, &word, type_scalar(tensor)) : type_scalar(tensor);
	struct value *blocks = design_blocks(design, "b_convert", type_shaped(module, TYPE_MEMREF, 1, &size, element), halves);
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
