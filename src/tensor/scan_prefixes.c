/* Computes prefix sums by scans (kernel.h): work grows with the row, not with its square.
 * Before: y[i] = Σ_k (k <= i ? x[k] : 0), for every i over all k
 * After:  y[k] = x[k] + the sum before it
 * One row would wait for the adder at every element, so it is cut into R blocks of C elements:
 *     t[r] = Σ_c x[r C + c];  o[r] = Σ t[s] of s < r;  y[r C + c] = o[r] + the block's own sums
 * Where the row is contiguous, a block is a word, whose lanes are added up at once, and everything
 * passes in the row's order. Else blocks take turns, an element of each.
 * Products, maxima, and minima alike, and sums of k < i.
 * Needs: fused kernels; the mask compares two counters, in the kernel or in one of its own.
 * Guarantees: no reduction of many terms has such a mask, and no kernel more iterations than later
 * passes can count.
 * Reassociating: sums of blocks are added up first.
 * Ends: each step removes a kernel with a mask. */
#include "base/number.h"
#include "ir/kernel_edit.h"
#include "tensor/countable.h"
#include "tensor/tensor_passes.h"
#include <math.h>

/* of shorter rows, masked sums side by side are as fast */
#define TERMS_LEAST 512
#define WORD_TERMS_LEAST 32 /* the same where the row comes in words */
#define WORD_LEAST 16       /* lanes of a word, at least */
#define FIFO_WORD_BITS 4096 /* of the widest word of a FIFO */
#define LANE_OPERATORS 4    /* of a scan, for each lane */
/* rows and blocks that take turns: the lanes of a memory port, times as many as hide the latency of
 * an adder */
#define SIDE_BY_SIDE 128

struct prefix {
	struct module *module;
	struct op *op;
	int along, at;   /* the loop over terms, and the loop over results */
	struct op *mask; /* the kernel that makes the mask; NULL: the mask is in the update */
	int term;        /* node of the update: a term, without the mask */
	bool exclusive;
	enum op_code combine;
	int64_t blocks;
	bool words; /* a block is a word */
};

/* The loop whose counter the node is, as an integer that holds it; -1: it is none. */
static int counter_of(const struct body *body, int number)
{
	const struct node *node = &body->node[number];
	while (node->kind == NODE_OP &&
	        (node->code == OP_INDEX_CAST || node->code == OP_TRUNCI ||
	                node->code == OP_EXTSI)) {
		if (node->type->kind == TYPE_INTEGER && node->type->width < 32)
			return -1;
		node = &body->node[node->argument[0]];
	}
	return node->kind == NODE_OP && node->code == OP_INDEX ? (int)node->integer : -1;
}

static bool is_number(const struct node *node, double number)
{
	return node->kind == NODE_CONSTANT &&
	        (node->type->kind == TYPE_INTEGER ? node->integer == kernel_init_integer(number)
	                                          : node->real == number);
}

/* Does a term of this value leave the accumulator as it is? */
static bool is_neutral(enum op_code combine, double number)
{
	switch (combine) {
	case OP_ADDF:
	case OP_ADDI: return number == 0;
	case OP_MULF:
	case OP_MULI: return number == 1;
	case OP_MAXIMUMF:
	case OP_MINIMUMF:
	case OP_MAXSI:
	case OP_MAXUI:
	case OP_MINSI: return true; /* the accumulator begins with it */
	default: return false;
	}
}

/* Matches the condition for terms up to a result, or before it, on the counters of the body. */
static bool match_counters(
        struct prefix *prefix, const struct body *body, const struct node *condition)
{
	int64_t predicate = condition->integer;
	if (condition->kind != NODE_OP || condition->code != OP_CMPI)
		return false;
	int left = counter_of(body, condition->argument[0]);
	int right = counter_of(body, condition->argument[1]);
	bool up = predicate == CMPI_SLE || predicate == CMPI_SLT;
	if (!up && predicate != CMPI_SGE && predicate != CMPI_SGT)
		return false;
	prefix->along = up ? left : right;
	prefix->at = up ? right : left;
	prefix->exclusive = predicate == CMPI_SLT || predicate == CMPI_SGT;
	return left >= 0 && right >= 0 && left != right;
}

