/* Groups of statements that need each other's values, and of others that belong to them.
 * A statement outside takes what a group leaves at its end. One that reads a value which the group
 * replaces later therefore stands inside too. So does one that only prepares what the group reads,
 * as a scalar that is set to 0 in each turn. */
#include "raise/raise_internal.h"

int raise_group_of(const struct raising *r, int instance)
{
	return r->group[r->instance[instance].statement];
}

void raise_join(struct raising *r, const bool *marked)
{
	int number = (int)r->groups.count;
	struct raise_group group = { .inside = ARENA_ARRAY(r->arena, bool, r->program.statements) };
	for (int i = 0; i < r->instances; i++) {
		if (!marked[i])
			continue;
		int old = raise_group_of(r, i);
		group.inside[r->instance[i].statement] = true;
		for (int s = 0; old >= 0 && s < r->program.statements; s++)
			group.inside[s] = group.inside[s] || r->group[s] == old;
	}
	for (int s = 0; s < r->program.statements; s++)
		if (group.inside[s])
			r->group[s] = number;
	VEC_PUSH(r->arena, &r->groups, group);
}

static bool reads_from(const struct raising *r, int reader, int group, int read)
{
	const struct poly_read_flow *flow = &r->flow[reader].read[read];
	for (int i = 0; i < flow->sources; i++)
		if (flow->source[i].instance >= 0 &&
		        raise_group_of(r, flow->source[i].instance) == group)
			return true;
	return false;
}

static bool reads_replaced(struct raising *r, struct poly *poly, int reader, int group)
{
	for (int j = 0; j < raise_statement(r, reader)->reads; j++)
		if (reads_from(r, reader, group, j) &&
		        poly_is_replaced(poly, r->groups.data[group].inside,
		                r->instance[reader].statement, j))
			return true;
	return false;
}

struct reader_count {
	int inside, outside; /* of the group */
};

static bool reads_value(const struct raising *r, int reader, int writer)
{
	for (int j = 0; j < raise_statement(r, reader)->reads; j++) {
		const struct poly_read_flow *flow = &r->flow[reader].read[j];
		for (int i = 0; i < flow->sources; i++)
			if (flow->source[i].instance == writer)
				return true;
	}
	return false;
}

static struct reader_count count_readers(const struct raising *r, int writer, int group)
{
	struct reader_count count = { 0 };
	for (int i = 0; i < r->instances; i++) {
		if (i == writer || !reads_value(r, i, writer))
			continue;
		if (raise_group_of(r, i) == group)
			count.inside++;
		else
			count.outside++;
	}
	return count;
}

static bool writes_same(const struct raising *r, int instance, int group)
{
	for (int s = 0; s < r->statements; s++)
		if (r->group[s] == group &&
		        r->program.statement[s].write.array ==
		                raise_statement(r, instance)->write.array)
			return true;
	return false;
}

static bool shares_loop(const struct raising *r, int instance, int group)
{
	const struct poly_statement *own = raise_statement(r, instance);
	for (int s = 0; s < r->statements; s++) {
		const struct poly_statement *other = &r->program.statement[s];
		if (r->group[s] == group && own->dims && other->dims &&
		        own->position[0] == other->position[0])
			return true;
	}
	return false;
}

/* Does it prepare values for the group, at little cost? */
static bool prepares(const struct raising *r, int instance, int group)
{
	if (instance >= r->readers || !shares_loop(r, instance, group))
		return false;
	struct reader_count count = count_readers(r, instance, group);
	return count.inside &&
	        (writes_same(r, instance, group) ||
	                (!count.outside && !raise_has_reduction(r, instance)));
}

static bool is_fed_by(const struct raising *r, int reader, int group)
{
	for (int j = 0; j < raise_statement(r, reader)->reads; j++)
		if (reads_from(r, reader, group, j))
			return true;
	return false;
}

/* Does a value of the one group reach the other through statements outside both? */
static bool has_detour(const struct raising *r, int from, int to)
{
	bool *reached = ARENA_ARRAY(r->arena, bool, r->instances);
	bool any = true;
	while (any) {
		any = false;
		for (int i = 0; i < r->instances; i++) {
			int own = raise_group_of(r, i);
			bool fed = own != from && own != to && is_fed_by(r, i, from);
			for (int w = 0; !fed && own != from && w < r->instances; w++)
				fed = reached[w] && reads_value(r, i, w);
			if (fed && own == to)
				return true;
			any = any || (fed && !reached[i]);
			reached[i] = reached[i] || fed;
		}
	}
	return false;
}

bool raise_chain(struct raising *r)
{
	for (int i = 0; i < r->readers; i++)
		for (int g = 0; g < (int)r->groups.count; g++) {
			int own = raise_group_of(r, i);
			if (own < 0 || own == g || !is_fed_by(r, i, g) || has_detour(r, g, own))
				continue;
			bool *marked = ARENA_ARRAY(r->arena, bool, r->instances);
			for (int k = 0; k < r->instances; k++)
				marked[k] =
				        raise_group_of(r, k) == own || raise_group_of(r, k) == g;
			raise_join(r, marked);
			return true;
		}
	return false;
}

bool raise_absorb(struct raising *r, struct poly *poly)
{
	for (size_t g = 0; g < r->groups.count; g++) {
		int group = (int)g;
		bool *marked = ARENA_ARRAY(r->arena, bool, r->instances);
		bool any = false;
		bool used = false;
		for (int i = 0; i < r->instances; i++) {
			bool inside = raise_group_of(r, i) == group;
			bool joins = !inside && i < r->readers &&
			        (reads_replaced(r, poly, i, group) || prepares(r, i, group));
			marked[i] = inside || joins;
			used = used || inside;
			any = any || joins;
		}
		if (used && any) {
			raise_join(r, marked);
			return true;
		}
	}
	return false;
}
