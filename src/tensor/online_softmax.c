/* Computes a softmax in one pass over its scores, with a running maximum m.
 * Before: m = max s;  e = exp(s - m);  a = Σ e v
 * After:  for each score s: e' = exp(s - m), f = exp(m before s - m), a <- a f + e' v
 * Scores then need not be buffered until the maximum of the row is known.  One of e' and f is 1,
 * the other exp(-|s - m before s|): a scan (kernel.h) gives it, negative where it is f.  The
 * maximum begins with the least finite number: so minus infinities before the first finite score
 * give e' = 0 and f = 1, never the difference of two infinities.  Only where sums alone read the
 * exponentials, as one factor of each term; --softmax auto: where many scores would be buffered.
 * Needs: fused kernels.
 * Guarantees: such a softmax reads each score once.
 * Reassociating: the same real number, rounded elsewhere.
 * Ends: each step removes an exponential of a maximum. */
#include "tensor/tensor_passes.h"
#include "tensor/softmax.h"
#include <float.h>

/* Cycles that the scaling of a sum may take for each score (--softmax auto); it costs a multiplier
 * for each lane of the sums. */
#define RESCALE_CYCLES 3

/* Kernels that read the exponentials. */
struct exponential_readers {
	VEC(struct op *) op;
};

static bool is_operand(const struct node *node, int operand)
{
	return node->kind == NODE_OPERAND && node->integer == operand;
}

/* Is the node the operand, or a product with it as one factor? */
static bool is_linear(const struct body *body, int number, int operand)
{
	const struct node *node = &body->node[number];
	if (node->kind != NODE_OP || node->code != OP_MULF)
		return is_operand(node, operand);
	return is_linear(body, node->argument[0], operand) !=
	        is_linear(body, node->argument[1], operand);
}

/* Uses of the operand in the body; a test whether it is active counts as more than one. */
static int uses_of(const struct body *body, int operand)
{
	int uses = 0;
	for (int n = 0; n < body->count; n++) {
		const struct node *node = &body->node[n];
		for (int a = 0; node->kind == NODE_OP && a < body_arguments(node); a++)
			uses += is_operand(&body->node[node->argument[a]], operand);
		if (node->kind == NODE_OP && node->code == OP_ACTIVE && node->integer == operand)
			uses += 2;
	}
	return uses;
}

/* Is the reader a sum along the row whose terms are linear in the exponentials? */
static bool is_sum(const struct softmax *softmax, const struct op *reader, int operand)
{
	const struct kernel *kernel = reader->kernel;
	const struct kernel *row = softmax->op->kernel;
	int term;
	int loop = softmax_row_loop(kernel);
	if (loop < 0 || kernel->ordered || kernel_combine(kernel, &term) != OP_ADDF ||
	        kernel->init != 0 || kernel->type != row->type ||
	        !access_is_plain(&kernel->operand[operand]))
		return false;
	bool whole = kernel->loop[loop].extent == row->loop[softmax->loop].extent &&
	        !kernel->loop[loop].run_time == !row->loop[softmax->loop].run_time;
	return whole && is_linear(&kernel->update, term, operand) &&
	        uses_of(&kernel->update, operand) == 1 &&
	        kernel->operand[operand].stride[loop] == row->result.stride[softmax->loop] &&
	        !body_uses_operand(&kernel->post, operand);
}

/* Collects all readers of the exponentials.  false: one of them is not such a sum. */
static bool readers_are_sums(
        struct arena *arena, const struct softmax *softmax, struct exponential_readers *sums)
{
	const struct value *value = softmax->op->result[0];
	int uses = 0;
	for (struct op *op = softmax->op->next; op; op = op->next)
		for (int j = 0; j < op->operands; j++) {
			if (op->operand[j] != value)
				continue;
			if (op->code != OP_KERNEL || !is_sum(softmax, op, j))
				return false;
			VEC_PUSH(arena, &sums->op, op);
			uses++;
		}
	return uses > 0 && uses == value->uses;
}

/* Among the sums, the product with values in memory; *operand: its operand with the exponentials.
 * NULL: there is none. */
static const struct op *product_of(
        const struct softmax *softmax, const struct exponential_readers *sums, int *operand)
{
	for (size_t i = 0; i < sums->op.count; i++) {
		const struct op *op = sums->op.data[i];
		const struct op *found = NULL;
		for (int j = 0; j < op->operands; j++) {
			const struct op *def = op->operand[j]->def;
			if (op->operand[j] == softmax->op->result[0])
				*operand = j;
			else if (!kernel_is_post_operand(op->kernel, j) &&
			        (!def || def->code == OP_LAYER_SELECT))
				found = op;
		}
		if (found)
			return found;
	}
	return NULL;
}

/* Does the loop walk rows of exponentials that are multiplied with the same values? */
static bool shares_values(const struct op *product, int operand, int loop)
{
	for (int j = 0; j < product->operands; j++)
		if (j != operand && product->kernel->operand[j].stride[loop] &&
		        !kernel_is_post_operand(product->kernel, j))
			return false;
	return product->kernel->operand[operand].stride[loop] &&
	        !product->kernel->loop[loop].reduction;
}