/* The loop of the kernel that walks an operand as its maker's loop `made` writes it; -1: none. */
static int reading_loop(const struct prefix *prefix, int operand, int made)
{
	const struct kernel *kernel = prefix->op->kernel;
	const struct kernel *maker = prefix->mask->kernel;
	for (int l = 0; l < kernel->loops; l++)
		if (kernel->operand[operand].stride[l] == maker->result.stride[made] &&
		        kernel->loop[l].extent == maker->loop[made].extent)
			return l;
	return -1;
}

/* Matches a mask that another kernel makes of two counters and nothing else. */
static bool match_mask(struct prefix *prefix, int operand)
{
	struct op *maker = prefix->op->operand[operand]->def;
	const struct access *read = &prefix->op->kernel->operand[operand];
	if (!maker || maker->code != OP_KERNEL || maker->operands || maker->kernel->loops != 2 ||
	        maker->kernel->post.count || kernel_has_reduction(maker->kernel) ||
	        !access_is_plain(read) || read->offset || maker->kernel->result.offset)
		return false;
	const struct body *body = &maker->kernel->update;
	prefix->mask = maker;
	if (!match_counters(prefix, body, &body->node[body->result]))
		return false;
	prefix->along = reading_loop(prefix, operand, prefix->along);
	prefix->at = reading_loop(prefix, operand, prefix->at);
	if (prefix->along < 0 || prefix->at < 0 || prefix->along == prefix->at)
		return false;
	for (int l = 0; l < prefix->op->kernel->loops; l++)
		if (read->stride[l] && l != prefix->along && l != prefix->at)
			return false;
	return true;
}

static bool match_condition(struct prefix *prefix, const struct node *condition)
{
	return condition->kind == NODE_OPERAND
	        ? match_mask(prefix, (int)condition->integer)
	        : match_counters(prefix, &prefix->op->kernel->update, condition);
}

/* Does the value of a node depend on the counter of the loop? */
static bool depends_on(const struct op *op, const struct body *body, int number, int loop)
{
	const struct node *node = &body->node[number];
	if (node->kind == NODE_OPERAND) {
		const struct access *access = &op->kernel->operand[node->integer];
		return access->stride[loop] || access_guard(access, loop) ||
		        access->index_operand >= 0;
	}
	if (node->kind != NODE_OP)
		return node->kind == NODE_ACCUMULATOR;
	if (node->code == OP_ACTIVE)
		return true;
	if (node->code == OP_INDEX)
		return node->integer == loop;
	for (int a = 0; a < body_arguments(node); a++)
		if (depends_on(op, body, node->argument[a], loop))
			return true;
	return false;
}

static bool is_only_reduction(const struct kernel *kernel, int loop)
{
	for (int l = 0; l < kernel->loops; l++)
		if (kernel->loop[l].reduction != (l == loop) || kernel->loop[l].run_time)
			return false;
	return true;
}

/* Post runs at every result: it may read what lies at one, but no counter, which a cut changes. */
static bool post_is_plain(const struct op *op)
{
	const struct kernel *kernel = op->kernel;
	for (int j = 0; j < op->operands; j++)
		if (body_uses_operand(&kernel->post, j) &&
		        (body_uses_operand(&kernel->update, j) ||
		                !access_is_plain(&kernel->operand[j])))
			return false;
	return !body_uses_counters(&kernel->post);
}

/* Blocks of a row: enough of them, or as many as divide it. */
static int64_t blocks_of(const struct op *op, int along, int at)
{
	const struct kernel *kernel = op->kernel;
	int64_t rows = 1;
	int64_t terms = kernel->loop[along].extent;
	int64_t found = 1;
	for (int l = 0; l < kernel->loops; l++)
		rows *= l == along || l == at ? 1 : kernel->loop[l].extent;
	for (int64_t blocks = 1; blocks * blocks <= terms && rows * found < SIDE_BY_SIDE; blocks++)
		if (terms % blocks == 0)
			found = blocks;
	return kernel_is_guarded(op, along) ? 1 : found;
}

/* Bits of a word: two FIFOs', where memory brings more than one of them in the cycles in which it
 * also takes the results, and a die has the operators. */
