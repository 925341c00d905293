/* A plan applied: the scheduled kernel, its initiation interval and the words that it takes. */
#include "schedule/schedule.h"
#include <math.h>

#define PARTS_OPERATORS 32    /* partial sums are put together by so many operators at most; */
#define PARTS_CYCLES 128      /* that takes a pipeline of its own, so they save more cycles than this each time; */
#define TURNS_PARTS 2         /* where the terms of a point are counted at run time: a block of keys is a word of so many numbers that a term in four cycles is quick, and its adders are shared then */
#define PARTS_NESTS 256       /* and it is done no more often, since models of time write these loops out */

bool plan_is_lane(const struct plan *plan, int part)
{
	return plan->lanes > 1 && part == plan->parts - 1;
}

bool plan_is_row(const struct plan *plan, int part)
{
	return plan->rows > 1 && part == plan->parts - 2;
}

int plan_loops(const struct plan *plan)
{
	return plan->parts - (plan->lanes > 1) - (plan->rows > 1);
}

bool plan_is_tree(const struct kernel *kernel, const struct plan *plan)
{
	return plan->lanes > 1 && kernel->loop[plan->part[plan->parts - 1].source].reduction;
}

/* Cycles between two updates of one accumulator, at one update a cycle. */
static int64_t update_distance(const struct kernel *kernel, const struct plan *plan, bool *carried)
{
	int64_t distance = 1;
	*carried = false;
	for (int i = plan->parts - 1; i >= 0; i--) {
		if (plan_is_lane(plan, i) || plan_is_row(plan, i) || plan->part[i].trip == 1)
			continue;
		if (kernel->loop[plan->part[i].source].reduction) {
			*carried = true;
			return distance;
		}
		distance *= kernel->loop[plan->part[i].source].run_time ? 1 : plan->part[i].trip;
	}
	return distance;
}

/* Latency of the operations between the accumulator and the update's result. */
int plan_chain_latency(const struct platform *platform, struct arena *arena, const struct kernel *kernel)
{
	const struct body *body = &kernel->update;
	int *latency = ARENA_ARRAY(arena, int, body->count + 1);
	for (int n = 0; n < body->count; n++) {
		const struct node *node = &body->node[n];
		latency[n] = node->kind == NODE_ACCUMULATOR ? 0 : -1;
		for (int a = 0; node->kind == NODE_OP && a < op_info[node->code].operands; a++)
			if (latency[node->argument[a]] > latency[n])
				latency[n] = latency[node->argument[a]];
		if (node->kind == NODE_OP && latency[n] >= 0)
			latency[n] += platform_operator(platform, node->code, node->type).latency;
	}
	return latency[body->result] > 0 ? latency[body->result] : 1;
}

/* May each of several partial results begin with what the whole begins with?  A largest or smallest number may count it several times. */
static bool starts_anywhere(const struct kernel *kernel)
{
	return (kernel->combine == OP_ADDF && kernel->init == 0) || kernel->combine == OP_MAXIMUMF || kernel->combine == OP_MINIMUMF;
}

/* Words of the post body come when the parts are put together, those of the update before. */
static bool bodies_are_apart(const struct kernel *kernel)
{
	for (int n = 0; n < kernel->post.count; n++)
		if (kernel->post.node[n].kind == NODE_OPERAND && body_uses_operand(&kernel->update, (int)kernel->post.node[n].integer))
			return false;
	return !body_has(&kernel->update, OP_INDEX);
}

/* Cycles, points of the loops outside the reductions, those of other loops inside, which have a sum each, and numbers in a word of sums. */
struct sums {
	int64_t inside, outside, turns, width;
};

static struct sums sums_of(const struct kernel *kernel, const struct plan *plan)
{
	struct sums sums = {1, 1, 1, 1};
	bool inside = false;
	for (int i = 0; i < plan->parts; i++) {
		bool reduction = kernel->loop[plan->part[i].source].reduction;
		if (plan_is_lane(plan, i) || plan_is_row(plan, i)) {
			sums.width *= reduction ? 1 : plan->part[i].trip;
			continue;
		}
		inside = inside || (reduction && plan->part[i].trip > 1);
		*(inside ? &sums.inside : &sums.outside) *= plan->part[i].trip;
		sums.turns *= inside && !reduction ? plan->part[i].trip : 1;
	}
	return sums;
}

