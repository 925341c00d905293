/* Finds an order of iterations in which many loops are parallel (Allen and Kennedy 1987, with a
 * choice of the loop that carries the dependences).
 * Statements that do not depend on each other in a circle stand one behind the other. Those that do
 * share a loop over one counter of each, which no dependence runs against; it is the one that
 * carries most dependences. What it carries no longer counts inside it. Loops over counters that
 * are left when no dependence is left are parallel. */
#include "poly/poly_pieces.h"
#include "base/text.h"
#include <isl/constraint.h>
#include <isl/union_set.h>
#include <string.h>

enum { CHOICES_MOST = 4000, CANDIDATES_MOST = 6 };

void poly_edges_free(poly_edges *edges)
{
	for (size_t i = 0; i < edges->count; i++)
		isl_map_free(edges->data[i].map);
	edges->count = 0;
}

/* --- components */

struct components {
	int count;
	int *of; /* [members] number in order */
};

int poly_place(const struct poly_task *task, int piece)
{
	int at = 0;
	while (task->member[at] != piece)
		at++;
	return at;
}

bool *poly_paths(const struct poly_task *task, struct arena *arena)
{
	int n = task->members;
	bool *path = ARENA_ARRAY(arena, bool, (size_t)n *(size_t)n);
	for (size_t i = 0; i < task->edges.count; i++) {
		const struct poly_edge *edge = &task->edges.data[i];
		path[poly_place(task, edge->from) * n + poly_place(task, edge->to)] = true;
	}
	for (int via = 0; via < n; via++)
		for (int a = 0; a < n; a++)
			for (int b = 0; path[a * n + via] && b < n; b++)
				path[a * n + b] = path[a * n + b] || path[via * n + b];
	return path;
}

static struct components components_of(const struct poly_task *task, struct arena *arena)
{
	int n = task->members;
	const bool *path = poly_paths(task, arena);
	struct components made = { 0, ARENA_ARRAY(arena, int, n) };
	for (int i = 0; i < n; i++)
		made.of[i] = -1;
	for (int placed = 0; placed < n; made.count++) {
		int first = 0;
		for (bool ready = false; !ready; first += !ready) {
			ready = made.of[first] < 0;
			for (int a = 0; ready && a < n; a++)
				ready = made.of[a] >= 0 || !path[a * n + first] ||
				        path[first * n + a];
		}
		for (int a = 0; a < n; a++) {
			bool same = a == first || (path[a * n + first] && path[first * n + a]);
			if (made.of[a] < 0 && same) {
				made.of[a] = made.count;
				placed++;
			}
		}
	}
	return made;
}

bool poly_is_acyclic(const struct poly_task *task, struct arena *arena)
{
	const bool *path = poly_paths(task, arena);
	bool acyclic = true;
	for (int i = 0; i < task->members; i++)
		acyclic = acyclic && !path[i * task->members + i];
	return acyclic;
}

/* --- choosing a loop */

enum status { UNKNOWN, AGAINST, WITHIN, CARRIED };

struct choice {
	struct poly_pieces *pieces;
	const struct poly_task *task;
	enum status *status; /* [edges][POLY_DIMS][POLY_DIMS] */
	int *counter;        /* [members] */
	int candidates;      /* the choices that carry most edges, those that do first */
	int *candidate[CANDIDATES_MOST]; /* [members] */
	int carried[CANDIDATES_MOST];
	int tries;
};

static struct poly_piece *piece_of(const struct choice *c, int place)
{
	return &c->pieces->piece.data[c->task->member[place]];
}

/* Does the loop over counter a of the one and b of the other respect the edge? */
static enum status find_status(const struct poly_edge *edge, int a, int b)
{
	unsigned from = (unsigned)a;
	unsigned to = (unsigned)b;
	isl_map *against = isl_map_order_gt(
	        isl_map_copy(edge->map), isl_dim_in, (int)from, isl_dim_out, (int)to);
	isl_map *within = isl_map_equate(
	        isl_map_copy(edge->map), isl_dim_in, (int)from, isl_dim_out, (int)to);
	enum status status = isl_map_is_empty(against) != isl_bool_true ? AGAINST
	        : isl_map_is_empty(within) != isl_bool_true             ? WITHIN
	                                                                : CARRIED;
	isl_map_free(against);
	isl_map_free(within);
	return status;
}

