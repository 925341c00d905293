/* The flow of instances: that of their statements, restricted to their iterations. */
#include "poly/poly_internal.h"

struct instances {
	struct poly *poly;
	int count;
	const struct poly_instance *instance;
	struct poly_flow *flow; /* [count] */
	isl_set **domain;       /* [count] */
	isl_set **read;         /* [count] iterations whose values other instances read */
};

static int dims_of(const struct instances *all, int i)
{
	return all->poly->program->statement[all->instance[i].statement].dims;
}

static bool any_fixed(const struct poly_instance *instance)
{
	for (int d = 0; d < POLY_DIMS; d++)
		if (instance->is_fixed[d])
			return true;
	return false;
}

static isl_set *iterations_of(const struct instances *all, int i)
{
	const struct poly_instance *instance = &all->instance[i];
	isl_set *set = isl_set_copy(all->poly->domain[instance->statement]);
	for (int d = 0; d < dims_of(all, i); d++)
		if (instance->is_fixed[d])
			set = isl_set_fix_val(set, isl_dim_set, (unsigned)d,
			        isl_val_int_from_si(all->poly->ctx, instance->value[d]));
	return set;
}

static bool find_box(struct instances *all, int i)
{
	struct poly_flow *flow = &all->flow[i];
	isl_set *domain = all->domain[i];
	flow->empty = isl_set_is_empty(domain) == isl_bool_true;
	if (flow->empty)
		return true;
	if (!isl_room_read_box(domain, flow->low, flow->high))
		return false;
	isl_set *box = isl_set_universe(isl_set_get_space(domain));
	for (int d = 0; d < dims_of(all, i); d++) {
		isl_val *low = isl_val_int_from_si(all->poly->ctx, flow->low[d]);
		isl_val *high = isl_val_int_from_si(all->poly->ctx, flow->high[d]);
		box = isl_set_lower_bound_val(box, isl_dim_set, (unsigned)d, low);
		box = isl_set_upper_bound_val(box, isl_dim_set, (unsigned)d, high);
	}
	isl_set *inside = isl_set_gist(isl_set_copy(domain), box);
	bool good = isl_room_read_set(all->poly->arena, inside, &flow->domain);
	isl_set_free(inside);
	return good;
}

/* --- sources --- */

struct source_list {
	struct instances *all;
	int reader, writer;
	VEC(struct poly_source) sources;
	bool single; /* one iteration wrote what is read */
	bool good;
};

static isl_stat add_source(isl_set *set, isl_multi_aff *counters, void *user)
{
	struct source_list *list = user;
	struct arena *arena = list->all->poly->arena;
	struct poly_source source = { .instance = list->writer, .is_affine = list->single };
	isl_set *domain = isl_set_copy(list->all->domain[list->reader]);
	isl_set *inside = isl_set_gist(isl_set_copy(set), domain);
	bool good = isl_room_read_box(set, source.low, source.high) &&
	        isl_room_read_set(arena, inside, &source.set);
	int dims = counters ? (int)isl_multi_aff_dim(counters, isl_dim_out) : 0;
	for (int d = 0; d < dims; d++) {
		isl_aff *aff = isl_multi_aff_get_aff(counters, d);
		source.is_affine = source.is_affine && isl_room_read_form(aff, &source.counter[d]);
		isl_aff_free(aff);
	}
	isl_set_free(inside);
	isl_set_free(set);
	isl_multi_aff_free(counters);
	VEC_PUSH(arena, &list->sources, source);
	list->good = list->good && good;
	return isl_stat_ok;
}

/* Does a source of the reader's own differ from it in counter `dim`? */
static bool moves(const struct poly_source *source, int dims, int dim)
{
	if (!source->is_affine)
		return true;
	for (int d = 0; d < dims; d++)
		if (source->counter[dim].coefficient[d] != (d == dim))
			return true;
	return source->counter[dim].constant != 0;
}

static void note_reduced(struct source_list *list, size_t first)
{
	struct poly_flow *flow = &list->all->flow[list->reader];
	int dims = dims_of(list->all, list->reader);
	for (size_t i = first; i < list->sources.count; i++)
		for (int d = 0; d < dims; d++)
			if (flow->low[d] < flow->high[d] && moves(&list->sources.data[i], dims, d))
				flow->reduced[d] = true;
}

/* The iterations of `writer` to those of the reader; takes the map. */
static void add_pieces(struct source_list *list, int writer, isl_map *map)
{
	struct instances *all = list->all;
	size_t first = list->sources.count;
	list->writer = writer;
	if (isl_map_is_empty(map) == isl_bool_true) {
		isl_map_free(map);
		return;
	}
	if (writer != list->reader)
		all->read[writer] =
		        isl_set_union(all->read[writer], isl_map_domain(isl_map_copy(map)));
	map = isl_map_reverse(map);
	list->single = isl_map_is_single_valued(map) == isl_bool_true;
	isl_pw_multi_aff *pieces =
	        list->single ? isl_pw_multi_aff_from_map(map) : isl_map_lexmax_pw_multi_aff(map);
	pieces = isl_pw_multi_aff_coalesce(pieces);
	bool done = isl_pw_multi_aff_foreach_piece(pieces, add_source, list) == isl_stat_ok;
	list->good = list->good && done;
	isl_pw_multi_aff_free(pieces);
	if (list->good && writer == list->reader)
		note_reduced(list, first);
}

