/* How many lanes each kernel may have, and how many memory ports its largest operand.
 *
 * By intensity (after HIDA, arXiv 2311.03379): decode is bound by reading weights once, so the kernel that would read longest gets twice the ports, again and again, until the
 * ports are spent.  A kernel that uses each weight for several tokens needs lanes rather than ports.  If the operators then exceed the budget of DSPs, every
 * width is halved until they fit.  The joint search (widths_search.c) begins there.  default-tile gives all kernels the lanes of one port, as the published heuristic gives all
 * loops one tile (arXiv 2509.13694). */
#include "ir/workload.h"
#include "base/nearest.h"
#include "ir/rows.h"
#include "schedule/answers.h"
#include "ir/kernel_edit.h"

#define LANES 16                    /* f32 in a port */
#define REUSED_LANES 64             /* f32 lanes of a kernel that uses each weight for several tokens */
#define REUSE 4
#define BULK_ELEMENTS 4096          /* fewer share a port */
#define BULK_BESIDE_UNIT 8192       /* the same beside a unit, whose slices want the ports, */
#define BULK_RIDING 65536           /* and where what shares rides on an adapter of it */
#define KERNEL_SHARE 20             /* an elementwise kernel may use this part of the operators' DSPs */
#define TREE_SHARE 4                /* a reduction that streams no weights this part: each of its words is a whole sum */

int64_t widths_points(const struct op *op, int operand, bool used)
{
	int64_t product = 1;
	for (int l = 0; l < op->kernel->loops; l++)
		if ((op->kernel->operand[operand].stride[l] != 0) == used && (used || !op->kernel->loop[l].reduction))
			product *= op->kernel->loop[l].extent;
	return product;
}

const struct op *widths_sums_of(const struct op *op)
{
	for (int j = 0; op->kernel->ordered && j < op->operands; j++) {
		const struct op *maker = op->operand[j]->def;
		if (maker && maker->code == OP_KERNEL && maker->kernel->ordered && kernel_has_reduction(maker->kernel) && maker->kernel->type->kind == TYPE_INTEGER)
			return maker;
	}
	return NULL;
}

static struct candidate find_bulk(struct arena *arena, const struct op *op, int64_t least)
{
	struct candidate best = {.op = op, .operand = -1, .port_lanes = LANES};
	if (widths_sums_of(op))
		return best;
	enum reach *reach = reach_of(arena, op);
	for (int j = 0; j < op->operands; j++) {
		struct flow *flow = flow_of(op->operand[j]);
		int64_t elements = widths_points(op, j, true);
		if (reach[j] != REACH_PACKED || elements < least || elements * flow->count <= best.elements)
			continue;
		best.operand = j;
		best.port_lanes = PORT_BITS / type_bits(type_scalar(op->operand[j]->type));
		best.elements = elements * flow->count;
		best.reuse = widths_points(op, j, false);
	}
	return best;
}

static struct plan planned(struct streams *streams, const struct op *op, int64_t most)
{
	return plan_kernel(streams->module, op, reach_of(streams->module->arena, op), only_stored(op), most);
}

static int64_t body_dsp(const struct platform *platform, const struct body *body)
{
	int64_t dsp = 0;
	for (int n = 0; n < body->count; n++)
		if (body->node[n].kind == NODE_OP)
			dsp += widths_node_cost(platform, body, &body->node[n], false).dsp;
	return dsp;
}

/* A reduction over the lanes ends in one number: its post body stands once. */
static int64_t kernel_dsp(struct streams *streams, const struct op *op, const struct width *width)
{
	const struct platform *platform = streams->context->platform;
	struct plan plan = planned(streams, op, width->lanes);
	return plan.lanes * plan.rows * body_dsp(platform, &op->kernel->update) + (plan_is_tree(op->kernel, &plan) ? 1 : plan.lanes) * body_dsp(platform, &op->kernel->post);
}

static int64_t total_dsp(const struct widths *w)
{
	int64_t dsp = 0;
	for (int i = 0; i < w->count; i++)
		dsp += kernel_dsp(w->streams, w->kernel[i], &w->width[i]);
	return dsp;
}

static int collect(const struct block *block, const struct op **kernel, int count)
{
	for (const struct op *op = block->first; op; op = op->next) {
		if (op->code == OP_FOR)
			count = collect(op->region[0], kernel, count);
		if (op->code != OP_KERNEL)
			continue;
		if (kernel)
			kernel[count] = op;
		op->result[0]->id = count++;
	}
	return count;
}

static int64_t cycles_of(const struct candidate *candidate, const struct width *width)
{
	return candidate->elements / candidate->port_lanes / width->ports;
}

