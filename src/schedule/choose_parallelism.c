/* Chooses the lanes of each kernel and the memory ports of its largest operand.
 *
 * By intensity (after HIDA, arXiv 2311.03379): decode is bound by reading each weight once, so the
 * kernel that would read longest gets twice the ports, repeatedly, until all ports are used. A
 * kernel that uses each weight for several tokens needs lanes rather than ports. If the operators
 * exceed the DSP budget, all lanes are halved until they fit. The joint search
 * (parallelism_search.c) starts from this choice. uniform gives all kernels the lanes of one
 * port, as the published heuristic gives all loops one tile size (arXiv 2509.13694).
 *
 * Before: stream.kernel {loops = [512, 512]}
 * After:  stream.kernel {loops = [512, 512], parallelism = {lanes = 64, operand = 1, ports = 4}}
 * Needs: kernels on root tensors, gathers in kernels of their own. Guarantees: every kernel but
 * gathers has a parallelism. Exact. Ends: --parallelism-budget bounds the choices that are
 * priced. */
#include "ir/workload.h"
#include "base/closest_name.h"
#include "ir/launch_tokens.h"
#include "schedule/node_cost.h"
#include "schedule/schedule_passes.h"
#include "schedule/search_cache.h"
#include "ir/kernel_edit.h"

#define LANES 16 /* f32 elements in a word of a memory port */
/* f32 lanes of a kernel that uses each weight for several tokens */
#define REUSED_LANES 64
#define REUSE 4
/* an operand of at least 1/PEER_SHARE of the largest one's elements gets as many ports */
#define PEER_SHARE 4
#define BULK_ELEMENTS 4096    /* a smaller operand shares a port */
#define BULK_WITH_ENGINE 8192 /* the same with a matmul engine, whose PEs need the ports */
/* the same where small operands share the AXI adapter of the engine's weights */
#define BULK_PIGGYBACK 65536
/* an elementwise kernel may use 1/KERNEL_SHARE of the DSP budget */
#define KERNEL_SHARE 20
/* a reduction without a bulk operand may use 1/TREE_SHARE: each of its words is a whole sum */
#define TREE_SHARE 4

int64_t parallelism_points(const struct op *op, int operand, bool used)
{
	int64_t product = 1;
	for (int l = 0; l < op->kernel->loops; l++)
		if ((op->kernel->operand[operand].stride[l] != 0) == used &&
		        (used || !op->kernel->loop[l].reduction))
			product *= op->kernel->loop[l].extent;
	return product;
}

const struct op *parallelism_sums_of(const struct op *op)
{
	for (int j = 0; op->kernel->ordered && j < op->operands; j++) {
		const struct op *maker = op->operand[j]->def;
		if (maker && maker->code == OP_KERNEL && maker->kernel->ordered &&
		        kernel_has_reduction(maker->kernel) &&
		        maker->kernel->type->kind == TYPE_INTEGER)
			return maker;
	}
	return NULL;
}

static struct candidate find_bulk(struct arena *arena, const struct op *op, int64_t least)
{
	struct candidate best = { .op = op, .operand = -1, .port_lanes = LANES };
	if (parallelism_sums_of(op))
		return best;
	enum operand_location *operand_location = operand_locations(arena, op);
	for (int j = 0; j < op->operands; j++) {
		struct tensor_source *tensor_source = tensor_source_of(op->operand[j]);
		int64_t elements = parallelism_points(op, j, true);
		if (operand_location[j] != LOCATION_PACKED || elements < least ||
		        elements * tensor_source->count <= best.elements)
			continue;
		best.operand = j;
		best.port_lanes = PORT_BITS / type_bits(type_scalar(op->operand[j]->type));
		best.elements = elements * tensor_source->count;
		best.reuse = parallelism_points(op, j, false);
	}
	return best;
}

