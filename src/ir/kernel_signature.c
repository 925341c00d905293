/* Prints a kernel's structure as text, so that equal kernels are found by comparing strings. */
#include "ir/sliding_window.h"
#include "ir/kernel_edit.h"
#include "ir/kernel_signature.h"
#include <inttypes.h>
#include <string.h>

static void add_access(const struct access *access, int loops, struct text *out)
{
	text_add(out, "[%" PRId64, access->offset);
	for (int l = 0; l < loops; l++)
		text_add(out, " %" PRId64, access->stride[l]);
	for (int i = 0; i < access->guards; i++)
		text_add(out, " g%d:%" PRId64 ":%" PRId64 "%s", access->guard[i].loop,
		        access->guard[i].low, access->guard[i].high,
		        access->guard[i].last ? " last" : "");
	if (access->index_operand >= 0)
		text_add(out, " i%d:%" PRId64 ":%" PRId64, access->index_operand,
		        access->index_stride, access->index_limit);
	if (access->causal_pitch)
		text_add(out, " l%" PRId64, access->causal_pitch);
	text_add(out, "]");
}

static void add_body(const struct body *body, struct text *out)
{
	text_add(out, "{");
	for (int i = 0; i < body->count; i++) {
		const struct node *node = &body->node[i];
		text_add(out, "%d.%d:%s %" PRId64 " %a", node->kind, (int)node->code,
		        node->type->text, node->integer, node->real);
		for (int k = 0; k < body_arguments(node); k++)
			text_add(out, " %%%d", node->argument[k]);
		text_add(out, ";");
	}
	text_add(out, "%d}", body->result);
}

void kernel_signature(const struct op *op, const struct module *module, struct text *out)
{
	const struct kernel *kernel = op->kernel;
	text_add(out, "%s %a ", kernel->type->text, kernel->init);
	text_add(out, "%s", kernel->ordered ? "o " : "");
	text_add(out, "%s", kernel->tile_outermost ? "t " : "");
	text_add(out, "%s", kernel->scan ? "s " : "");
	for (int l = 0; l < kernel->loops; l++) {
		const struct run_time_trip *trip = kernel->loop[l].run_time;
		text_add(out, "%s%" PRId64 " ", kernel->loop[l].reduction ? "r" : "p",
		        kernel->loop[l].extent);
		if (trip)
			text_add(out, "(%s+%" PRId64 ")/%" PRId64 " ",
			        module ? sliding_window_symbol(module, trip->symbol) : trip->symbol,
			        trip->plus, trip->tile);
	}
	for (int i = 0; i < op->operands; i++) {
		text_add(out, "%s", type_scalar(op->operand[i]->type)->text);
		add_access(&kernel->operand[i], kernel->loops, out);
	}
	add_access(&kernel->result, kernel->loops, out);
	add_body(&kernel->update, out);
	add_body(&kernel->post, out);
}

bool kernel_is_copy(const struct op *op)
{
	const struct kernel *kernel = op->kernel;
	return op->operands == 1 && !kernel->post.count && kernel->update.count &&
	        kernel->update.node[kernel->update.result].kind == NODE_OPERAND &&
	        !kernel_has_reduction(kernel) && !kernel->operand[0].guards;
}

bool kernel_is_identity(const struct op *op)
{
	const struct kernel *kernel = op->kernel;
	int64_t points = 1;
	for (int l = 0; l < kernel->loops; l++)
		points *= kernel->loop[l].extent;
	return kernel_is_copy(op) && points == type_elements(op->operand[0]->type) &&
	        points == type_elements(op->result[0]->type) &&
	        access_same(&kernel->operand[0], &kernel->result, kernel->loops);
}
