/* Frees the order of a sum, where the user allows it.
 * Before: acc = (first ? x : acc) + term      After: acc = acc + term from 0, then x + acc
 * A kernel of the second form has lanes and partial sums along its reduction. Differences become
 * sums of negated terms; products likewise, from 1. */
#include "raise/raise_internal.h"
#include "ir/kernel_edit.h"

enum { SUMS_LEAST = 256 };

struct accumulation {
	struct raising *r;
	struct op *op;
	const struct body *body; /* of the update as it was */
	enum op_code code;       /* ADDF, MULF, ADDI or MULI */
	bool negated;            /* the term is subtracted */
	int first, term;         /* nodes; first -1: the sum begins with the accumulator's init */
	int inside;              /* node of the condition under which a term is added; -1: always */
};

static bool is_select(const struct node *node)
{
	return node->kind == NODE_OP && node->code == OP_SELECT;
}

/* first ? x : acc */
static bool match_first(struct accumulation *a, int at)
{
	const struct node *node = &a->body->node[at];
	if (!is_select(node) || a->body->node[node->argument[2]].kind != NODE_ACCUMULATOR ||
	        body_depends_on_accumulator(a->body, node->argument[1]))
		return false;
	a->first = node->argument[1];
	return true;
}

static bool match(struct accumulation *a)
{
	const struct node *node = &a->body->node[a->body->result];
	a->inside = -1;
	bool guarded = is_select(node) && a->body->node[node->argument[2]].kind == NODE_ACCUMULATOR;
	if (guarded) {
		a->inside = node->argument[0];
		node = &a->body->node[node->argument[1]];
	}
	bool sub = node->kind == NODE_OP && (node->code == OP_SUBF || node->code == OP_SUBI);
	bool commutes = node->kind == NODE_OP &&
	        (node->code == OP_ADDF || node->code == OP_ADDI || node->code == OP_MULF ||
	                node->code == OP_MULI);
	if (!sub && !commutes)
		return false;
	a->negated = sub;
	a->code = node->code;
	if (sub)
		a->code = node->code == OP_SUBF ? OP_ADDF : OP_ADDI;
	for (int i = 0; i < 2 - sub; i++) {
		a->term = node->argument[1 - i];
		if (!body_depends_on_accumulator(a->body, a->term) &&
		        match_first(a, node->argument[i]))
			return true;
	}
	return false;
}

/* The operand that `first` is; it must be the same for all of a sum's terms. */
static int first_operand(const struct accumulation *a)
{
	const struct node *node = &a->body->node[a->first];
	return node->kind == NODE_OPERAND ? (int)node->integer : -1;
}

/* Takes the fixed counters of the first iteration out of the access, so that post can read it. */
static bool fix_first(struct accumulation *a, int operand)
{
	struct kernel *kernel = a->op->kernel;
	struct access *access = &kernel->operand[operand];
	struct access fixed = access_copy(a->r->module, access, kernel->loops);
	fixed.guards = 0;
	for (int l = 0; l < kernel->loops; l++) {
		const struct guard_range *guard = access_guard(access, l);
		if (!kernel->loop[l].reduction) {
			if (guard)
				access_add_guard(a->r->module, &fixed, *guard);
			continue;
		}
		int64_t at = guard ? guard->low : 0;
		bool one = guard ? guard->high == guard->low + 1 : kernel->loop[l].extent == 1;
		if (!one)
			return false;
		fixed.offset += fixed.stride[l] * at;
		fixed.stride[l] = 0;
	}
	*access = fixed;
	return true;
}

static int neutral(struct module *module, struct body *body, const struct type *type, double value)
{
	struct node node = {
		.kind = NODE_CONSTANT, .type = type, .integer = (int64_t)value, .real = value
	};
	return body_add(module, body, node);
}

static void make_sum(struct accumulation *a, double begin)
{
	struct module *module = a->r->module;
	struct kernel *kernel = a->op->kernel;
	struct body terms = *a->body;
	struct body update = { 0 };
	const struct body_map same = { .accumulator = -1 };
	terms.result = a->term;
	int term = body_rewrite(module, &update, &terms, same);
	if (a->negated && a->code == OP_ADDF)
		term = body_op(module, &update, OP_NEGF, kernel->type, term, 0, 0);
	else if (a->negated)
		term = body_op(module, &update, OP_SUBI, kernel->type,
		        neutral(module, &update, kernel->type, 0), term, 0);
	if (a->inside >= 0) {
		terms.result = a->inside;
		int inside = body_rewrite(module, &update, &terms, same);
		int none = neutral(module, &update, kernel->type, begin);
		term = body_op(module, &update, OP_SELECT, kernel->type, inside, term, none);
	}
	int sum = body_add(
	        module, &update, (struct node){ .kind = NODE_ACCUMULATOR, .type = kernel->type });
	update.result = body_op(module, &update, a->code, kernel->type, sum, term, 0);
	terms.result = a->first;
	int first = body_rewrite(module, &kernel->post, &terms, same);
	int all = body_add(module, &kernel->post,
	        (struct node){ .kind = NODE_ACCUMULATOR, .type = kernel->type });
	kernel->post.result = body_op(module, &kernel->post, a->code, kernel->type, first, all, 0);
	kernel->update = update;
	kernel->init = begin;
	body_remove_dead(module, &kernel->update);
	body_remove_dead(module, &kernel->post);
}

/* Has the kernel so many sums that they hide the latency of each other's additions?  A sum with a
 * condition on its terms then has more lanes in the order of C. */
static bool has_rows(const struct kernel *kernel)
{
	int64_t sums = 1;
	for (int l = 0; l < kernel->loops; l++)
		sums *= kernel->loop[l].reduction ? 1 : kernel->loop[l].extent;
	return sums >= SUMS_LEAST;
}

void raise_reassociate(struct raising *r, struct op *op)
{
	struct accumulation a = { .r = r, .op = op, .body = &op->kernel->update, .first = -1 };
	struct body old = *a.body;
	a.body = &old;
	if (!kernel_has_reduction(op->kernel) || !match(&a) ||
	        (a.inside >= 0 && has_rows(op->kernel)))
		return;
	int operand = first_operand(&a);
	struct body term = old;
	term.result = a.term;
	body_remove_dead(r->module, &term);
	if (operand < 0 || body_uses_operand(&term, operand) || !fix_first(&a, operand))
		return;
	make_sum(&a, a.code == OP_MULF || a.code == OP_MULI ? 1 : 0);
}