static enum status status_of(const struct choice *c, size_t edge, int a, int b)
{
	enum status *status = &c->status[(edge * POLY_DIMS + (size_t)a) * POLY_DIMS + (size_t)b];
	if (*status == UNKNOWN)
		*status = find_status(&c->task->edges.data[edge], a, b);
	return *status;
}

/* Edges between the members up to the last one that are carried; -1: one is not respected. */
static int count_carried(const struct choice *c, int last)
{
	int carried = 0;
	for (size_t i = 0; i < c->task->edges.count; i++) {
		int from = poly_place(c->task, c->task->edges.data[i].from);
		int to = poly_place(c->task, c->task->edges.data[i].to);
		if (from > last || to > last)
			continue;
		enum status status = status_of(c, i, c->counter[from], c->counter[to]);
		if (status == AGAINST)
			return -1;
		carried += status == CARRIED;
	}
	return carried;
}

static void add_candidate(struct choice *c, int carried)
{
	int at = c->candidates;
	while (at > 0 && c->carried[at - 1] < carried)
		at--;
	if (at == CANDIDATES_MOST)
		return;
	c->candidates += c->candidates < CANDIDATES_MOST;
	for (int i = c->candidates - 1; i > at; i--) {
		c->candidate[i] = c->candidate[i - 1];
		c->carried[i] = c->carried[i - 1];
	}
	c->candidate[at] = arena_copy(
	        c->pieces->poly->arena, c->counter, sizeof *c->counter * (size_t)c->task->members);
	c->carried[at] = carried;
}

static void choose(struct choice *c, int place)
{
	const struct poly_piece *piece = piece_of(c, place);
	int dims = (int)isl_set_dim(piece->domain, isl_dim_set);
	for (int d = 0; d < dims && c->tries < CHOICES_MOST; d++) {
		if (piece->used[d])
			continue;
		c->counter[place] = d;
		c->tries++;
		int carried = count_carried(c, place);
		if (carried < 0)
			continue;
		if (place + 1 < c->task->members) {
			choose(c, place + 1);
		} else {
			add_candidate(c, carried);
		}
	}
}

static struct choice choose_loop(struct poly_pieces *pieces, const struct poly_task *task)
{
	struct arena *arena = pieces->poly->arena;
	struct choice c = { .pieces = pieces, .task = task };
	c.status = ARENA_ARRAY(arena, enum status, task->edges.count * POLY_DIMS * POLY_DIMS);
	c.counter = ARENA_ARRAY(arena, int, task->members);
	choose(&c, 0);
	return c;
}

/* --- the order */

static bool arrange(struct poly_pieces *pieces, struct poly_task *task);

/* Numbers and counters take turns, as in C's order, so that the loops over numbers are known. */
static void add_time(struct poly_pieces *pieces, int piece, bool counts, struct poly_form form)
{
	struct poly_piece *to = &pieces->piece.data[piece];
	if ((to->time.count % 2 == 1) != counts)
		VEC_PUSH(pieces->poly->arena, &to->time, ((struct poly_form){ .constant = 0 }));
	VEC_PUSH(pieces->poly->arena, &to->time, form);
}

/* The members of a component and the edges between them. */
static struct poly_task part_of(struct poly_pieces *pieces, const struct poly_task *task,
        const struct components *components, int n)
{
	struct arena *arena = pieces->poly->arena;
	struct poly_task part = { .member = ARENA_ARRAY(arena, int, task->members) };
	for (int i = 0; i < task->members; i++)
		if (components->of[i] == n)
			part.member[part.members++] = task->member[i];
	for (size_t i = 0; i < task->edges.count; i++) {
		struct poly_edge edge = task->edges.data[i];
		if (components->of[poly_place(task, edge.from)] != n ||
		        components->of[poly_place(task, edge.to)] != n)
			continue;
		edge.map = isl_map_copy(edge.map);
		VEC_PUSH(arena, &part.edges, edge);
	}
	return part;
}

