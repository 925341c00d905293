/* Matches and emits reorder buffers that are folded into their producer (drain_order.h). */
#include "ir/converter.h"
#include "converter/drain_order.h"
#include "converter/consumer_buffer.h"
#include "converter/accumulator_drain.h"

static bool match_drain_box(struct arena *arena, const struct op *writer, const struct type *tensor,
        const struct type *type, struct drain_order *drain_order)
{
	const struct type *from = writer->result[0]->type;
	if (!kernel_holds_result(writer))
		return false;
	drain_order->stride = ARENA_ARRAY(arena, int64_t, writer->kernel->loops + 1);
	drain_order->box = box_between(arena, tensor, from, type, 0);
	int64_t word = drain_order->box.why ? 0 : box_word(&drain_order->box);
	return word && word == drain_order->box.fill.lanes &&
	        word == drain_order->box.drain.lanes &&
	        drain_order->box.elements == itensor_tiles(from->itensor) * word &&
	        kernel_strides(writer->kernel, &writer->kernel->result, &drain_order->box.fill,
	                drain_order->stride);
}

bool can_drain_in_order(struct arena *arena, const struct op *writer, const struct type *tensor,
        const struct type *type)
{
	struct drain_order drain_order;
	return match_drain_box(arena, writer, tensor, type, &drain_order);
}

struct drain_order drain_order_of(struct arena *arena, const struct op *kernel)
{
	struct drain_order drain_order = { 0 };
	for (const struct op *op = kernel->next; op && !drain_order.convert; op = op->next)
		if (converter_form(op) == CONVERTER_IN_PRODUCER &&
		        op->operand[0] == kernel->result[0])
			drain_order.convert = op;
	if (drain_order.convert &&
	        !match_drain_box(arena, kernel, attr_get(drain_order.convert, KEY_TENSOR)->type,
	                drain_order.convert->result[0]->type, &drain_order))
		drain_order.convert = NULL;
	return drain_order;
}

bool check_drain_order(struct design *design, const struct op *convert)
{
	const struct op *writer = convert->operand[0]->def;
	if (writer && writer->code == OP_KERNEL &&
	        drain_order_of(design->module->arena, writer).convert == convert)
		return true;
	diag_error(design->module->diag, convert->location,
	        "stream.convert: drained by its producer, but the producer does not accumulate all "
	        "words of %s before it writes",
	        convert->operand[0]->type->text);
	return diag_note(design->module->diag,
	        "the producer's outermost loop has to be a reduction, with result words of this "
	        "width");
}

void emit_drain(struct process *p, const struct drain_order *drain_order, struct value *array)
{
	struct side side = { .steps = &drain_order->box.drain,
		.word = drain_order->box.drain.lanes };
	struct value **counter =
	        ARENA_ARRAY(p->module->arena, struct value *, side.steps->loops + 1);
	int opened = side_loops(p, &side, counter);
	struct value *out =
	        process_argument(p, stream_fifo(p->design, drain_order->convert->result[0]), "y");
	make_push(p, NULL, side_read(p, &side, array, counter), out);
	process_close(p, opened);
}