/* Are many scores buffered, and is there time to scale the sums?  Values are read from memory once,
 * so the scores of all rows that share them are buffered at the same time.  A sum is scaled once
 * for each score of its row; scores of the other rows come in between. */
static bool is_profitable(const struct pass_context *context, const struct softmax *softmax,
        const struct exponential_readers *sums)
{
	const struct kernel *row = softmax->op->kernel;
	int operand = 0;
	int64_t rows = 1;
	const struct op *product = product_of(softmax, sums, &operand);
	for (int l = 0; product && l < product->kernel->loops; l++)
		if (shares_values(product, operand, l))
			rows *= product->kernel->loop[l].extent;
	int latency = platform_operator(context->platform, OP_MULF, row->type).latency +
	        platform_operator(context->platform, OP_ADDF, row->type).latency;
	return product &&
	        rows * row->loop[softmax->loop].extent * type_bits(row->type) / 8 >
	        SOFTMAX_BUFFERED_MOST &&
	        latency <= RESCALE_CYCLES * rows;
}

static bool is_wanted(const struct pass_context *context, const struct softmax *softmax,
        const struct exponential_readers *sums)
{
	switch ((enum softmax_form)choice_word(&context->choices, CHOICE_SOFTMAX)) {
	case SOFTMAX_AUTO: return is_profitable(context, softmax, sums);
	case SOFTMAX_ONLINE: return true;
	case SOFTMAX_TWO_PASS:
	case SOFTMAX_FORMS: return false;
	}
	return false;
}

/* ---- loop order */

/* Splits the kernel's loops over the exponentials at the strides of the product's loops. */
static void cut_loops(struct module *module, struct op *op, const struct access *access,
        const struct op *product, int operand)
{
	const int64_t *at = product->kernel->operand[operand].stride;
	for (int l = 0; l < op->kernel->loops; l++)
		for (int p = 0; p < product->kernel->loops; p++) {
			int64_t own = access->stride[l];
			if (own > 0 && at[p] > own && at[p] % own == 0 &&
			        at[p] < own * op->kernel->loop[l].extent &&
			        kernel_split_loop(module, op, l, at[p] / own)) {
				l = -1;
				break;
			}
		}
}

/* In the order from outside to inside. */
enum loop_role { OUTSIDE_ROW, ALONG_ROW, SHARES_VALUES };

static enum loop_role loop_role(const struct kernel *kernel, const struct access *access, int loop,
        const struct op *product, int operand)
{
	for (int p = 0; p < product->kernel->loops && !kernel->loop[loop].reduction; p++)
		if (product->kernel->operand[operand].stride[p] == access->stride[loop] &&
		        shares_values(product, operand, p))
			return SHARES_VALUES;
	return kernel->loop[loop].reduction ? ALONG_ROW : OUTSIDE_ROW;
}

static void permute(struct module *module, struct access *access, const int *from, int loops)
{
	int64_t *stride = ARENA_ARRAY(module->arena, int64_t, loops + 1);
	for (int l = 0; l < loops; l++)
		stride[l] = access->stride[from[l]];
	access->stride = stride;
}

/* Orders the loops of a kernel whose only operand lies as the exponentials do: rows that share
 * values innermost, as the product reads them. */
static void order_loops(struct module *module, struct op *op, const struct op *product, int operand)
{
	struct kernel *kernel = op->kernel;
	cut_loops(module, op, &kernel->operand[0], product, operand);
	int count = 0;
	int *from = ARENA_ARRAY(module->arena, int, kernel->loops + 1);
	struct loop *loop = ARENA_ARRAY(module->arena, struct loop, kernel->loops + 1);
	for (enum loop_role role = OUTSIDE_ROW; role <= SHARES_VALUES; role++)
		for (int l = 0; l < kernel->loops; l++)
			if (loop_role(kernel, &kernel->operand[0], l, product, operand) == role)
				from[count++] = l;
	for (int l = 0; l < kernel->loops; l++)
		loop[l] = kernel->loop[from[l]];
	kernel->loop = loop;
	permute(module, &kernel->operand[0], from, kernel->loops);
	permute(module, &kernel->result, from, kernel->loops);
	kernel->ordered = true;
}

/* ---- the scan and the sums */

static int compare(struct module *module, struct body *body, int predicate, int left, int right)
{
	return body_add(module, body,
	        (struct node){ .kind = NODE_OP,
	                .code = OP_CMPF,
	                .type = type_integer(module, 1),
	                .argument = { left, right },
	                .integer = predicate });
}

static int real_constant(
        struct module *module, struct body *body, const struct type *type, double number)
{
	return body_add(
	        module, body, (struct node){ .kind = NODE_CONSTANT, .type = type, .real = number });
}

/* Body: e = exp(-|score - maximum before it|), as -e where the score is the new maximum; at least
 * FLT_MIN there, so that the sign is not lost. */