static bool in_box(const struct poly_instance *instance, const int64_t *low, const int64_t *high)
{
	for (int d = 0; d < POLY_DIMS; d++)
		if (instance->is_fixed[d] &&
		        (instance->value[d] < low[d] || instance->value[d] > high[d]))
			return false;
	return true;
}

/* Distributes what a statement has written over its instances. */
static void add_writers(struct source_list *list, const struct poly_writer *writer)
{
	struct instances *all = list->all;
	int64_t low[POLY_DIMS];
	int64_t high[POLY_DIMS];
	isl_map *map = isl_map_copy(writer->map);
	map = isl_map_intersect_range(map, isl_set_copy(all->domain[list->reader]));
	isl_set *from = isl_map_domain(isl_map_copy(map));
	bool empty = isl_set_is_empty(from) == isl_bool_true;
	list->good = list->good && (empty || isl_room_read_box(from, low, high));
	isl_set_free(from);
	for (int i = 0; list->good && !empty && i < all->count; i++) {
		bool may = all->instance[i].statement == writer->statement &&
		        in_box(&all->instance[i], low, high);
		isl_map *part = may ? isl_map_copy(map) : NULL;
		if (may && any_fixed(&all->instance[i]))
			part = isl_map_intersect_domain(part, isl_set_copy(all->domain[i]));
		if (may)
			add_pieces(list, i, part);
	}
	isl_map_free(map);
}

static bool find_sources(struct instances *all, int i, int r)
{
	const struct poly_base_read *base = &all->poly->read[all->instance[i].statement][r];
	struct source_list list = { .all = all, .reader = i, .good = true };
	for (size_t w = 0; w < base->writers.count && list.good; w++)
		add_writers(&list, &base->writers.data[w]);
	list.writer = -1;
	list.single = true;
	isl_set *initial =
	        isl_set_intersect(isl_set_copy(base->initial), isl_set_copy(all->domain[i]));
	if (isl_set_is_empty(initial) == isl_bool_false)
		add_source(initial, NULL, &list);
	else
		isl_set_free(initial);
	all->flow[i].read[r] =
	        (struct poly_read_flow){ (int)list.sources.count, list.sources.data };
	return list.good;
}

/* Is a value read that a later iteration, which differs in reduced counters alone, replaces? */
static void find_early_reads(struct instances *all, int i)
{
	struct poly_flow *flow = &all->flow[i];
	bool any = false;
	for (int d = 0; d < dims_of(all, i); d++)
		any = any || flow->reduced[d];
	if (!any)
		return;
	isl_map *later = isl_map_lex_lt(isl_set_get_space(all->domain[i]));
	for (int d = 0; d < dims_of(all, i); d++)
		if (!flow->reduced[d])
			later = isl_map_equate(later, isl_dim_in, d, isl_dim_out, d);
	later = isl_map_intersect_domain(later, isl_set_copy(all->read[i]));
	later = isl_map_intersect_range(later, isl_set_copy(all->domain[i]));
	flow->read_before_end = isl_map_is_empty(later) != isl_bool_true;
	isl_map_free(later);
}

static bool find_all(struct instances *all)
{
	for (int i = 0; i < all->count; i++) {
		int statement = all->instance[i].statement;
		int reads = all->poly->program->statement[statement].reads;
		all->flow[i].read = ARENA_ARRAY(all->poly->arena, struct poly_read_flow, reads);
		if (!find_box(all, i))
			return false;
	}
	for (int i = 0; i < all->count; i++) {
		int statement = all->instance[i].statement;
		for (int r = 0; r < all->poly->program->statement[statement].reads; r++)
			if (!find_sources(all, i, r))
				return false;
	}
	for (int i = 0; i < all->count; i++)
		find_early_reads(all, i);
	return isl_ctx_last_error(all->poly->ctx) == isl_error_none;
}

struct poly_flow *poly_flow(struct poly *poly, int instances, const struct poly_instance *instance)
{
	struct instances all = { poly, instances, instance,
		ARENA_ARRAY(poly->arena, struct poly_flow, instances),
		ARENA_ARRAY(poly->arena, isl_set *, instances),
		ARENA_ARRAY(poly->arena, isl_set *, instances) };
	for (int i = 0; i < instances; i++) {
		all.domain[i] = iterations_of(&all, i);
		all.read[i] = isl_set_empty(isl_set_get_space(all.domain[i]));
	}
	isl_ctx_reset_operations(poly->ctx);
	bool good = find_all(&all);
	for (int i = 0; i < instances; i++) {
		isl_set_free(all.domain[i]);
		isl_set_free(all.read[i]);
	}
	return good ? all.flow : NULL;
}