/* One loop around the reductions, which alone stand inside: the parts are put together while the next point's terms come (lower_turns.c), and cost no cycle. */
static bool fixed_terms_turn(const struct kernel *kernel, const struct plan *plan, int64_t parts)
{
	int nest = plan_loops(plan), outer = 0;
	while (outer < nest && !(kernel->loop[plan->part[outer].source].reduction && plan->part[outer].trip > 1))
		outer++;
	for (int i = 0; i < nest; i++) {
		const struct loop *loop = &kernel->loop[plan->part[i].source];
		bool counted = loop->run_time && (loop->run_time->plus < 1 || i == nest - 1);        /* there may be no terms, or fewer than parts */
		if (i < outer ? loop->run_time || (plan->part[i].trip > 1) != (i == outer - 1) : !loop->reduction || counted)
			return false;
	}
	return outer > 0 && plan->part[nest - 1].trip >= parts && !body_uses_counters(&kernel->post);
}

/* The loops of a nest so far. */
struct nest_seen {
	int last, counted, reductions;        /* last: of several points outside the reductions */
	int64_t inner;            /* turns of the innermost reduction; 0: it is counted */
	bool wrong;
};

static void see_loop(struct nest_seen *seen, const struct loop *loop, int source, bool columns)
{
	bool several = loop->extent > 1 || loop->run_time;
	if (!loop->reduction) {
		seen->wrong |= seen->reductions && loop->run_time;
		seen->last = several && !seen->reductions ? source : seen->last;
		return;
	}
	if (!several)
		return;
	seen->wrong |= columns || (loop->run_time && loop->run_time->plus < 1);
	seen->inner = loop->run_time ? 0 : loop->extent;
	seen->counted += loop->run_time != NULL;
	seen->reductions++;
}

/* What follows a sum comes for each of them, as they do. */
static bool post_changes(const struct kernel *kernel, int last)
{
	for (int n = 0; n < kernel->post.count; n++)
		if (kernel->post.node[n].kind == NODE_OPERAND && !kernel->operand[kernel->post.node[n].integer].stride[last])
			return false;
	return !body_uses_counters(&kernel->post);
}

bool plan_points_turn(const struct kernel *kernel, const struct plan *plan, int64_t parts)
{
	int nest = plan ? plan_loops(plan) : kernel->loops - (kernel->lanes > 1) - (kernel->rows > 1);
	struct nest_seen seen = {.last = -1};
	bool columns = false;
	for (int i = 1; i < nest; i++) {
		int source = plan ? plan->part[i].source : i;
		const struct loop *of = &kernel->loop[source];
		struct loop loop = {plan ? plan->part[i].trip : of->extent, of->reduction, of->run_time};
		see_loop(&seen, &loop, source, columns);
		columns = columns || (seen.reductions && !loop.reduction && loop.extent > 1);
	}
	bool apart = seen.inner ? seen.inner % parts == 0 : seen.reductions == 1;
	return kernel->tiled && parts > 1 && seen.last >= 0 && seen.counted && apart && !seen.wrong && post_changes(kernel, seen.last);
}

static bool takes_turns(const struct kernel *kernel, const struct plan *plan, int64_t parts)
{
	return fixed_terms_turn(kernel, plan, parts) || plan_points_turn(kernel, plan, parts);
}

/* So many parts, or fewer: a term goes to the part that the innermost reduction's counter says.  Where another reduction stands around that one, its turns have to be whole rounds of the parts, or the last term of a part and its
 * next one, in the outer reduction's next turn, are nearer than a round.  Loops that are counted at run time may have one turn. */
static int64_t parts_apart(const struct kernel *kernel, const struct plan *plan, int64_t parts)
{
	int64_t turns = 0, between = 1;       /* of the innermost reduction, 0 until it is seen; of loops between it and the one at hand */
	for (int i = plan_loops(plan) - 1; i >= 0; i--) {
		const struct loop *loop = &kernel->loop[plan->part[i].source];
		int64_t trip = loop->run_time ? 1 : plan->part[i].trip;
		if (trip == 1 && !loop->run_time)
			continue;
		if (!turns)
			turns = loop->reduction ? trip : 0;
		else if (!loop->reduction)
			between *= trip;
		else
			while (parts > 1 && turns % parts && (between - 1) * turns < parts)
				parts /= 2;
	}
	return parts;
}

