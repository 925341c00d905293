/* How long the function takes as it stands in C, one iteration after the other: the baseline to
 * which reports compare a design. */
#include "base/number.h"
#include "raise/raise_internal.h"

#define STEPS_MOST 20000000 /* values of outer counters that a count goes through */
#define ROWS_MOST 64
enum { LOAD_CYCLES = 2, STORE_CYCLES = 1 };

struct domain_rows {
	int dims, rows;
	const struct poly_condition *row[ROWS_MOST]; /* of POLY_NOT_NEGATIVE and POLY_ZERO */
	int last[ROWS_MOST];                         /* its last counter; -1: none */
	bool used[POLY_DIMS];                        /* a later counter's bounds need this one */
	int64_t counter[POLY_DIMS];
	int64_t steps;
};

/* false: the condition is no conjunction of rows. */
static bool add_rows(struct domain_rows *domain, const struct poly_condition *condition)
{
	if (!condition || condition->kind == POLY_ALWAYS)
		return true;
	if (condition->kind == POLY_AND)
		return add_rows(domain, condition->part[0]) && add_rows(domain, condition->part[1]);
	bool row = condition->kind == POLY_NOT_NEGATIVE || condition->kind == POLY_ZERO;
	if (!row || domain->rows == ROWS_MOST)
		return false;
	int last = domain->dims - 1;
	while (last >= 0 && !condition->form.coefficient[last])
		last--;
	for (int d = 0; d < last; d++)
		domain->used[d] = domain->used[d] || condition->form.coefficient[d];
	domain->last[domain->rows] = last;
	domain->row[domain->rows++] = condition;
	return true;
}

/* The values of counter d, given those before; false: there are none. */
static bool range_of(const struct domain_rows *domain, int d, int64_t *low, int64_t *high)
{
	*low = INT32_MIN;
	*high = INT32_MAX;
	for (int i = 0; i < domain->rows; i++) {
		const struct poly_form *form = &domain->row[i]->form;
		int64_t factor = form->coefficient[d];
		int64_t rest = form->constant;
		if (domain->last[i] != d)
			continue;
		for (int e = 0; e < d; e++)
			rest += form->coefficient[e] * domain->counter[e];
		bool equal = domain->row[i]->kind == POLY_ZERO;
		int64_t least = -floor_div(rest, factor);
		int64_t most = floor_div(-rest, factor);
		if (factor > 0 || equal)
			*low = least > *low ? least : *low;
		if (factor < 0)
			most = floor_div(rest, -factor);
		if (factor < 0 || equal)
			*high = most < *high ? most : *high;
	}
	return *low <= *high;
}

/* Iterations of loops d and further inside; -1: too many to count. */
static int64_t count_from(struct domain_rows *domain, int d)
{
	int64_t low;
	int64_t high;
	int64_t sum = 0;
	if (d == domain->dims)
		return 1;
	if (!range_of(domain, d, &low, &high))
		return 0;
	bool same = !domain->used[d];
	for (domain->counter[d] = low; domain->counter[d] <= high; domain->counter[d]++) {
		int64_t inside = count_from(domain, d + 1);
		if (inside < 0 || ++domain->steps > STEPS_MOST || sum > INT64_MAX / 4)
			return -1;
		if (same)
			return inside > INT64_MAX / 4 / (high - low + 1)
			        ? -1
			        : inside * (high - low + 1);
		sum += inside;
	}
	return sum;
}

int64_t raise_points(const struct poly_statement *statement)
{
	struct domain_rows domain = { .dims = statement->dims };
	if (!add_rows(&domain, statement->domain))
		return 0;
	int64_t points = count_from(&domain, 0);
	return points < 0 ? 0 : points;
}

int64_t raise_point_cycles(
        struct arena *arena, const struct platform *platform, const struct body *body)
{
	int64_t *ready = ARENA_ARRAY(arena, int64_t, body->count + 1);
	for (int n = 0; n < body->count; n++) {
		const struct node *node = &body->node[n];
		ready[n] = node->kind == NODE_OPERAND ? LOAD_CYCLES : 0;
		if (node->kind != NODE_OP)
			continue;
		for (int k = 0; k < body_arguments(node); k++)
			if (ready[node->argument[k]] > ready[n])
				ready[n] = ready[node->argument[k]];
		ready[n] += platform_operator(platform, node->code, node->type).latency;
	}
	return (body->count ? ready[body->result] : 0) + STORE_CYCLES;
}