/* Finds further operands that would keep the kernel waiting if the shared loader brought them. */
static void find_peers(struct arena *arena, struct candidate *candidate, int64_t least)
{
	const struct op *op = candidate->op;
	enum operand_location *operand_location = operand_locations(arena, op);
	for (int j = 0; candidate->operand >= 0 && j < op->operands; j++) {
		const struct tensor_source *source = tensor_source_of(op->operand[j]);
		int64_t elements = parallelism_points(op, j, true);
		if (j != candidate->operand && operand_location[j] == LOCATION_PACKED &&
		        source != tensor_source_of(op->operand[candidate->operand]) &&
		        elements >= least &&
		        elements * source->count * PEER_SHARE >= candidate->elements)
			candidate->peers |= 1u << j;
	}
}

static struct schedule schedule_within(struct module *module, const struct op *op, int64_t most)
{
	return schedule_kernel(
	        module, op, operand_locations(module->arena, op), is_only_stored(op), most);
}

static int64_t body_dsp(const struct platform *platform, const struct body *body)
{
	int64_t dsp = 0;
	for (int n = 0; n < body->count; n++)
		if (body->node[n].kind == NODE_OP)
			dsp += node_cost(platform, body, &body->node[n], false).dsp;
	return dsp;
}

/* DSPs of a kernel. A reduction over the lanes ends in one element per word, so its post body
 * exists once. */
static int64_t kernel_dsp(const struct parallelism_table *w, int i)
{
	const struct platform *platform = w->context->platform;
	const struct op *op = w->kernel[i];
	struct schedule schedule = schedule_within(w->module, op, w->parallelism[i].lanes);
	if (!op->kernel->loops)
		return body_dsp(platform, &op->kernel->update) / SCALAR_INTERVAL;
	return schedule.lanes * schedule.row_unroll * body_dsp(platform, &op->kernel->update) +
	        (schedule_is_tree(op->kernel, &schedule) ? 1 : schedule.lanes) *
	        body_dsp(platform, &op->kernel->post);
}

static int64_t total_dsp(const struct parallelism_table *w)
{
	int64_t dsp = 0;
	for (int i = 0; i < w->count; i++)
		dsp += kernel_dsp(w, i);
	return dsp;
}

static int list_kernels(const struct block *block, const struct op **kernel, int count)
{
	for (const struct op *op = block->first; op; op = op->next) {
		if (op->code == OP_FOR)
			count = list_kernels(op->region[0], kernel, count);
		if (op->code != OP_KERNEL)
			continue;
		if (kernel)
			kernel[count] = op;
		op->result[0]->id = count++;
	}
	return count;
}

static int64_t cycles_of(const struct candidate *candidate, const struct parallelism *parallelism)
{
	return candidate->elements / candidate->port_lanes / parallelism->ports;
}

/* memory ports of a kernel's operands */
static int ports_of(const struct parallelism_table *w, int i)
{
	return candidate_operands(&w->candidate[i]) * w->parallelism[i].ports;
}

/* Doubles the ports of the slowest reader while there are ports. */
static void spend_ports(struct parallelism_table *w)
{
	struct candidate *candidate = w->candidate;
	struct parallelism *parallelism = w->parallelism;
	int most = (int)choice_count(&w->context->choices, CHOICE_PORTS);
	int ports = w->ports;
	for (;;) {
		int slowest = -1;
		for (int i = 0; i < w->count; i++)
			if (candidate[i].operand >= 0 && !candidate[i].frozen &&
			        ports_of(w, i) <= ports && 2 * parallelism[i].ports <= most &&
			        (slowest < 0 ||
			                cycles_of(&candidate[i], &parallelism[i]) >
			                        cycles_of(&candidate[slowest],
			                                &parallelism[slowest])))
				slowest = i;
		if (slowest < 0)
			return;
		int64_t lanes = 2 * candidate[slowest].port_lanes * parallelism[slowest].ports;
		int64_t bits = kernel_has_reduction(candidate[slowest].op->kernel) ? w->read_bits
		                                                                   : WORD_BITS;
		struct schedule schedule = schedule_within(w->module, candidate[slowest].op, lanes);
		if (schedule.lanes * schedule.row_unroll != lanes ||
		        2 * parallelism[slowest].ports * PORT_BITS > bits) {
			candidate[slowest].frozen = true;
			continue;
		}
		ports -= ports_of(w, slowest);
		parallelism[slowest].ports *= 2;
		parallelism[slowest].lanes = lanes;
	}
}