int64_t plan_partial(const struct kernel *kernel, const struct plan *plan, int latency)
{
	bool carried;
	int64_t distance = update_distance(kernel, plan, &carried), parts = 1;
	struct sums sums = sums_of(kernel, plan);
	if (!carried || distance >= latency || !starts_anywhere(kernel) || !bodies_are_apart(kernel))
		return 1;
	while (parts * distance < latency)
		parts *= 2;
	parts = parts > TURNS_PARTS && plan_points_turn(kernel, plan, TURNS_PARTS) ? TURNS_PARTS : parts;
	parts = parts_apart(kernel, plan, parts);
	int64_t saved = (latency - distance) * sums.inside / distance;
	bool pays = (takes_turns(kernel, plan, parts) && saved * sums.outside > PARTS_CYCLES) || (saved > PARTS_CYCLES && sums.outside <= PARTS_NESTS);
	return (parts - 1) * sums.width <= PARTS_OPERATORS && pays ? parts : 1;
}

int64_t plan_tree_levels(int64_t numbers)
{
	int64_t levels = 0;
	for (; numbers > 1; numbers /= 2)
		levels++;
	return levels;
}

int64_t plan_put_together(int64_t lanes, int64_t parts, int64_t sums, int latency)
{
	return (plan_tree_levels(lanes) + 1 + plan_tree_levels(parts)) * latency + sums - 1;
}

int64_t plan_drained(const struct kernel *kernel, const struct plan *plan, int latency, bool told)
{
	int64_t parts = plan_partial(kernel, plan, latency), lanes = told && plan_is_tree(kernel, plan) ? plan->lanes : 1;
	if (parts <= 1 || takes_turns(kernel, plan, parts))
		return 0;
	struct sums sums = sums_of(kernel, plan);
	return sums.outside * plan_put_together(lanes, parts, told ? sums.turns : 1, latency);
}

int plan_interval(const struct kernel *kernel, const struct plan *plan, int latency)
{
	bool carried;
	int64_t distance = update_distance(kernel, plan, &carried) * plan_partial(kernel, plan, latency);
	return carried ? (int)((latency + distance - 1) / distance) : 1;
}

bool plan_turned(struct arena *arena, const struct kernel *kernel, const struct plan *plan, struct plan *turned)
{
	int first = 0, loops = plan_loops(plan);
	while (first < loops && !(!kernel->scan && kernel->loop[plan->part[first].source].reduction && plan->part[first].trip > 1))
		first++;
	int around = first - 1;
	while (around >= 0 && plan->part[around].trip == 1)
		around--;
	if (around < 0 || first == loops || kernel->ordered || kernel->loop[plan->part[around].source].run_time)
		return false;
	*turned = *plan;
	turned->part = arena_copy(arena, plan->part, sizeof *plan->part * (size_t)plan->parts);
	for (int i = around; i + 1 < loops; i++)
		turned->part[i] = plan->part[i + 1];
	turned->part[loops - 1] = plan->part[around];
	return true;
}

/* Words popped: once a point of the loops down to the innermost one that the operand uses. */
int64_t plan_words(const struct kernel *kernel, const struct plan *plan, int operand)
{
	const struct access *access = &kernel->operand[operand];
	bool late = kernel_is_post_operand(kernel, operand);
	int64_t words = 1, all = 1;
	for (int i = 0; i < plan_loops(plan); i++) {
		if (late && kernel->loop[plan->part[i].source].reduction)
			continue;
		all *= plan->part[i].trip;
		words = access->stride[plan->part[i].source] && plan->part[i].trip > 1 ? all : words;
	}
	return words;
}

static void apply_access(struct arena *arena, const struct plan *plan, const struct access *from, struct access *to)
{
	*to = *from;
	to->later = 0;                /* the converter in front says so */
	to->stride = ARENA_ARRAY(arena, int64_t, plan->parts + 1);
	for (int i = 0; i < plan->parts; i++)
		to->stride[i] = from->stride[plan->part[i].source] * plan->part[i].step;
	to->guard = ARENA_ARRAY(arena, struct guard_range, from->guards + 1);
	for (int g = 0; g < from->guards; g++) {
		to->guard[g] = from->guard[g];
		for (int i = 0; i < plan->parts; i++)
			if (plan->part[i].source == from->guard[g].loop)
				to->guard[g].loop = i;
	}
}

