#include "schedule/search_cache.h"
#include "base/blake2.h"
#include "ir/kernel_signature.h"
#include <string.h>

static void add_number(struct blake2 *hash, int64_t number)
{
	blake2_add(hash, &number, sizeof number);
}

static void add_real(struct blake2 *hash, double number)
{
	blake2_add(hash, &number, sizeof number);
}

static void add_reals(struct blake2 *hash, int count, const double *number)
{
	blake2_add(hash, number, sizeof *number * (size_t)count);
}

static void add_numbers(struct blake2 *hash, int count, const int *number)
{
	blake2_add(hash, number, sizeof *number * (size_t)count);
}

/* --- parallelism */

static void add_job(struct blake2 *hash, const struct parallelism_job *job)
{
	add_number(hash, job->number);
	if (!job->number)
		return;
	const double numbers[] = { job->run, job->part, job->tile, job->before, job->after,
		job->first, job->cycles, job->block, job->sums, job->last, job->burst_part,
		job->collect_cycles, job->transit };
	add_reals(hash, sizeof numbers / sizeof *numbers, numbers);
}

/* Extents that the search prices. */
static int extents_of(const struct parallelism_space *space)
{
	return space->improves_long_extent ? PARALLELISM_PRICED : space->extents;
}

static void add_option(struct blake2 *hash, const struct parallelism_space *space,
        const struct parallelism_kernel *kernel, const struct parallelism_option *option)
{
	const int64_t numbers[] = { option->parallelism.bulk, option->parallelism.ports,
		option->parallelism.peers, option->lanes, option->row_unroll, option->dsp,
		option->lut, option->out };
	blake2_add(hash, numbers, sizeof numbers);
	blake2_add(hash, option->in, sizeof *option->in * (size_t)kernel->operands);
	add_real(hash, option->depth);
	for (int e = 0; e < extents_of(space); e++) {
		const struct parallelism_timing *timing = &option->timing[e];
		const double times[] = { option->cycles[e], option->prefetch[e], option->shared[e],
			timing->first, timing->buffered, timing->split, timing->handover };
		add_reals(hash, sizeof times / sizeof *times, times);
		add_reals(hash, kernel->operands, timing->need);
		add_reals(hash, kernel->operands, timing->taken);
	}
}

static void add_operand(struct blake2 *hash, const struct parallelism_kernel *kernel, int j)
{
	const int64_t numbers[] = { kernel->source[j], kernel->post_operand[j], kernel->carried[j],
		kernel->entry[j] };
	blake2_add(hash, numbers, sizeof numbers);
	add_reals(hash, PARALLELISM_PRICED, kernel->buffered[j].part);
	add_job(hash, &kernel->job[j]);
	add_job(hash, &kernel->single[j]);
	add_real(hash, kernel->part[j].low);
	add_real(hash, kernel->part[j].high);
}

static void add_parallelism_kernel(struct blake2 *hash, const struct parallelism_space *space,
        const struct parallelism_kernel *kernel)
{
	const int64_t numbers[] = { kernel->operands, kernel->loop, kernel->follows,
		kernel->load_of, kernel->options, kernel->interleave, kernel->row,
		kernel->interleaved, kernel->sums };
	blake2_add(hash, numbers, sizeof numbers);
	for (int j = 0; j < kernel->operands; j++)
		add_operand(hash, kernel, j);
	for (int o = 0; o < kernel->options; o++)
		add_option(hash, space, kernel, &kernel->option[o]);
	if (kernel->follows >= 0)
		add_numbers(hash, space->kernel[kernel->follows].options, kernel->follow);
}

struct search_key parallelism_search_key(
        const struct parallelism_space *space, int64_t points, const int *choice)
{
	struct blake2 hash;
	struct search_key search_key;
	const int64_t numbers[] = { 'w', points, space->kernels, space->loops, space->budget.dsp,
		space->budget.lut, space->budget.ports, space->extents, space->jobs, space->stages,
		space->few_tokens, space->improves_long_extent, space->single_token,
		space->prices_by_best, space->speeds_up_ends, space->blocks_first,
		space->token_symbol != NULL };
	blake2_start(&hash);
	blake2_add(&hash, numbers, sizeof numbers);
	for (int e = 0; e < extents_of(space); e++) {
		add_number(&hash, space->extent[e]);
		add_real(&hash, space->weight[e]);
	}
	add_real(&hash, space->slack);
	add_real(&hash, space->weight_load_cycles);
	add_real(&hash, space->prefetched_words);
	add_reals(&hash, PARALLELISM_PRICED, space->states);
	for (int l = 0; l < space->loops; l++) {
		const int64_t loop[] = { space->loop[l].first, space->loop[l].end,
			space->loop[l].layers };
		blake2_add(&hash, loop, sizeof loop);
		add_real(&hash, space->loop[l].engine_cycles);
	}
	for (int k = 0; k < space->kernels; k++)
		add_parallelism_kernel(&hash, space, &space->kernel[k]);
	add_numbers(&hash, space->kernels, choice);
	blake2_end(&hash, search_key.hex);
	return search_key;
}

/* --- loop orders */

static void add_order(struct blake2 *hash, const struct order *order)
{
	add_number(hash, order->offset);
	add_number(hash, order->loops);
	blake2_add(hash, order->loop, sizeof *order->loop * (size_t)order->loops);
}

static void add_order_list(struct blake2 *hash, const struct loop_order_list *list)
{
	add_number(hash, (int64_t)list->order.count);
	for (size_t i = 0; i < list->order.count; i++)
		add_order(hash, &list->order.data[i]);
}

