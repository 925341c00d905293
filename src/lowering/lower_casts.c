/* Lowers casts, layer multiplexers and the feedback of a rolled layer to processes. */
#include "ir/affine.h"
#include "itensor/element_sequence.h"
#include "lowering/lowering_internal.h"
#include "converter/layer_carry.h"
#include "schedule/tensor_sources.h"

/* Is operand `choice` selected in the current layer? */
static struct value *is_layer_operand(struct process *p, const struct attr *table, int choice)
{
	struct value *any = make_bool(p, false);
	for (int l = 0; l < table->count; l++) {
		if (table->integers[l] != choice)
			continue;
		struct value *operand[2] = { any, make_equal(p, p->layer, l) };
		any = make_op(p, OP_ORI, any->type, 2, operand);
	}
	return any;
}

void lower_layer_mux(struct design *design, const struct op *op)
{
	struct process p = process_new(design, "layer_mux");
	const struct attr *table = attr_get(op, KEY_TABLE);
	struct value *word = NULL;
	process_layers(&p);
	int opened = process_word_pipeline(&p, op->result[0]->type);
	for (int j = 0; j < op->operands; j++) {
		struct value *taken = make_pop(&p, NULL,
		        process_argument(&p, stream_fifo(design, op->operand[j]),
		                text_format(design->module->arena, "x%d", j)));
		word = word ? make_select(&p, is_layer_operand(&p, table, j), taken, word) : taken;
	}
	make_push(&p, NULL, word, process_argument(&p, stream_fifo(design, op->result[0]), "y"));
	process_close(&p, opened + 1);
	process_finish(&p);
}

/* The stream in words that are whole numbers of words of both types, or parts of both where these
 * would be too wide or too many: words of 4 become 11 by words of 44. */
static const struct type *words_between(
        struct module *module, const struct type *in, const struct type *out)
{
	int64_t common = common_divisor(stream_lanes(in), stream_lanes(out));
	int64_t all = stream_lanes(in) / common * stream_lanes(out);
	const struct type *wide = NULL;
	if (all * type_bits(type_scalar(in)) <= WORD_BITS)
		wide = type_regroup(module, in, all);
	return wide ? wide : type_regroup(module, in, common);
}

static void cast_between(struct design *design, struct value *from, struct value *to,
        const struct type *in, const struct type *out)
{
	add_cast(design, "cast", from, to, stream_lanes(in) > stream_lanes(out) ? in : out);
}

void lower_cast(struct design *design, const struct op *op)
{
	struct module *module = design->module;
	const struct type *in = op->operand[0]->type;
	const struct type *out = op->result[0]->type;
	struct value *to = stream_fifo(design, op->result[0]);
	struct value *from = stream_fifo(design, op->operand[0]);
	int64_t common = common_divisor(stream_lanes(in), stream_lanes(out));
	if (common == stream_lanes(in) || common == stream_lanes(out)) {
		cast_between(design, from, to, in, out);
		return;
	}
	const struct type *middle = words_between(module, in, out);
	INVARIANT(module->guard, middle, "no words between %s and %s", in->text, out->text);
	struct value *words = design_fifo(
	        design, "s_cast", stream_word(module, middle), itensor_tiles(middle->itensor));
	cast_between(design, from, words, in, middle);
	cast_between(design, words, to, middle, out);
}

/* The rows that a rolled layer collects go through one FIFO to what reads the stack. */
static void lower_stack(struct design *design, const struct op *loop, int carried)
{
	struct value *row = loop->region[0]->last->operand[carried]->def->operand[0];
	while (row->def && row->def->code == OP_REASSOCIATE)
		row = row->def->operand[0];
	row->data = stream_fifo(design, loop->result[carried]);
}

/* The feedback of a rolled layer: *enter* passes the first layer what comes from outside, and later
 * layers what was fed back; *leave* feeds back, or passes on after the last layer. */
void lower_layer_feedback(struct design *design, const struct op *loop)
{
	struct module *module = design->module;
	const struct block *body = loop->region[0];
	for (int i = 0; i < loop->results; i++) {
		if (loop_collects(loop, i)) {
			lower_stack(design, loop, i);
			continue;
		}
		if (layer_carry_in_place(module->arena, loop, i))
			continue;
		const struct value *inside = body->argument[i + 1];
		const struct value *made = body->last->operand[i];
		int64_t words = itensor_tiles(inside->type->itensor);
		int64_t last = design->layers - 1;
		struct value *back =
		        design_fifo(design, "s_feedback", stream_word(module, inside->type), words);
		attr_set(module, back->def, KEY_STREAM_LAYER_FEEDBACK, attr_string(module, "back"));
		struct process enter = process_new(design, "layer_enter");
		struct value *first = process_argument(
		        &enter, stream_fifo(design, loop->operand[3 + i]), "first");
		struct value *fed = process_argument(&enter, back, "fed_back");
		struct value *out = process_argument(&enter, stream_fifo(design, inside), "y");
		process_layers(&enter);
		int opened = process_word_pipeline(&enter, inside->type);
		struct value *start = make_equal(&enter, enter.layer, 0);
		struct value *not_first = make_compare(&enter, CMPI_SGT, enter.layer, 0);
		struct value *from_layer = make_pop(&enter, not_first, fed);
		struct value *outside = make_pop(&enter, start, first);
		make_push(&enter, NULL, make_select(&enter, start, outside, from_layer), out);
		process_close(&enter, opened + 1);
		process_finish(&enter);

		struct process leave = process_new(design, "layer_leave");
		struct value *in = process_argument(&leave, stream_fifo(design, made), "x");
		struct value *feed = process_argument(&leave, back, "fed_back");
		process_layers(&leave);
		opened = process_word_pipeline(&leave, inside->type);
		struct value *word = make_pop(&leave, NULL, in);
		make_push(&leave, make_compare(&leave, CMPI_SLT, leave.layer, last), word, feed);
		if (loop->result[i]->uses) {
			struct value *result =
			        process_argument(&leave, stream_fifo(design, loop->result[i]), "y");
			make_push(&leave, make_equal(&leave, leave.layer, last), word, result);
		}
		process_close(&leave, opened + 1);
		process_finish(&leave);
	}
}