static bool arrange_components(
        struct poly_pieces *pieces, struct poly_task *task, const struct components *components)
{
	bool good = true;
	int place = 0;
	int leaf = -1; /* the component before, if it is one statement in parallel loops */
	for (int n = 0; n < components->count; n++) {
		struct poly_task part = part_of(pieces, task, components, n);
		int first = part.member[0];
		bool alone = part.members == 1 && !part.edges.count;
		bool fused = alone && leaf >= 0 && poly_fuse(pieces, task, leaf, first);
		place += n && !fused;
		if (!fused)
			leaf = alone ? first : -1;
		for (int i = 0; i < part.members; i++)
			add_time(pieces, part.member[i], false,
			        (struct poly_form){ .constant = place });
		good = arrange(pieces, &part) && good;
	}
	poly_edges_free(&task->edges);
	return good;
}

/* What is left inside the loop over these forms of the members' counters. The counters follow from
 * them and from those that are left. */
static void enter(struct poly_pieces *pieces, struct poly_task *task, const int *counter,
        const struct poly_form *form)
{
	size_t left = 0;
	for (size_t i = 0; i < task->edges.count; i++) {
		struct poly_edge edge = task->edges.data[i];
		const struct poly_form *from = &form[poly_place(task, edge.from)];
		edge.map = poly_same_step(edge.map, from, &form[poly_place(task, edge.to)]);
		if (isl_map_is_empty(edge.map) == isl_bool_true)
			isl_map_free(edge.map);
		else
			task->edges.data[left++] = edge;
	}
	task->edges.count = left;
	for (int i = 0; i < task->members; i++) {
		struct poly_piece *piece = &pieces->piece.data[task->member[i]];
		add_time(pieces, task->member[i], true, form[i]);
		piece->used[counter[i]] = true;
		for (int d = 0; d < POLY_DIMS; d++)
			if (d != counter[i])
				piece->leaf.skew[counter[i]][d] = -form[i].coefficient[d];
	}
}

/* The order of C inside the loops so far. */
static void keep_order(struct poly_pieces *pieces, struct poly_task *task)
{
	for (int i = 0; i < task->members; i++) {
		struct poly_piece *piece = &pieces->piece.data[task->member[i]];
		const struct poly_statement *statement =
		        &pieces->poly->program->statement[piece->leaf.statement];
		for (int d = 0; d <= statement->dims; d++) {
			struct poly_form form = { .constant = statement->position[d] };
			add_time(pieces, task->member[i], false, form);
			if (d == statement->dims)
				break;
			form = (struct poly_form){ 0 };
			form.coefficient[d] = 1;
			add_time(pieces, task->member[i], true, form);
			piece->used[d] = true;
		}
	}
	poly_edges_free(&task->edges);
}

/* Most loops that run one after the other around an iteration, if the members' loop over these
 * forms is the next one; *serial: some iterations have no other loops. */
static int count_serial(struct poly_pieces *pieces, const struct poly_task *task,
        const int *counter, const struct poly_form *form, bool *serial)
{
	struct arena *arena = pieces->poly->arena;
	struct poly_pieces trial = {
		.poly = pieces->poly, .traits = pieces->traits, .is_trial = true
	};
	struct poly_task inner = { .members = task->members };
	int most = 0;
	inner.member =
	        arena_copy(arena, task->member, sizeof *task->member * (size_t)task->members);
	for (size_t i = 0; i < pieces->piece.count; i++) {
		VEC_PUSH(arena, &trial.piece, pieces->piece.data[i]);
		isl_set_copy(pieces->piece.data[i].domain);
	}
	for (size_t i = 0; i < task->edges.count; i++) {
		struct poly_edge edge = task->edges.data[i];
		edge.map = isl_map_copy(edge.map);
		VEC_PUSH(arena, &inner.edges, edge);
	}
	enter(&trial, &inner, counter, form);
	arrange(&trial, &inner);
	*serial = false;
	for (size_t i = 0; i < trial.piece.count; i++) {
		const struct poly_piece *piece = &trial.piece.data[i];
		int dims = piece->domain ? (int)isl_set_dim(piece->domain, isl_dim_set) : 0;
		int used = 0;
		for (int d = 0; d < dims; d++)
			used += piece->used[d];
		most = used > most ? used : most;
		*serial = *serial || (dims && used == dims);
		isl_set_free(piece->domain);
	}
	return most;
}

