/* Moves a factor of a sum into its products, where the user allows other roundings, so that it is
 * multiplied in front of the lanes.
 * Before: c[i][j] += alpha * (a[i][k] * b[j][k] + b[i][k] * a[j][k])     a product more a lane
 * After:  c[i][j] += (alpha * a[i][k]) * b[j][k] + (alpha * b[i][k]) * a[j][k]
 * With lanes along j, alpha * a[i][k] is the same in all of them. */
#include "raise/raise_internal.h"
#include "ir/kernel_edit.h"

struct factor_search {
	struct module *module;
	const struct poly_statement *statement;
	const struct body *from;
	unsigned *varies; /* [nodes of from] counters with which they change, a bit each */
	struct body to;
	int *made; /* [nodes of from] in `to` */
};

static unsigned counters_of(const struct poly_statement *statement, int read)
{
	const struct poly_access *access = &statement->read[read];
	unsigned counters = access->when || poly_is_computed(access) ? ~0u : 0;
	for (int i = 0; i < POLY_DIMS; i++)
		for (int d = 0; d < statement->dims; d++)
			counters |= (access->subscript[i].coefficient[d] ? 1u : 0u) << d;
	return counters;
}

static void find_varying(struct factor_search *s)
{
	for (int n = 0; n < s->from->count; n++) {
		const struct node *node = &s->from->node[n];
		if (node->kind == NODE_OPERAND)
			s->varies[n] = counters_of(s->statement, (int)node->integer);
		if (node->kind != NODE_OP)
			continue;
		s->varies[n] = node->code == OP_INDEX ? 1u << node->integer : 0;
		for (int k = 0; k < body_arguments(node); k++)
			s->varies[n] |= s->varies[node->argument[k]];
	}
}

static bool is_op(const struct factor_search *s, int n, enum op_code code)
{
	return s->from->node[n].kind == NODE_OP && s->from->node[n].code == code;
}

static bool is_sum(const struct factor_search *s, int n)
{
	return is_op(s, n, OP_ADDF) || is_op(s, n, OP_SUBF);
}

/* The counters of which each product of the sum has a part that stays the same. */
static unsigned spared(const struct factor_search *s, int n)
{
	const int *argument = s->from->node[n].argument;
	if (is_sum(s, n))
		return spared(s, argument[0]) & spared(s, argument[1]);
	return is_op(s, n, OP_MULF) ? ~(s->varies[argument[0]] & s->varies[argument[1]]) : 0;
}

/* The sum with the factor in its products, in the parts that do not change with `counter`. */
static int distributed(struct factor_search *s, int factor, int n, unsigned counter)
{
	const struct node *node = &s->from->node[n];
	const int *argument = node->argument;
	int part[2] = { s->made[argument[0]], s->made[argument[1]] };
	if (is_sum(s, n)) {
		for (int i = 0; i < 2; i++)
			part[i] = distributed(s, factor, argument[i], counter);
	} else {
		int to = s->varies[argument[0]] & counter ? 1 : 0;
		part[to] = body_op(
		        s->module, &s->to, OP_MULF, node->type, s->made[factor], part[to], 0);
	}
	return body_op(s->module, &s->to, node->code, node->type, part[0], part[1], 0);
}

/* A product of a number and a sum: the counter in front of whose loop it may be multiplied, a bit;
 * 0: there is none. *factor: which argument is the number. */
static unsigned find_counter(const struct factor_search *s, int n, int *factor)
{
	if (!is_op(s, n, OP_MULF))
		return 0;
	const int *argument = s->from->node[n].argument;
	for (*factor = 0; *factor < 2; ++*factor) {
		int sum = argument[1 - *factor];
		unsigned may = is_sum(s, sum) ? spared(s, sum) : 0;
		may &= s->varies[sum] & ~s->varies[argument[*factor]];
		if (may)
			return may & -may;
	}
	return 0;
}

void raise_factors(struct raising *r, int statement)
{
	struct region_statement *of = &r->region->statements.data[statement];
	struct factor_search s = { .module = r->module,
		.statement = &r->program.statement[statement],
		.from = &of->body };
	s.varies = ARENA_ARRAY(r->arena, unsigned, s.from->count + 1);
	s.made = ARENA_ARRAY(r->arena, int, s.from->count + 1);
	find_varying(&s);
	for (int n = 0; n < s.from->count; n++) {
		struct node node = s.from->node[n];
		int factor = 0;
		unsigned counter = find_counter(&s, n, &factor);
		if (counter) {
			const int *argument = node.argument;
			s.made[n] =
			        distributed(&s, argument[factor], argument[1 - factor], counter);
			continue;
		}
		for (int k = 0; node.kind == NODE_OP && k < body_arguments(&node); k++)
			node.argument[k] = s.made[node.argument[k]];
		s.made[n] = body_add(r->module, &s.to, node);
	}
	s.to.result = s.made[s.from->result];
	body_remove_dead(r->module, &s.to);
	of->body = s.to;
}
