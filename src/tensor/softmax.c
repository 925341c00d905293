/* Matching of the two kernels of a softmax. */
#include "tensor/softmax.h"
#include <math.h>

int softmax_row_loop(const struct kernel *kernel)
{
	int loop = -1;
	for (int l = 0; l < kernel->loops; l++) {
		if (!kernel->loop[l].reduction || kernel->loop[l].extent == 1)
			continue;
		if (loop >= 0)
			return -1;
		loop = l;
	}
	return loop;
}

static bool is_operand(const struct node *node, int operand)
{
	return node->kind == NODE_OPERAND && node->integer == operand;
}

/* Is the kernel exp(scores - maxima) and nothing else? */
static bool match_exponential(struct op *op, struct softmax *softmax)
{
	const struct kernel *kernel = op->kernel;
	const struct body *body = &kernel->update;
	if (kernel_has_reduction(kernel) || op->operands != 2 || body->count != 4 ||
	        body->node[body->result].kind != NODE_OP || body->node[body->result].code != OP_EXP)
		return false;
	const struct node *difference = &body->node[body->node[body->result].argument[0]];
	if (difference->kind != NODE_OP || difference->code != OP_SUBF ||
	        body->node[difference->argument[0]].kind != NODE_OPERAND)
		return false;
	int score = (int)body->node[difference->argument[0]].integer;
	*softmax =
	        (struct softmax){ .op = op, .maxima = op->operand[1 - score]->def, .score = score };
	return is_operand(&body->node[difference->argument[1]], 1 - score) &&
	        access_is_plain(&kernel->operand[0]) && access_is_plain(&kernel->operand[1]) &&
	        access_same(&kernel->operand[score], &kernel->result, kernel->loops);
}

/* Is `maxima` the maximum along one loop of these very scores, loop by loop? */
static bool match_maxima(struct softmax *softmax)
{
	const struct op *op = softmax->op;
	const struct op *maxima = softmax->maxima;
	int term;
	if (!maxima || maxima->code != OP_KERNEL || maxima->operands != 1 ||
	        maxima->operand[0] != op->operand[softmax->score] || maxima->parent != op->parent)
		return false;
	const struct kernel *of = maxima->kernel;
	const struct kernel *kernel = op->kernel;
	if (kernel_combine(of, &term) != OP_MAXIMUMF || !is_operand(&of->update.node[term], 0) ||
	        of->post.count || of->init != -INFINITY || of->loops != kernel->loops)
		return false;
	for (int l = 0; l < kernel->loops; l++)
		if (of->loop[l].extent != kernel->loop[l].extent ||
		        of->result.stride[l] != kernel->operand[1 - softmax->score].stride[l])
			return false;
	softmax->loop = softmax_row_loop(of);
	return softmax->loop >= 0 &&
	        access_same(&of->operand[0], &kernel->operand[softmax->score], kernel->loops) &&
	        of->result.offset == kernel->operand[1 - softmax->score].offset;
}

bool softmax_match(struct op *op, struct softmax *softmax)
{
	return op->code == OP_KERNEL && match_exponential(op, softmax) && match_maxima(softmax);
}