static struct poly_form *forms_over(
        struct arena *arena, const struct poly_task *task, const int *counter)
{
	struct poly_form *form = ARENA_ARRAY(arena, struct poly_form, task->members);
	for (int i = 0; i < task->members; i++)
		form[i].coefficient[counter[i]] = 1;
	return form;
}

/* The candidate, or a skewed loop, that leaves most loops parallel. */
static void enter_best(
        struct poly_pieces *pieces, struct poly_task *task, const struct choice *choice)
{
	struct arena *arena = pieces->poly->arena;
	const int *counter = choice->candidate[0];
	struct poly_form *form = forms_over(arena, task, counter);
	bool serial = false;
	int least = pieces->is_trial ? 0 : count_serial(pieces, task, counter, form, &serial);
	for (int i = 1; least > 1 && i < choice->candidates; i++) {
		struct poly_form *forms = forms_over(arena, task, choice->candidate[i]);
		bool still = false;
		int count = count_serial(pieces, task, choice->candidate[i], forms, &still);
		if (count >= least)
			continue;
		least = count;
		serial = still;
		form = forms;
		counter = choice->candidate[i];
	}
	for (int last = 1; serial && last < POLY_DIMS; last++) {
		struct poly_form skewed = { 0 };
		int *same = ARENA_ARRAY(arena, int, task->members);
		struct poly_form *forms = ARENA_ARRAY(arena, struct poly_form, task->members);
		if (!poly_skew(pieces, task, last, &skewed))
			continue;
		for (int i = 0; i < task->members; i++) {
			same[i] = last;
			forms[i] = skewed;
		}
		bool still = false;
		int count = count_serial(pieces, task, same, forms, &still);
		if (count >= least)
			continue;
		least = count;
		form = forms;
		counter = same;
	}
	enter(pieces, task, counter, form);
}

static bool arrange(struct poly_pieces *pieces, struct poly_task *task)
{
	poly_merge(pieces, task);
	struct components components = components_of(task, pieces->poly->arena);
	if (components.count > 1)
		return arrange_components(pieces, task, &components);
	if (!task->edges.count)
		return true;
	struct choice choice = choose_loop(pieces, task);
	int carried = choice.candidates ? choice.carried[0] : -1;
	bool all = carried == (int)task->edges.count;
	if (!all && (task->members == 1 || carried <= 0) && poly_split(pieces, task))
		return arrange(pieces, task);
	if (carried < 0) {
		keep_order(pieces, task);
		return true;
	}
	enter_best(pieces, task, &choice);
	return arrange(pieces, task);
}

/* --- all of it */

/* Counters of parallel loops in a constraint; last: one of them. */
static int count_parallel(const struct poly_piece *piece, isl_constraint *constraint, int *last)
{
	int count = 0;
	int dims = (int)isl_set_dim(piece->domain, isl_dim_set);
	for (int d = 0; d < dims; d++) {
		if (piece->used[d] ||
		        isl_constraint_involves_dims(constraint, isl_dim_set, (unsigned)d, 1) !=
		                isl_bool_true)
			continue;
		count++;
		*last = d;
	}
	return count;
}

/* A counter that follows from those of the loops around has one iteration. */
static isl_stat note_single(isl_constraint *constraint, void *user)
{
	struct poly_piece *piece = user;
	int last = 0;
	bool equal = isl_constraint_is_equality(constraint) == isl_bool_true;
	if (equal && count_parallel(piece, constraint, &last) == 1)
		piece->leaf.parallel[last] = false;
	isl_constraint_free(constraint);
	return isl_stat_ok;
}