static int64_t word_bits(const struct pass_context *context, const struct kernel *kernel)
{
	const struct platform *platform = context->platform;
	int term;
	struct operator_cost cost =
	        platform_operator(platform, kernel_combine(kernel, &term), kernel->type);
	int64_t operators = 2 * FIFO_WORD_BITS / type_bits(kernel->type) * LANE_OPERATORS;
	double brought = 8 * platform_channel_rate(platform) * platform->channels / 2;
	for (int d = 0; d < platform->dies && brought > FIFO_WORD_BITS; d++)
		if (operators * cost.dsp <= platform->die[d].dsp &&
		        operators * cost.lut <= platform->die[d].lut)
			return 2 * FIFO_WORD_BITS;
	return FIFO_WORD_BITS;
}

/* Elements of a word of the row; 1: it is not contiguous, or no word divides it. */
static int64_t word_of(const struct pass_context *context, const struct op *op, int along, int at)
{
	const struct kernel *kernel = op->kernel;
	bool contiguous = kernel->result.stride[at] == 1 && !kernel_is_guarded(op, along) &&
	        !kernel_is_guarded(op, at);
	for (int j = 0; j < op->operands; j++)
		contiguous = contiguous && kernel->operand[j].stride[along] <= 1 &&
		        kernel->operand[j].index_operand < 0;
	int64_t word = power_of_two_in(
	        kernel->loop[along].extent, word_bits(context, kernel) / type_bits(kernel->type));
	return contiguous && word >= WORD_LEAST ? word : 1;
}

static bool match_prefix(const struct pass_context *context, struct module *module, struct op *op,
        struct prefix *prefix)
{
	const struct kernel *kernel = op->code == OP_KERNEL ? op->kernel : NULL;
	int term;
	if (!kernel || kernel->scan || kernel->ordered || kernel->tile_outermost ||
	        !kernel_has_reduction(kernel))
		return false;
	*prefix = (struct prefix){ .module = module, .op = op };
	prefix->combine = kernel_combine(kernel, &term);
	if (!is_neutral(prefix->combine, kernel->init))
		return false;
	const struct node *select = &kernel->update.node[term];
	if (select->kind != NODE_OP || select->code != OP_SELECT ||
	        !is_number(&kernel->update.node[select->argument[2]], kernel->init) ||
	        !match_condition(prefix, &kernel->update.node[select->argument[0]]))
		return false;
	prefix->term = select->argument[1];
	int64_t word = word_of(context, op, prefix->along, prefix->at);
	prefix->words = word > 1;
	prefix->blocks = word > 1 ? kernel->loop[prefix->along].extent / word
	                          : blocks_of(op, prefix->along, prefix->at);
	return is_only_reduction(kernel, prefix->along) &&
	        kernel->loop[prefix->along].extent == kernel->loop[prefix->at].extent &&
	        kernel->loop[prefix->along].extent >=
	        (prefix->words ? WORD_TERMS_LEAST : TERMS_LEAST) &&
	        kernel->result.stride[prefix->at] && post_is_plain(op) &&
	        !depends_on(op, &kernel->update, prefix->term, prefix->at);
}

/* The access without the loop over results, which the loop over terms stands for. */
static struct access joined_access(const struct prefix *prefix, const struct access *from)
{
	const struct kernel *kernel = prefix->op->kernel;
	struct access to = access_empty(prefix->module, kernel->loops - 1);
	to.offset = from->offset;
	for (int l = 0; l < kernel->loops; l++)
		if (from->stride[l])
			to.stride[(l == prefix->at ? prefix->along : l) -
			        ((l == prefix->at ? prefix->along : l) > prefix->at)] =
			        from->stride[l];
	for (int i = 0; i < from->guards; i++) {
		struct guard_range guard = from->guard[i];
		guard.loop -= guard.loop > prefix->at;
		access_add_guard(prefix->module, &to, guard);
	}
	return to;
}