/* Gives the slowest reader twice the ports while there are any. */
static void spend_ports(struct widths *w)
{
	struct candidate *candidate = w->candidate;
	struct width *width = w->width;
	int most = (int)choice_count(&w->streams->context->choices, CHOICE_PORTS), ports = w->ports;
	for (;;) {
		int slowest = -1;
		for (int i = 0; i < w->count; i++)
			if (candidate[i].operand >= 0 && !candidate[i].frozen && width[i].ports <= ports && 2 * width[i].ports <= most &&
			    (slowest < 0 || cycles_of(&candidate[i], &width[i]) > cycles_of(&candidate[slowest], &width[slowest])))
				slowest = i;
		if (slowest < 0)
			return;
		int64_t lanes = 2 * candidate[slowest].port_lanes * width[slowest].ports;
		struct plan plan = planned(w->streams, candidate[slowest].op, lanes);
		if (plan.lanes * plan.rows != lanes) {
			candidate[slowest].frozen = true;
			continue;
		}
		ports -= width[slowest].ports;
		width[slowest].ports *= 2;
		width[slowest].lanes = lanes;
	}
}

/* A kernel whose loops are listed needs no more lanes than the sums that it reads arrive in. */
static void keep_pace(struct widths *w, int i)
{
	const struct op *maker = widths_sums_of(w->kernel[i]);
	if (maker)
		w->width[i].lanes = planned(w->streams, maker, w->width[maker->result[0]->id].lanes).rows;
}

static void halve(struct widths *w)
{
	for (int64_t most = choice_count(&w->streams->context->choices, CHOICE_LANES); most > 1 && total_dsp(w) > w->dsp; most /= 2)
		for (int i = 0; i < w->count; i++) {
			struct width *width = &w->width[i];
			width->lanes = width->lanes > most / 2 ? most / 2 : width->lanes;
			int64_t port = w->candidate[i].port_lanes;
			keep_pace(w, i);
			width->ports = width->lanes < port * width->ports ? (int)((width->lanes + port - 1) / port) : width->ports;
		}
}

static void by_intensity(struct widths *w)
{
	int64_t most = choice_count(&w->streams->context->choices, CHOICE_LANES);
	for (int i = 0; i < w->count; i++) {
		w->candidate[i].frozen = w->candidate[i].reuse >= REUSE;
		if (w->candidate[i].operand >= 0 && w->candidate[i].frozen)
			w->width[i].lanes = REUSED_LANES * w->candidate[i].port_lanes / LANES;
	}
	spend_ports(w);
	for (int i = 0; i < w->count; i++) {
		int share = kernel_has_reduction(w->kernel[i]->kernel) ? TREE_SHARE : KERNEL_SHARE;
		keep_pace(w, i);
		while (w->candidate[i].operand < 0 && w->width[i].lanes > 1 && kernel_dsp(w->streams, w->kernel[i], &w->width[i]) * share > w->dsp)
			w->width[i].lanes /= 2;
		w->width[i].lanes = w->width[i].lanes < most ? w->width[i].lanes : most;
	}
	halve(w);
}

/* One width for all. */
static void by_default_tile(struct widths *w)
{
	for (int i = 0; i < w->count; i++)
		keep_pace(w, i);
	halve(w);
}

/* Operands with ports of their own; where there are more than ports, the smallest share. */
static void find_candidates(struct widths *w)
{
	struct arena *arena = w->streams->module->arena;
	const struct op *main = module_main(w->streams->module);
	int64_t least = words_ride(main) ? BULK_RIDING : has_contraction(main->region[0]) ? BULK_BESIDE_UNIT : BULK_ELEMENTS;
	int bulk = 0;
	for (int i = 0; i < w->count; i++) {
		w->candidate[i] = kernel_is_gather(w->kernel[i]) ? (struct candidate){.op = w->kernel[i], .operand = -1, .port_lanes = LANES} : find_bulk(arena, w->kernel[i], least);
		bulk += w->candidate[i].operand >= 0;
	}
	for (; bulk > 0 && bulk > w->ports; bulk--) {
		int smallest = -1;
		for (int i = 0; i < w->count; i++)
			if (w->candidate[i].operand >= 0 && (smallest < 0 || w->candidate[i].elements < w->candidate[smallest].elements))
				smallest = i;
		w->candidate[smallest].operand = -1;
	}
	w->ports -= bulk;
	for (int i = 0; i < w->count; i++)
		w->width[i] = (struct width){.lanes = w->candidate[i].port_lanes, .bulk = w->candidate[i].operand, .ports = 1};
}

/* The widest option within the widths that were found. */
static int option_near(const struct width_kernel *kernel, const struct width *width)
{
	int best = 0;
	for (int o = 1; o < kernel->options; o++)
		if (kernel->option[o].width.lanes <= width->lanes && kernel->option[o].width.ports <= width->ports)
			best = o;
	return best;
}

/* Designs that are tried one after the other ask for the same now and then. */
static void search_joint(struct map *answers, const struct width_space *space, int64_t points, int *choice)
{
	struct problem problem = problem_of_widths(space, points, choice);
	if (answer_known(answers, &problem, space->kernels, choice))
		return;
	widths_joint(space, points, choice);
	answer_keep(answers, &problem, space->kernels, choice);
}