static isl_stat note_coupled(isl_constraint *constraint, void *user)
{
	struct poly_piece *piece = user;
	int last = 0;
	if (count_parallel(piece, constraint, &last) > 1)
		piece->leaf.is_box = false;
	isl_constraint_free(constraint);
	return isl_stat_ok;
}

static isl_stat note_part(isl_basic_set *part, void *user)
{
	isl_basic_set_foreach_constraint(part, note_coupled, user);
	isl_basic_set_free(part);
	return isl_stat_ok;
}

static void finish_leaf(struct poly_piece *piece)
{
	struct poly_leaf *leaf = &piece->leaf;
	int dims = (int)isl_set_dim(piece->domain, isl_dim_set);
	isl_room_read_box(piece->domain, leaf->low, leaf->high);
	for (int d = 0; d < dims; d++) {
		leaf->parallel[d] = !piece->used[d];
		if (leaf->parallel[d])
			leaf->counter[leaf->loops++] = d;
	}
	leaf->is_box = true;
	for (int d = 0; d < dims; d++) {
		int coupled = 0;
		for (int other = 0; other < dims; other++)
			coupled += leaf->parallel[other] && leaf->skew[d][other];
		leaf->is_box = leaf->is_box && coupled < 2;
	}
	isl_set_foreach_basic_set(piece->domain, note_part, piece);
	isl_basic_set *hull = isl_set_affine_hull(isl_set_copy(piece->domain));
	isl_basic_set_foreach_constraint(hull, note_single, piece);
	isl_basic_set_free(hull);
}

/* The leaves that have loops of their own; the others follow the one in whose loops they run. */
static void list_leaves(struct poly_schedule *schedule, struct arena *arena)
{
	struct poly_pieces *pieces = schedule->pieces;
	int count = (int)pieces->piece.count;
	schedule->leaf = ARENA_ARRAY(arena, struct poly_leaf *, count + 1);
	for (int i = 0; i < count; i++) {
		struct poly_piece *piece = &pieces->piece.data[i];
		if (!piece->domain)
			continue;
		finish_leaf(piece);
		if (piece->first < 0)
			schedule->leaf[schedule->leaves++] = &piece->leaf;
	}
	for (int turn = count; turn > 0; turn--)
		for (int i = 0; i < count; i++) {
			struct poly_piece *piece = &pieces->piece.data[i];
			if (!piece->domain || piece->first < 0 || piece->turn != turn)
				continue;
			struct poly_leaf *first = &pieces->piece.data[piece->first].leaf;
			piece->leaf.next = first->next;
			first->next = &piece->leaf;
		}
}

struct poly_schedule *poly_schedule_new(
        struct poly *poly, const bool *inside, const struct poly_traits *traits)
{
	struct arena *arena = poly->arena;
	struct poly_schedule *schedule = ARENA_NEW(arena, struct poly_schedule);
	struct poly_pieces *pieces = ARENA_NEW(arena, struct poly_pieces);
	schedule->pieces = pieces;
	pieces->poly = poly;
	pieces->traits = traits;
	isl_ctx_reset_operations(poly->ctx);
	int count = poly->program->statements;
	struct poly_task task = { .member = ARENA_ARRAY(arena, int, count) };
	int *piece_of_statement = ARENA_ARRAY(arena, int, count);
	for (int s = 0; s < count; s++) {
		if (!inside[s])
			continue;
		struct poly_piece piece = { .domain = isl_set_copy(poly->domain[s]), .first = -1 };
		piece.leaf.statement = s;
		piece_of_statement[s] = (int)pieces->piece.count;
		task.member[task.members++] = (int)pieces->piece.count;
		VEC_PUSH(arena, &pieces->piece, piece);
	}
	task.edges = poly_dependences(poly, inside);
	for (size_t i = 0; i < task.edges.count; i++) {
		task.edges.data[i].from = piece_of_statement[task.edges.data[i].from];
		task.edges.data[i].to = piece_of_statement[task.edges.data[i].to];
	}
	bool good = arrange(pieces, &task);
	if (good)
		list_leaves(schedule, arena);
	if (good && isl_ctx_last_error(poly->ctx) == isl_error_none)
		return schedule;
	poly_schedule_free(schedule);
	isl_ctx_reset_error(poly->ctx);
	return NULL;
}