/* The counter of an unscheduled loop, from the counters of its parts. */
static int counter(struct module *module, struct body *body, const struct plan *plan, int source)
{
	const struct type *index = type_index(module);
	int sum = -1;
	for (int i = 0; i < plan->parts; i++) {
		if (plan->part[i].source != source)
			continue;
		int term = body_add(module, body, (struct node){.kind = NODE_OP, .code = OP_INDEX, .type = index, .integer = i});
		if (plan->part[i].step != 1) {
			int step = body_add(module, body, (struct node){.kind = NODE_CONSTANT, .type = index, .integer = plan->part[i].step});
			term = body_add(module, body, (struct node){.kind = NODE_OP, .code = OP_MULI, .type = index, .argument = {term, step}});
		}
		sum = sum < 0 ? term : body_add(module, body, (struct node){.kind = NODE_OP, .code = OP_ADDI, .type = index, .argument = {sum, term}});
	}
	return sum < 0 ? body_add(module, body, (struct node){.kind = NODE_CONSTANT, .type = index}) : sum;
}

static struct body apply_body(struct module *module, const struct plan *plan, const struct body *from)
{
	struct body to = {0};
	int *renamed = ARENA_ARRAY(module->arena, int, from->count + 1);
	for (int n = 0; n < from->count; n++) {
		struct node node = from->node[n];
		for (int a = 0; node.kind == NODE_OP && a < op_info[node.code].operands; a++)
			node.argument[a] = renamed[node.argument[a]];
		if (node.kind == NODE_OP && node.code == OP_INDEX)
			renamed[n] = counter(module, &to, plan, (int)node.integer);
		else
			renamed[n] = body_add(module, &to, node);
	}
	to.result = from->count ? renamed[from->result] : 0;
	return to;
}

/* Of a reduction along padded words, what is padded is the number that it starts with. */
static void drop_padding(struct module *module, const struct plan *plan, const struct kernel *from, struct kernel *to)
{
	const struct type *index = type_index(module), *type = to->type;
	struct body *body = &to->update;
	int source = plan->part[plan->parts - 1].source, term = 0;
	enum op_code combine = kernel_combine(to, &term);
	int extent = body_add(module, body, (struct node){.kind = NODE_CONSTANT, .type = index, .integer = from->loop[source].extent}), at = counter(module, body, plan, source);
	int inside = body_add(module, body, (struct node){.kind = NODE_OP, .code = OP_CMPI, .type = type_integer(module, 1), .argument = {at, extent}, .integer = 2});
	int start = body_add(module, body, (struct node){.kind = NODE_CONSTANT, .type = type, .integer = kernel_init_integer(to->init)});
	int kept = body_add(module, body, (struct node){.kind = NODE_OP, .code = OP_SELECT, .type = type, .argument = {inside, term, start}});
	int acc = body_add(module, body, (struct node){.kind = NODE_ACCUMULATOR, .type = type});
	body->result = body_add(module, body, (struct node){.kind = NODE_OP, .code = combine, .type = type, .argument = {acc, kept}});
	body_remove_dead(module, body);
}

struct kernel *plan_apply(struct module *module, const struct platform *platform, const struct kernel *kernel, int operands, const struct plan *plan)
{
	struct kernel *to = arena_copy(module->arena, kernel, sizeof *kernel);
	to->loops = plan->parts;
	to->loop = ARENA_ARRAY(module->arena, struct loop, plan->parts + 1);
	for (int i = 0; i < plan->parts; i++)
		to->loop[i] = (struct loop){plan->part[i].trip, kernel->loop[plan->part[i].source].reduction, kernel->loop[plan->part[i].source].run_time};
	to->operand = ARENA_ARRAY(module->arena, struct access, operands + 1);
	for (int j = 0; j < operands; j++)
		apply_access(module->arena, plan, &kernel->operand[j], &to->operand[j]);
	apply_access(module->arena, plan, &kernel->result, &to->result);
	to->update = apply_body(module, plan, &kernel->update);
	to->post = apply_body(module, plan, &kernel->post);
	if (plan->padded && plan_is_tree(kernel, plan))
		drop_padding(module, plan, kernel, to);
	to->scheduled = true;
	to->lanes = plan->lanes;
	to->rows = plan->rows;
	int latency = kernel_has_reduction(kernel) ? plan_chain_latency(platform, module->arena, kernel) : 1;
	to->partial = plan_partial(kernel, plan, latency);
	to->interval = plan_interval(kernel, plan, latency);
	return to;
}