static void add_value(struct blake2 *hash, const struct loop_order_value *value)
{
	const int64_t numbers[] = { value->elements, value->bytes, value->writer, value->fixed,
		value->copies, value->into_layers, value->streams, value->stored, value->lanes,
		value->lane_stride, (int64_t)value->reader.count };
	blake2_add(hash, numbers, sizeof numbers);
	for (size_t i = 0; i < value->reader.count; i++) {
		add_number(hash, value->reader.data[i].kernel);
		add_number(hash, value->reader.data[i].operand);
	}
	add_order_list(hash, &value->written);
	add_order_list(hash, &value->wanted);
}

static void add_loop_order_kernel(struct blake2 *hash, const struct loop_order_kernel *kernel)
{
	const int64_t numbers[] = { kernel->operands, kernel->value, kernel->carried,
		kernel->options };
	blake2_add(hash, numbers, sizeof numbers);
	add_numbers(hash, kernel->operands, kernel->source);
	for (int j = 0; j < kernel->operands; j++)
		add_number(hash, kernel->post_operand[j]);
	for (int o = 0; o < kernel->options; o++) {
		const struct loop_order_option *option = &kernel->option[o];
		const int64_t own[] = { option->result, option->accumulators, option->holds_sums };
		blake2_add(hash, own, sizeof own);
		add_numbers(hash, kernel->operands, option->operand);
		blake2_add(hash, option->lag, sizeof *option->lag * (size_t)kernel->operands);
	}
}

struct search_key loop_order_search_key(const struct loop_order_graph *graph, int64_t points)
{
	struct blake2 hash;
	struct search_key search_key;
	const int64_t numbers[] = { 'o', points, graph->kernels, graph->values, graph->spills };
	blake2_start(&hash);
	blake2_add(&hash, numbers, sizeof numbers);
	for (int k = 0; k < graph->kernels; k++)
		add_loop_order_kernel(&hash, &graph->kernel[k]);
	for (int v = 0; v < graph->values; v++)
		add_value(&hash, &graph->value[v]);
	blake2_end(&hash, search_key.hex);
	return search_key;
}

/* --- register tiles */

/* Adds the kernel, and the shapes of what it reads and writes, which its signature leaves out. */
static void add_tile_kernel(struct blake2 *hash, const struct tile_kernel *of)
{
	struct text text = text_new(of->module->arena);
	kernel_signature(of->op, of->module, &text);
	for (int j = 0; j < of->op->operands; j++)
		text_add(&text, "%s ", of->op->operand[j]->type->text);
	text_add(&text, "%s", of->op->result[0]->type->text);
	blake2_add(hash, text.data, text.size);
	add_numbers(hash, of->op->operands, of->loads);
	for (int l = 0; l < of->op->kernel->loops; l++) {
		add_number(hash, of->wanted[l]);
		add_number(hash, of->wanted_lanes[l]);
	}
	add_number(hash, of->is_read);
	add_number(hash, of->is_stored);
	add_number(hash, of->reader_dsp);
}

struct search_key register_tile_search_key(
        const struct tile_kernel *kernel, const struct tile_limits *limits)
{
	struct blake2 hash;
	struct search_key search_key;
	const struct platform *platform = kernel->platform;
	const struct resources board = platform_total(platform);
	const int64_t numbers[] = { 't', limits->dsp, limits->memory.bram18, limits->memory.uram,
		limits->ports, limits->shares, platform->channels, board.bram18, board.uram,
		board.lut, board.ff, board.dsp, tile_term_dsp(platform, kernel->op->kernel),
		schedule_chain_latency(platform, kernel->module->arena, kernel->op->kernel) };
	blake2_start(&hash);
	blake2_add(&hash, numbers, sizeof numbers);
	add_real(&hash, platform_channel_rate(platform));
	add_tile_kernel(&hash, kernel);
	blake2_end(&hash, search_key.hex);
	return search_key;
}

/* --- the cache */

bool search_cache_lookup(
        const struct map *search_cache, const struct search_key *search_key, int count, int *choice)
{
	const int *known = search_cache ? map_get(search_cache, search_key->hex) : NULL;
	if (known)
		memcpy(choice, known, sizeof *choice * (size_t)count);
	return known != NULL;
}

void search_cache_store(
        struct map *search_cache, const struct search_key *search_key, int count, const int *choice)
{
	if (search_cache)
		map_set(search_cache, search_key->hex,
		        arena_copy(search_cache->arena, choice, sizeof *choice * (size_t)count));
}

bool search_cache_lookup_tile(const struct map *search_cache, const struct search_key *search_key,
        struct tile_choice *choice)
{
	const struct tile_choice *known =
	        search_cache ? map_get(search_cache, search_key->hex) : NULL;
	if (known)
		*choice = *known;
	return known != NULL;
}

void search_cache_store_tile(struct map *search_cache, const struct search_key *search_key,
        const struct tile_kernel *kernel, const struct tile_choice *choice)
{
	if (!search_cache)
		return;
	struct arena *arena = search_cache->arena;
	struct tile_choice *stored = arena_copy(arena, choice, sizeof *choice);
	struct schedule *schedule = &stored->schedule;
	if (choice->found) {
		schedule->part = arena_copy(
		        arena, schedule->part, sizeof *schedule->part * (size_t)schedule->parts);
		schedule->held = arena_copy(arena, schedule->held,
		        sizeof *schedule->held * (size_t)kernel->op->operands);
		schedule->ports = arena_copy(arena, schedule->ports,
		        sizeof *schedule->ports * (size_t)kernel->op->operands);
	}
	map_set(search_cache, search_key->hex, stored);
}