void poly_schedule_free(struct poly_schedule *schedule)
{
	for (size_t i = 0; schedule && i < schedule->pieces->piece.count; i++) {
		isl_set_free(schedule->pieces->piece.data[i].domain);
		schedule->pieces->piece.data[i].domain = NULL;
	}
}

/* --- as a map */

static void find_depths(const struct poly_schedule *schedule, int *outer, int *inner)
{
	int loops = 0;
	*outer = 0;
	for (size_t i = 0; i < schedule->pieces->piece.count; i++) {
		const struct poly_piece *piece = &schedule->pieces->piece.data[i];
		if (!piece->domain)
			continue;
		*outer = (int)piece->time.count > *outer ? (int)piece->time.count : *outer;
		loops = piece->leaf.loops > loops ? piece->leaf.loops : loops;
	}
	*inner = *outer + loops;
}

/* The leaf in whose loops the piece runs. */
static const struct poly_leaf *loops_of(
        const struct poly_schedule *schedule, const struct poly_piece *piece)
{
	return piece->first < 0 ? &piece->leaf : &schedule->pieces->piece.data[piece->first].leaf;
}

static int lane_of(const struct poly_leaf *leaf, int counter)
{
	for (int l = 0; l < leaf->lane_loops; l++)
		if (leaf->lane_counter[l] == counter)
			return l;
	return -1;
}

static isl_aff *counter_aff(const struct poly_piece *piece, int counter)
{
	isl_space *space = isl_set_get_space(piece->domain);
	return isl_aff_var_on_domain(
	        isl_local_space_from_space(space), isl_dim_set, (unsigned)counter);
}

/* ⌊counter / lanes⌋ */
static isl_aff *tile_aff(const struct poly_piece *piece, const struct poly_leaf *loops, int counter)
{
	int lane = lane_of(loops, counter);
	isl_aff *aff = counter_aff(piece, counter);
	if (lane < 0)
		return aff;
	return isl_aff_floor(isl_aff_scale_down_ui(aff, (unsigned)loops->lanes[lane]));
}

static isl_aff *lane_aff(const struct poly_piece *piece, const struct poly_leaf *loops, int lane)
{
	int counter = loops->lane_counter[lane];
	isl_val *lanes = isl_val_int_from_si(isl_set_get_ctx(piece->domain), loops->lanes[lane]);
	return isl_aff_sub(counter_aff(piece, counter),
	        isl_aff_scale_val(tile_aff(piece, loops, counter), lanes));
}

static isl_map *time_of(const struct poly_schedule *schedule, const struct poly_piece *piece)
{
	int outer;
	int inner;
	find_depths(schedule, &outer, &inner);
	isl_space *space = isl_set_get_space(piece->domain);
	int dims = (int)isl_set_dim(piece->domain, isl_dim_set);
	int turn = inner + POLY_LANES;
	const struct poly_leaf *loops = loops_of(schedule, piece);
	isl_space *times = isl_space_set_alloc(isl_space_get_ctx(space), 0, (unsigned)turn + 1);
	isl_multi_aff *time = isl_multi_aff_zero(
	        isl_space_map_from_domain_and_range(isl_space_copy(space), times));
	for (size_t i = 0; i < piece->time.count; i++)
		time = isl_multi_aff_set_aff(
		        time, (int)i, isl_room_aff(space, &piece->time.data[i], dims));
	for (int i = 0; i < loops->loops; i++)
		time = isl_multi_aff_set_aff(
		        time, outer + i, tile_aff(piece, loops, loops->counter[i]));
	for (int i = 0; i < loops->lane_loops; i++)
		time = isl_multi_aff_set_aff(time, inner + i, lane_aff(piece, loops, i));
	struct poly_form number = { .constant = piece->turn };
	time = isl_multi_aff_set_aff(time, turn, isl_room_aff(space, &number, dims));
	isl_space_free(space);
	return isl_map_intersect_domain(isl_map_from_multi_aff(time), isl_set_copy(piece->domain));
}