/* Limits the lanes of a kernel that reads integer sums to the number in which they arrive. */
static void match_consumer_rate(struct parallelism_table *w, int i)
{
	const struct op *maker = parallelism_sums_of(w->kernel[i]);
	if (maker)
		w->parallelism[i].lanes = schedule_within(
		        w->module, maker, w->parallelism[maker->result[0]->id].lanes)
		                                  .row_unroll;
}

static void halve_lanes(struct parallelism_table *w)
{
	for (int64_t most = choice_count(&w->context->choices, CHOICE_LANES);
	        most > 1 && total_dsp(w) > w->dsp; most /= 2)
		for (int i = 0; i < w->count; i++) {
			struct parallelism *parallelism = &w->parallelism[i];
			parallelism->lanes =
			        parallelism->lanes > most / 2 ? most / 2 : parallelism->lanes;
			int64_t port = w->candidate[i].port_lanes;
			match_consumer_rate(w, i);
			parallelism->ports = parallelism->lanes < port * parallelism->ports
			        ? (int)((parallelism->lanes + port - 1) / port)
			        : parallelism->ports;
		}
}

static void by_intensity(struct parallelism_table *w)
{
	int64_t most = choice_count(&w->context->choices, CHOICE_LANES);
	for (int i = 0; i < w->count; i++) {
		w->candidate[i].frozen = w->candidate[i].reuse >= REUSE;
		if (w->candidate[i].operand >= 0 && w->candidate[i].frozen)
			w->parallelism[i].lanes = REUSED_LANES * w->candidate[i].port_lanes / LANES;
	}
	spend_ports(w);
	for (int i = 0; i < w->count; i++) {
		int share = kernel_has_reduction(w->kernel[i]->kernel) ? TREE_SHARE : KERNEL_SHARE;
		match_consumer_rate(w, i);
		while (w->candidate[i].operand < 0 && w->parallelism[i].lanes > 1 &&
		        kernel_dsp(w, i) * share > w->dsp)
			w->parallelism[i].lanes /= 2;
		w->parallelism[i].lanes =
		        w->parallelism[i].lanes < most ? w->parallelism[i].lanes : most;
	}
	halve_lanes(w);
}

/* --parallelism-search uniform: the same lanes for all kernels. */
static void by_default_tile(struct parallelism_table *w)
{
	for (int i = 0; i < w->count; i++)
		match_consumer_rate(w, i);
	halve_lanes(w);
}

static int64_t least_bulk_elements(const struct op *main)
{
	if (operands_share_weight_port(main))
		return BULK_PIGGYBACK;
	return workload_of(main) == WORKLOAD_NONE ? BULK_ELEMENTS : BULK_WITH_ENGINE;
}

/* Without an engine, which has its ports: further large operands of the kernels, if each can have a
 * port. Returns how many. */
static int find_all_peers(struct parallelism_table *w, int64_t least, int bulk)
{
	int peers = 0;
	if (workload_of(module_main(w->module)) != WORKLOAD_NONE)
		return 0;
	for (int i = 0; i < w->count; i++) {
		find_peers(w->module->arena, &w->candidate[i], least);
		peers += candidate_operands(&w->candidate[i]) - (w->candidate[i].operand >= 0);
	}
	if (bulk + peers <= w->ports)
		return peers;
	for (int i = 0; i < w->count; i++)
		w->candidate[i].peers = 0;
	return 0;
}

/* Chooses the bulk operands; if there are more than ports, the smallest ones share a port. */
static void find_candidates(struct parallelism_table *w)
{
	struct arena *arena = w->module->arena;
	const struct op *main = module_main(w->module);
	int64_t least = least_bulk_elements(main);
	int bulk = 0;
	for (int i = 0; i < w->count; i++) {
		w->candidate[i] = kernel_is_gather(w->kernel[i])
		        ? (struct candidate){ .op = w->kernel[i],
			          .operand = -1,
			          .port_lanes = LANES }
		        : find_bulk(arena, w->kernel[i], least);
		bulk += w->candidate[i].operand >= 0;
	}
	for (; bulk > 0 && bulk > w->ports; bulk--) {
		int smallest = -1;
		for (int i = 0; i < w->count; i++)
			if (w->candidate[i].operand >= 0 &&
			        (smallest < 0 ||
			                w->candidate[i].elements < w->candidate[smallest].elements))
				smallest = i;
		w->candidate[smallest].operand = -1;
	}
	w->ports -= bulk + find_all_peers(w, least, bulk);
	for (int i = 0; i < w->count; i++)
		w->parallelism[i] = (struct parallelism){ .lanes = w->candidate[i].port_lanes,
			.bulk = w->candidate[i].operand,
			.ports = 1,
			.peers = w->candidate[i].peers };
}