/* The kernel's terms, over all loops but that over results, with one more operand. */
static struct op *terms_kernel(const struct prefix *prefix, const char *name, struct value *more,
        const struct type *result)
{
	struct module *module = prefix->module;
	const struct op *from = prefix->op;
	const struct kernel *kernel = from->kernel;
	struct value **operand = ARENA_ARRAY(module->arena, struct value *, from->operands + 1);
	int *index = ARENA_ARRAY(module->arena, int, kernel->loops);
	for (int j = 0; j < from->operands; j++)
		operand[j] = from->operand[j];
	operand[from->operands] = more;
	struct op *op = kernel_new(module, from->location,
	        text_format(module->arena, "%s_%s", kernel->name, name), kernel->loops - 1,
	        from->operands + (more != NULL), operand, result);
	for (int l = 0; l < kernel->loops; l++) {
		index[l] = -1;
		if (l != prefix->at)
			op->kernel->loop[l - (l > prefix->at)] = kernel->loop[l];
	}
	for (int l = 0; l < kernel->loops; l++)
		if (body_uses_counter(&kernel->update, l) && l != prefix->at)
			index[l] = body_index(module, &op->kernel->update, l - (l > prefix->at));
	for (int j = 0; j < from->operands; j++)
		op->kernel->operand[j] = joined_access(prefix, &kernel->operand[j]);
	op->kernel->init = kernel->init;
	struct body term = kernel->update;
	term.result = prefix->term;
	int before = body_add(module, &op->kernel->update,
	        (struct node){ .kind = NODE_ACCUMULATOR, .type = kernel->type });
	int node = body_rewrite(module, &op->kernel->update, &term,
	        (struct body_map){ .index = index, .accumulator = -1 });
	op->kernel->update.result = body_op(
	        module, &op->kernel->update, prefix->combine, kernel->type, before, node, 0);
	body_remove_dead(module, &op->kernel->update);
	return op;
}

static int along_of(const struct prefix *prefix)
{
	return prefix->along - (prefix->along > prefix->at);
}

/* Strides of a row-major tensor of all parallel points; returns their number. */
static int64_t lay_rows(const struct kernel *kernel, int from, int64_t *stride)
{
	int64_t points = 1;
	for (int l = kernel->loops - 1; l >= 0; l--) {
		if (l == from)
			continue;
		stride[l] = points;
		points *= kernel->loop[l].extent;
	}
	return points;
}

static const struct type *sums_type(const struct prefix *prefix)
{
	int64_t points = prefix->blocks;
	for (int l = 0; l < prefix->op->kernel->loops; l++)
		if (l != prefix->along && l != prefix->at)
			points *= prefix->op->kernel->loop[l].extent;
	return type_shaped(prefix->module, TYPE_TENSOR, 1, &points, prefix->op->kernel->type);
}

/* The sum of each block. */
static struct op *add_totals(const struct prefix *prefix)
{
	struct op *op = terms_kernel(prefix, "totals", NULL, sums_type(prefix));
	struct kernel *kernel = op->kernel;
	int along = along_of(prefix);
	kernel_split_loop(prefix->module, op, along, kernel->loop[along].extent / prefix->blocks);
	kernel->loop[along].reduction = false;
	lay_rows(kernel, along + 1, kernel->result.stride);
	op_insert_before(prefix->op, op);
	return op;
}

/* For each block the sum of the blocks before it. */
static struct op *add_offsets(const struct prefix *prefix, const struct op *totals)
{
	struct module *module = prefix->module;
	const struct kernel *from = totals->kernel;
	int along = along_of(prefix);
	struct op *op = kernel_new(module, totals->location,
	        text_format(module->arena, "%s_offsets", prefix->op->kernel->name), from->loops - 1,
	        1, &totals->result[0], totals->result[0]->type);
	struct kernel *kernel = op->kernel;
	for (int l = 0; l < kernel->loops; l++)
		kernel->loop[l] = from->loop[l + (l > along)];
	kernel->loop[along].reduction = true;
	lay_rows(kernel, -1, kernel->result.stride);
	lay_rows(kernel, -1, kernel->operand[0].stride);
	kernel->init = from->init;
	kernel->scan = true;
	int before = body_add(module, &kernel->update,
	        (struct node){ .kind = NODE_ACCUMULATOR, .type = kernel->type });
	kernel->update.result = body_op(module, &kernel->update, prefix->combine, kernel->type,
	        before, body_operand(module, &kernel->update, kernel->type, 0), 0);
	kernel->post.result = body_add(module, &kernel->post,
	        (struct node){ .kind = NODE_ACCUMULATOR, .type = kernel->type });
	op_insert_before(prefix->op, op);
	return op;
}

/* What the scan gives at each point: post of the sum up to it, or before it.  offset: operand with
 * the sum of the blocks before; -1: there is none. */