isl_union_map *poly_schedule_map(const struct poly_schedule *schedule)
{
	isl_union_map *all = isl_union_map_empty_ctx(schedule->pieces->poly->ctx);
	for (size_t i = 0; i < schedule->pieces->piece.count; i++) {
		const struct poly_piece *piece = &schedule->pieces->piece.data[i];
		if (piece->domain)
			all = isl_union_map_union(
			        all, isl_union_map_from_map(time_of(schedule, piece)));
	}
	return all;
}

isl_union_map *poly_schedule_options(const struct poly_schedule *schedule)
{
	int outer;
	int inner;
	struct text text = text_new(schedule->pieces->poly->arena);
	find_depths(schedule, &outer, &inner);
	text_add(&text, "{ [");
	for (int d = 0; d <= inner + POLY_LANES; d++)
		text_add(&text, d ? ", i%d" : "i%d", d);
	text_add(&text, "] -> unroll[x] : x = %d or exists (e: x = 2e and 0 <= x < %d) }",
	        inner + POLY_LANES, outer);
	return isl_union_map_read_from_str(schedule->pieces->poly->ctx, text.data);
}

/* --- loops of the map */

/* Is the last dim of the order this number? */
static bool is_last(isl_map *order, isl_aff *number)
{
	isl_map *last = isl_map_copy(order);
	int dims = (int)isl_map_dim(last, isl_dim_out);
	last = isl_map_project_out(last, isl_dim_out, 0, (unsigned)dims - 1);
	isl_map *map = isl_map_from_aff(number);
	bool same = isl_map_is_subset(last, map) == isl_bool_true;
	isl_map_free(last);
	isl_map_free(map);
	return same;
}

static struct poly_loop_role role_in(
        const struct poly_piece *piece, const struct poly_leaf *loops, isl_map *order)
{
	struct poly_loop_role role = { 0 };
	for (int i = 0; !role.parallel && i < loops->loops; i++)
		role.parallel = is_last(order, tile_aff(piece, loops, loops->counter[i]));
	for (int i = 0; !role.parallel && !role.lanes && i < loops->lane_loops; i++)
		role.lanes = is_last(order, lane_aff(piece, loops, i)) ? loops->lanes[i] : 0;
	return role;
}

struct role_search {
	const struct poly_schedule *schedule;
	struct poly_loop_role role;
	bool any;
};

static isl_stat add_role(isl_map *order, void *user)
{
	struct role_search *search = user;
	int statement = isl_room_number(isl_map_get_tuple_name(order, isl_dim_in));
	for (size_t i = 0; i < search->schedule->pieces->piece.count; i++) {
		const struct poly_piece *piece = &search->schedule->pieces->piece.data[i];
		if (!piece->domain || piece->leaf.statement != statement)
			continue;
		isl_map *own =
		        isl_map_intersect_domain(isl_map_copy(order), isl_set_copy(piece->domain));
		if (isl_map_is_empty(own) == isl_bool_false) {
			struct poly_loop_role role =
			        role_in(piece, loops_of(search->schedule, piece), own);
			bool same = !search->any || role.lanes == search->role.lanes;
			search->role.parallel =
			        role.parallel && (!search->any || search->role.parallel);
			search->role.lanes = same ? role.lanes : 0;
			search->any = true;
		}
		isl_map_free(own);
	}
	isl_map_free(order);
	return isl_stat_ok;
}

struct poly_loop_role poly_schedule_role(
        const struct poly_schedule *schedule, const isl_union_map *order)
{
	struct role_search search = { .schedule = schedule };
	isl_union_map_foreach_map((isl_union_map *)order, add_role, &search);
	return search.role;
}
