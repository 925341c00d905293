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

/* Marks what reads a value of the group, or of what reads it, and so on. */
static bool *fed_by(const struct raising *r, int group)
{
	bool *fed = ARENA_ARRAY(r->arena, bool, r->instances);
	for (bool any = true; any;) {
		any = false;
		for (int i = 0; i < r->instances; i++) {
			bool reads = !fed[i] && raise_group_of(r, i) != group;
			bool found = reads && is_fed_by(r, i, group);
			for (int w = 0; reads && !found && w < r->instances; w++)
				found = fed[w] && reads_value(r, i, w);
			fed[i] = fed[i] || found;
			any = any || found;
		}
	}
	return fed;
}

/* Marks the group, and what its values go through, and back to itself or to the other one. */
static bool *feeders_of(const struct raising *r, int group)
{
	bool *feeds = ARENA_ARRAY(r->arena, bool, r->instances);
	for (int i = 0; i < r->instances; i++)
		feeds[i] = raise_group_of(r, i) == group;
	for (bool any = true; any;) {
		any = false;
		for (int w = 0; w < r->instances; w++)
			for (int i = 0; !feeds[w] && i < r->instances; i++)
				if (feeds[i] && reads_value(r, i, w))
					any = feeds[w] = true;
	}
	return feeds;
}

/* Marks both groups and the statements through which values of the one reach the other. NULL: they
 * do not, or these statements are better kernels, or in another group. */
static bool *chain_of(const struct raising *r, int from, int to)
{
	const bool *fed = fed_by(r, from);
	bool *marked = feeders_of(r, to);
	bool any = false;
	for (int i = 0; i < r->instances; i++) {
		int own = raise_group_of(r, i);
		bool between = marked[i] && fed[i] && own != from && own != to;
		if (between && (own >= 0 || raise_has_reduction(r, i)))
			return NULL;
		any = any || (fed[i] && own == to);
		marked[i] = own == from || own == to || between;
	}
	return any ? marked : NULL;
}

bool raise_chain(struct raising *r)
{
	int groups = (int)r->groups.count;
	for (int from = 0; from < groups; from++)
		for (int to = 0; to < groups; to++) {
			const bool *marked = from == to ? NULL : chain_of(r, from, to);
			if (!marked)
				continue;
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