static void write_results(const struct prefix *prefix, struct kernel *kernel, int offset)
{
	struct module *module = prefix->module;
	const struct body *post = &prefix->op->kernel->post;
	struct body *body = &kernel->post;
	int sum = body_add(
	        module, body, (struct node){ .kind = NODE_ACCUMULATOR, .type = kernel->type });
	if (!prefix->exclusive)
		sum = body_import(module, body, &kernel->update, NULL, -1);
	if (offset >= 0)
		sum = body_op(module, body, prefix->combine, kernel->type,
		        body_operand(module, body, kernel->type, offset), sum, 0);
	body->result = post->count
	        ? body_rewrite(module, body, post, (struct body_map){ .accumulator = sum })
	        : sum;
	body_remove_dead(module, body);
}

/* The parallel loop along which the result's elements are nearest; -1: none. */
static int nearest_rows(const struct kernel *kernel)
{
	int found = -1;
	for (int l = 0; l < kernel->loops; l++)
		if (!kernel->loop[l].reduction &&
		        (found < 0 || kernel->result.stride[l] < kernel->result.stride[found]))
			found = l;
	return found;
}

/* The loop over the terms last: they are the lanes. */
static void order_terms(struct module *module, struct op *op)
{
	struct kernel *kernel = op->kernel;
	for (int l = 0; l < kernel->loops; l++)
		if (kernel->loop[l].reduction) {
			kernel_move_loop(module, op, l, kernel->loops - 1);
			break;
		}
	kernel->ordered = true;
}

/* Orders the loops so that a term of each of several rows comes before the next of one row: then no
 * sum is waited for. */
static void interleave_rows(struct module *module, struct op *op)
{
	struct kernel *kernel = op->kernel;
	int rows = nearest_rows(kernel);
	if (rows < 0)
		return;
	for (int64_t some = SIDE_BY_SIDE; some > 1 && kernel->loop[rows].extent > SIDE_BY_SIDE;
	        some--)
		if (kernel_split_loop(module, op, rows, some))
			rows++;
	for (int l = 0; l < kernel->loops; l++)
		if (kernel->loop[l].reduction) {
			kernel_move_loop(module, op, l, kernel->loops - 1);
			rows -= l < rows;
			break;
		}
	kernel_move_loop(module, op, rows, kernel->loops - 1);
	kernel->ordered = true;
}

static void scan_prefix(const struct prefix *prefix)
{
	struct op *from = prefix->op;
	bool cut = prefix->blocks > 1;
	struct op *totals = cut ? add_totals(prefix) : NULL;
	struct op *offsets = cut ? add_offsets(prefix, totals) : NULL;
	struct op *op = terms_kernel(
	        prefix, "scan", cut ? offsets->result[0] : NULL, from->result[0]->type);
	struct kernel *kernel = op->kernel;
	int along = along_of(prefix);
	kernel->scan = true;
	kernel->result = joined_access(prefix, &from->kernel->result);
	write_results(prefix, kernel, cut ? from->operands : -1);
	if (cut) {
		kernel_split_loop(
		        prefix->module, op, along, kernel->loop[along].extent / prefix->blocks);
		kernel->loop[along].reduction = false;
		lay_rows(kernel, along + 1, kernel->operand[from->operands].stride);
	}
	op_insert_before(from, op);
	if (totals)
		kernel_tidy(prefix->module, totals);
	kernel_tidy(prefix->module, op);
	if (prefix->words)
		order_terms(prefix->module, op);
	else
		interleave_rows(prefix->module, op);
	if (prefix->words && cut)
		order_terms(prefix->module, offsets);
	ir_replace(from->parent, from->result[0], op->result[0]);
	op_remove(from);
	ir_count_uses(module_main(prefix->module)->region[0]);
	if (prefix->mask && !prefix->mask->result[0]->uses)
		op_remove(prefix->mask);
}

static void scan_block(
        const struct pass_context *context, struct module *module, struct block *block)
{
	for (struct op *op = block->first, *next; op; op = next) {
		struct prefix prefix;
		next = op->next;
		if (op->code == OP_FOR)
			scan_block(context, module, op->region[0]);
		if (match_prefix(context, module, op, &prefix))
			scan_prefix(&prefix);
	}
}

bool scan_prefixes(struct pass_context *context, struct module *module)
{
	struct block *body = module_main(module)->region[0];
	scan_block(context, module, body);
	return is_countable(module, body, COUNTABLE_BITS);
}