static void write_steps(struct module *module, struct body *body, const struct type *type)
{
	int before =
	        body_add(module, body, (struct node){ .kind = NODE_ACCUMULATOR, .type = type });
	int score = body_operand(module, body, type, 0);
	int above = compare(module, body, CMPF_OGT, score, before);
	int distance = body_op(module, body, OP_ABSF, type,
	        body_op(module, body, OP_SUBF, type, score, before, 0), 0, 0);
	int step = body_op(module, body, OP_EXP, type,
	        body_op(module, body, OP_NEGF, type, distance, 0, 0), 0, 0);
	int positive = body_op(module, body, OP_MAXIMUMF, type, step,
	        real_constant(module, body, type, FLT_MIN), 0);
	body->result = body_op(module, body, OP_SELECT, type, above,
	        body_op(module, body, OP_NEGF, type, positive, 0, 0), step);
}

/* The scan that replaces the exponentials. */
static struct op *add_scan(struct module *module, const struct softmax *softmax)
{
	const struct kernel *from = softmax->op->kernel;
	const char *name = text_format(module->arena, "%s_online_max", from->name);
	struct op *op = kernel_new(module, softmax->op->location, name, from->loops, 1,
	        &softmax->op->operand[softmax->score], softmax->op->result[0]->type);
	struct kernel *kernel = op->kernel;
	for (int l = 0; l < from->loops; l++)
		kernel->loop[l] = from->loop[l];
	kernel->loop[softmax->loop].reduction = true;
	kernel->operand[0] = access_copy(module, &from->operand[softmax->score], from->loops);
	kernel->result = access_copy(module, &from->result, from->loops);
	kernel->init = -FLT_MAX;
	kernel->scan = true;
	int before = body_add(module, &kernel->update,
	        (struct node){ .kind = NODE_ACCUMULATOR, .type = kernel->type });
	kernel->update.result = body_op(module, &kernel->update, OP_MAXIMUMF, kernel->type, before,
	        body_operand(module, &kernel->update, kernel->type, 0), 0);
	write_steps(module, &kernel->post, kernel->type);
	op_insert_before(softmax->op, op);
	return op;
}

/* Changes a sum to acc * f + term with e'; f and e' follow from the scan's number. */
static void scale_sum(
        struct module *module, const struct softmax *softmax, struct op *sum, struct value *steps)
{
	struct kernel *kernel = sum->kernel;
	const struct type *type = kernel->type;
	struct body from = kernel->update;
	struct body *body = &kernel->update;
	int operand = 0;
	int *node = ARENA_ARRAY(module->arena, int, sum->operands + 1);
	for (int j = 0; j < sum->operands; j++) {
		if (sum->operand[j] == softmax->op->result[0])
			operand = j;
		node[j] = -1;
	}
	kernel_combine(kernel, &from.result);
	*body = (struct body){ 0 };
	int step = body_operand(module, body, type, operand);
	int one = real_constant(module, body, type, 1);
	int above = compare(module, body, CMPF_OLT, step, real_constant(module, body, type, 0));
	int factor = body_op(module, body, OP_SELECT, type, above,
	        body_op(module, body, OP_NEGF, type, step, 0, 0), one);
	node[operand] = body_op(module, body, OP_SELECT, type, above, one, step);
	int before =
	        body_add(module, body, (struct node){ .kind = NODE_ACCUMULATOR, .type = type });
	int scaled = body_op(module, body, OP_MULF, type, before, factor, 0);
	int term = body_rewrite(
	        module, body, &from, (struct body_map){ .operand = node, .accumulator = -1 });
	body->result = body_op(module, body, OP_ADDF, type, scaled, term, 0);
	body_remove_dead(module, body);
	sum->operand[operand] = steps;
}

static void rewrite_softmax(
        struct module *module, struct softmax *softmax, const struct exponential_readers *sums)
{
	struct op *steps = add_scan(module, softmax);
	int operand = 0;
	const struct op *product = product_of(softmax, sums, &operand);
	if (product)
		order_loops(module, steps, product, operand);
	for (size_t i = 0; i < sums->op.count; i++) {
		struct op *sum = sums->op.data[i];
		scale_sum(module, softmax, sum, steps->result[0]);
		if (product && sum->operands == 1 && !body_uses_counters(&sum->kernel->update))
			order_loops(module, sum, product, operand);
	}
	op_remove(softmax->op);
	if (softmax->maxima->result[0]->uses == 1)
		op_remove(softmax->maxima);
}

static void rewrite_softmaxes(
        struct pass_context *context, struct module *module, struct block *block)
{
	for (struct op *op = block->first, *next; op; op = next) {
		struct softmax softmax;
		struct exponential_readers sums = { 0 };
		next = op->next;
		if (op->code == OP_FOR)
			rewrite_softmaxes(context, module, op->region[0]);
		if (softmax_match(op, &softmax) &&
		        readers_are_sums(module->arena, &softmax, &sums) &&
		        is_wanted(context, &softmax, &sums))
			rewrite_softmax(module, &softmax, &sums);
	}
}

bool online_softmax(struct pass_context *context, struct module *module)
{
	ir_count_uses(module_main(module)->region[0]);
	rewrite_softmaxes(context, module, module_main(module)->region[0]);
	return true;
}
