/* Finds statements that do the same at their counters: an iteration of the one could stand for one
 * of the other. */
#include "raise/raise_internal.h"
#include <string.h>

static bool same_access(const struct poly_access *a, const struct poly_access *b)
{
	return a->array == b->array && !a->when && !b->when && !poly_is_computed(a) &&
	        !poly_is_computed(b) && !memcmp(a->subscript, b->subscript, sizeof a->subscript);
}

static bool same_body(const struct body *a, const struct body *b)
{
	bool same = a->count == b->count && a->result == b->result;
	for (int n = 0; same && n < a->count; n++)
		same = node_same(&a->node[n], &b->node[n]);
	return same;
}

static int instance_of(const struct raising *r, int statement)
{
	int instance = 0;
	while (r->instance[instance].statement != statement)
		instance++;
	return instance;
}

/* Does the statement find all that it reads in arrays that the group writes? */
static bool is_inside(const struct raising *r, int statement, int group)
{
	int instance = instance_of(r, statement);
	for (int j = 0; j < r->program.statement[statement].reads; j++) {
		const struct poly_read_flow *read = &r->flow[instance].read[j];
		bool any = false;
		for (int k = 0; k < read->sources; k++) {
			int source = read->source[k].instance;
			bool own = source >= 0 && raise_group_of(r, source) == group;
			any = any || own;
			if (source >= 0 && !own)
				return false;
		}
		if (!any)
			return false;
	}
	return true;
}

static bool is_alike(const struct raising *r, int a, int b)
{
	const struct poly_statement *first = &r->program.statement[a];
	const struct poly_statement *second = &r->program.statement[b];
	bool same = first->dims == second->dims && first->reads == second->reads &&
	        same_access(&first->write, &second->write);
	for (int j = 0; same && j < first->reads; j++)
		same = same_access(&first->read[j], &second->read[j]);
	return same &&
	        same_body(&r->region->statements.data[a].body, &r->region->statements.data[b].body);
}

int *raise_alike(const struct raising *r, int group)
{
	int *alike = ARENA_ARRAY(r->arena, int, r->program.statements + 1);
	for (int s = 0; s < r->program.statements; s++) {
		alike[s] = s;
		if (s >= r->statements || r->group[s] != group || !is_inside(r, s, group))
			continue;
		for (int other = 0; other < s && alike[s] == s; other++)
			if (r->group[other] == group && alike[other] == other &&
			        is_inside(r, other, group) && is_alike(r, other, s))
				alike[s] = other;
	}
	return alike;
}