/* The last option within the lanes and ports of the initial choice. */
static int option_near(
        const struct parallelism_kernel *kernel, const struct parallelism *parallelism)
{
	int best = 0;
	for (int o = 1; o < kernel->options; o++)
		if (kernel->option[o].parallelism.lanes <= parallelism->lanes &&
		        kernel->option[o].parallelism.ports <= parallelism->ports)
			best = o;
	return best;
}

/* Fit trials build many designs with the same search problem, so its answer is cached. */
static void search_joint(struct map *search_cache, const struct parallelism_space *space,
        int64_t points, int *choice)
{
	struct search_key search_key = parallelism_search_key(space, points, choice);
	if (search_cache_lookup(search_cache, &search_key, space->kernels, choice))
		return;
	parallelism_joint(space, points, choice);
	search_cache_store(search_cache, &search_key, space->kernels, choice);
}

/* Does --fix-kernel, or a pragma that can be followed, set the parallelism? */
static bool is_set(
        const struct parallelism_table *w, int k, const struct parallelism_option *option)
{
	const char *name = w->kernel[k]->kernel->name;
	struct fixed_parallelism wish;
	return fixed_parallelism_of(&w->context->choices, name) ||
	        (unroll_of_kernel(w->module, name, &wish) && wish.lanes == option->lanes);
}

static bool by_search(
        struct parallelism_table *w, const struct block *block, enum parallelism_search search)
{
	const struct choices *choices = &w->context->choices;
	struct parallelism_space *space = build_parallelism_space(w, block);
	int *choice = ARENA_ARRAY(space->arena, int, w->count + 1);
	int64_t points = choice_count(choices, CHOICE_PARALLELISM_BUDGET);
	if (!parallelism_options(w, space))
		return false;
	for (int k = 0; k < w->count; k++)
		choice[k] = option_near(&space->kernel[k], &w->parallelism[k]);
	parallelism_follow(space, choice);
	if (search == PARALLELISM_JOINT)
		search_joint(w->context->search_cache, space, points, choice);
	if (search == PARALLELISM_NEIGHBOR)
		parallelism_neighbour(space, points, choice);
	bool searched = search == PARALLELISM_JOINT || search == PARALLELISM_NEIGHBOR;
	for (int k = 0; k < w->count; k++) {
		const struct parallelism_option *option = &space->kernel[k].option[choice[k]];
		if (searched || is_set(w, k, option))
			w->parallelism[k] = option->parallelism;
	}
	return true;
}

static bool fixes_are_known(struct parallelism_table *w)
{
	const struct choices *choices = &w->context->choices;
	for (int f = 0; f < choices->fixed; f++) {
		struct closest_name closest_name = { .wanted = choices->fix[f].kernel };
		for (int k = 0; k < w->count; k++)
			closest_name_consider(&closest_name, w->kernel[k]->kernel->name);
		if (closest_name.found && text_same(closest_name.found, closest_name.wanted))
			continue;
		diag_error(w->module->diag, NOWHERE,
		        "--fix-kernel names '%s', which is no kernel of the design",
		        closest_name.wanted);
		return diag_note(w->module->diag,
		        "the nearest is %s; report.txt and `--to stream` name all",
		        closest_name.found ? closest_name.found : "none");
	}
	return true;
}

/* --- prefill and decode */

/* Name of the weight that an ordered kernel reads through ports of its own, in a rolled layer that
 * of the first layer; NULL: none. */
