#include "converter/given.h"
#include "converter/kept.h"
#include "converter/served.h"

static bool find_box(struct arena *arena, const struct op *writer, const struct type *tensor, const struct type *type, struct given *given)
{
	const struct type *from = writer->result[0]->type;
	if (!kernel_holds_result(writer))
		return false;
	given->stride = ARENA_ARRAY(arena, int64_t, writer->kernel->loops + 1);
	given->box = box_between(arena, tensor, from, type, 0);
	int64_t word = given->box.why ? 0 : box_word(&given->box);
	return word && word == given->box.fill.lanes && word == given->box.drain.lanes && given->box.elements == itensor_tiles(from->itensor) * word &&
	       kernel_strides(writer->kernel, &writer->kernel->result, &given->box.fill, given->stride);
}

bool can_be_given(struct arena *arena, const struct op *writer, const struct type *tensor, const struct type *type)
{
	struct given given;
	return find_box(arena, writer, tensor, type, &given);
}

struct given given_of(struct arena *arena, const struct op *kernel)
{
	struct given given = {0};
	for (const struct op *op = kernel->next; op && !given.convert; op = op->next)
		if (op->code == OP_CONVERT && op->operand[0] == kernel->result[0] && attr_get(op, KEY_IN_PRODUCER))
			given.convert = op;
	if (given.convert && !find_box(arena, kernel, attr_get(given.convert, KEY_TENSOR)->type, given.convert->result[0]->type, &given))
		given.convert = NULL;
	return given;
}

bool is_given(struct design *design, const struct op *convert)
{
	const struct op *writer = convert->operand[0]->def;
	if (writer && writer->code == OP_KERNEL && given_of(design->module->arena, writer).convert == convert)
		return true;
	diag_error(design->module->diag, convert->location, "stream.convert: given, but its writer does not hold the words of %s until its last term", convert->operand[0]->type->text);
	return diag_note(design->module->diag, "a kernel whose outermost loop is a reduction holds them, in words as wide as these");
}

void give_results(struct process *p, const struct given *given, struct value *array)
{
	struct side side = {.steps = &given->box.drain, .word = given->box.drain.lanes};
	struct value **counter = ARENA_ARRAY(p->module->arena, struct value *, side.steps->loops + 1);
	int opened = side_loops(p, &side, counter);
	make_push(p, NULL, side_read(p, &side, array, counter), process_argument(p, stream_fifo(p->design, given->convert->result[0]), "y"));
	process_close(p, opened);
}