static bool by_search(struct widths *w, const struct block *block, enum width_search search)
{
	const struct choices *choices = &w->streams->context->choices;
	struct width_space *space = widths_space(w, block);
	int *choice = ARENA_ARRAY(space->arena, int, w->count + 1);
	int64_t points = choice_count(choices, CHOICE_WIDTH_POINTS);
	if (!widths_options(w->streams, space, w->candidate))
		return false;
	for (int k = 0; k < w->count; k++)
		choice[k] = option_near(&space->kernel[k], &w->width[k]);
	widths_follow(space, choice);
	if (search == WIDTH_JOINT)
		search_joint(w->streams->context->answers, space, points, choice);
	if (search == WIDTH_NEIGHBOUR)
		widths_neighbour(space, points, choice);
	bool searched = search == WIDTH_JOINT || search == WIDTH_NEIGHBOUR;
	for (int k = 0; k < w->count; k++)
		if (searched || fixed_width_of(choices, w->kernel[k]->kernel->name))
			w->width[k] = space->kernel[k].option[choice[k]].width;
	return true;
}

static bool fixes_are_known(struct widths *w)
{
	const struct choices *choices = &w->streams->context->choices;
	for (int f = 0; f < choices->fixed; f++) {
		struct nearest nearest = {.wanted = choices->fix[f].kernel};
		for (int k = 0; k < w->count; k++)
			nearest_consider(&nearest, w->kernel[k]->kernel->name);
		if (nearest.found && text_same(nearest.found, nearest.wanted))
			continue;
		diag_error(w->streams->module->diag, NOWHERE, "--fix names '%s', which is no kernel of the design", nearest.wanted);
		return diag_note(w->streams->module->diag, "the nearest is %s; report.txt and `--to stream` name all", nearest.found ? nearest.found : "none");
	}
	return true;
}

/* --- phases */

/* The weight that the kernel reads through ports of its own, in an order that its maker has listed; of a rolled layer the first one's.  NULL: none. */
static const char *bulk_name(const struct candidate *candidate)
{
	const struct op *op = candidate->op;
	if (!op || candidate->operand < 0 || !op->kernel->ordered)
		return NULL;
	const struct op *main = op->parent->parent->code == OP_FOR ? op->parent->parent->parent->parent : op->parent->parent;
	int number = flow_of(op->operand[candidate->operand])->argument[0]->index;
	const struct attr *name = number < main->region[0]->arguments ? function_argument_attr(main, number, KEY_STREAM_NAME) : NULL;
	return name ? name->text : NULL;
}

const struct fixed_width *widths_of_phase(const struct streams *streams, const struct candidate *candidate)
{
	const char *name = streams->context->follows ? bulk_name(candidate) : NULL;
	return name ? map_get(streams->context->widths, name) : NULL;
}

static void note_widths(const struct widths *w)
{
	struct map *widths = w->streams->context->widths;
	for (int i = 0; widths && !w->streams->context->follows && i < w->count; i++) {
		const char *name = bulk_name(&w->candidate[i]);
		if (!name)
			continue;
		struct plan plan = planned(w->streams, w->kernel[i], w->width[i].lanes);
		struct fixed_width *chosen = ARENA_NEW(widths->arena, struct fixed_width);
		*chosen = (struct fixed_width){.kernel = "", .lanes = plan.lanes, .rows = plan.rows, .ports = w->width[i].ports};
		map_set(widths, name, chosen);
	}
}

struct width *choose_widths(struct streams *streams, const struct block *block)
{
	struct arena *arena = streams->module->arena;
	const struct platform *platform = streams->context->platform;
	const struct choices *choices = &streams->context->choices;
	enum width_search search = (enum width_search)choice_word(choices, CHOICE_SEARCH);
	struct widths w = {.streams = streams, .count = collect(block, NULL, 0), .ports = platform->ports - (int)choice_count(choices, CHOICE_SHARED_PORTS)};
	w.kernel = ARENA_ARRAY(arena, const struct op *, w.count + 1);
	w.candidate = ARENA_ARRAY(arena, struct candidate, w.count + 1);
	w.width = ARENA_ARRAY(arena, struct width, w.count + 1);
	w.dsp = choice_on(choices, platform, CHOICE_DSP);
	w.lut = choice_on(choices, platform, CHOICE_LUT);
	collect(block, w.kernel, 0);
	find_candidates(&w);
	widths_leave_to_unit(&w, block);
	if (!fixes_are_known(&w))
		return NULL;
	if (search == WIDTH_DEFAULT_TILE)
		by_default_tile(&w);
	else
		by_intensity(&w);
	bool direct = search == WIDTH_DEFAULT_TILE || search == WIDTH_INTENSITY;
	if ((!direct || choices->fixed) && !by_search(&w, block, search))
		return NULL;
	note_widths(&w);
	return w.width;
}