static const char *bulk_name(const struct candidate *candidate)
{
	const struct op *op = candidate->op;
	if (!op || candidate->operand < 0 || !op->kernel->ordered)
		return NULL;
	const struct op *main = op->parent->parent->code == OP_FOR
	        ? op->parent->parent->parent->parent
	        : op->parent->parent;
	const struct value *weight = tensor_source_of(op->operand[candidate->operand])->argument[0];
	const struct attr *name =
	        weight->def ? NULL : function_argument_attr(main, weight->index, KEY_STREAM_NAME);
	return name ? name->text : NULL;
}

const struct fixed_parallelism *parallelism_of_phase(
        const struct pass_context *context, const struct candidate *candidate)
{
	const char *name = context->follows ? bulk_name(candidate) : NULL;
	return name ? map_get(context->parallelism_table, name) : NULL;
}

static void tell_other_phase(const struct parallelism_table *w)
{
	struct map *parallelism_table = w->context->parallelism_table;
	for (int i = 0; parallelism_table && !w->context->follows && i < w->count; i++) {
		const char *name = bulk_name(&w->candidate[i]);
		if (!name)
			continue;
		struct schedule schedule =
		        schedule_within(w->module, w->kernel[i], w->parallelism[i].lanes);
		struct fixed_parallelism *chosen =
		        ARENA_NEW(parallelism_table->arena, struct fixed_parallelism);
		*chosen = (struct fixed_parallelism){ .kernel = "",
			.lanes = schedule.lanes,
			.row_unroll = schedule.row_unroll,
			.ports = w->parallelism[i].ports };
		map_set(parallelism_table, name, chosen);
	}
}

/* Sets the operator with which each kernel accumulates, which decides whether a reduction can be
 * the lane loop. */
static void mark_combine(struct op *op, void *context)
{
	int term;
	(void)context;
	if (op->code == OP_KERNEL)
		op->kernel->combine = kernel_has_reduction(op->kernel)
		        ? kernel_combine(op->kernel, &term)
		        : OP_NONE;
}

static bool choose(struct parallelism_table *w, const struct block *body)
{
	enum parallelism_search search =
	        (enum parallelism_search)choice_word(&w->context->choices, CHOICE_SEARCH);
	find_candidates(w);
	parallelism_reserve_engine(w, body);
	if (!fixes_are_known(w))
		return false;
	if (search == PARALLELISM_UNIFORM)
		by_default_tile(w);
	else
		by_intensity(w);
	bool direct = search == PARALLELISM_UNIFORM || search == PARALLELISM_INTENSITY;
	bool set = w->context->choices.fixed || attr_get(module_main(w->module), KEY_STREAM_UNROLL);
	return (direct && !set) || by_search(w, body, search);
}

static void record_block(const struct parallelism_table *w, const struct block *block)
{
	for (struct op *op = block->first; op; op = op->next) {
		if (op->code == OP_FOR)
			record_block(w, op->region[0]);
		if (op->code == OP_KERNEL && !kernel_is_gather(op))
			record_parallelism(w->module, op, &w->parallelism[op->result[0]->id]);
	}
}

bool choose_parallelism(struct pass_context *context, struct module *module)
{
	struct arena *arena = module->arena;
	struct block *body = module_main(module)->region[0];
	const struct choices *choices = &context->choices;
	struct parallelism_table w = {
		.context = context, .module = module, .count = list_kernels(body, NULL, 0)
	};
	parallelism_ports(&w);
	w.kernel = ARENA_ARRAY(arena, const struct op *, w.count + 1);
	w.candidate = ARENA_ARRAY(arena, struct candidate, w.count + 1);
	w.parallelism = ARENA_ARRAY(arena, struct parallelism, w.count + 1);
	w.dsp = parallelism_dsp(context, body);
	w.lut = choice_resolve(choices, context->platform, CHOICE_LUT);
	ir_count_uses(module_main(module)->region[0]);
	ir_walk(body, mark_combine, NULL);
	find_tensor_sources(module, NULL);
	list_kernels(body, w.kernel, 0);
	if (!choose(&w, body))
		return false;
	tell_other_phase(&w);
	record_block(&w, body);
	return true;
}
