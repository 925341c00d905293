#include "schedule/answers.h"
#include "base/blake2.h"
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

/* --- widths */

static void add_phase(struct blake2 *hash, const struct width_phase *phase)
{
	add_number(hash, phase->number);
	if (!phase->number)
		return;
	const double numbers[] = {phase->run, phase->part, phase->tile, phase->before, phase->after, phase->first, phase->cycles, phase->last, phase->together, phase->collect, phase->through};
	add_reals(hash, sizeof numbers / sizeof *numbers, numbers);
}

/* Extents that the search looks at. */
static int extents_of(const struct width_space *space)
{
	return space->deepens ? WIDTH_PRICED : space->extents;
}

static void add_option(struct blake2 *hash, const struct width_space *space, const struct width_kernel *kernel, const struct width_option *option)
{
	const int64_t numbers[] = {option->width.bulk, option->width.ports, option->lanes, option->rows, option->dsp, option->lut, option->out};
	blake2_add(hash, numbers, sizeof numbers);
	blake2_add(hash, option->in, sizeof *option->in * (size_t)kernel->operands);
	add_real(hash, option->depth);
	for (int e = 0; e < extents_of(space); e++) {
		const struct width_flow *flow = &option->flow[e];
		const double times[] = {option->cycles[e], option->ahead[e], option->shared[e], flow->first, flow->held};
		add_reals(hash, sizeof times / sizeof *times, times);
		add_reals(hash, kernel->operands, flow->need);
		add_reals(hash, kernel->operands, flow->taken);
	}
}

static void add_operand(struct blake2 *hash, const struct width_kernel *kernel, int j)
{
	const int64_t numbers[] = {kernel->source[j], kernel->late[j], kernel->carried[j], kernel->entry[j]};
	blake2_add(hash, numbers, sizeof numbers);
	add_reals(hash, WIDTH_PRICED, kernel->held[j].part);
	add_phase(hash, &kernel->phase[j]);
	add_phase(hash, &kernel->single[j]);
	add_real(hash, kernel->part[j].low);
	add_real(hash, kernel->part[j].high);
}

static void add_width_kernel(struct blake2 *hash, const struct width_space *space, const struct width_kernel *kernel)
{
	const int64_t numbers[] = {kernel->operands, kernel->loop, kernel->follows, kernel->options, kernel->turns, kernel->row, kernel->turned};
	blake2_add(hash, numbers, sizeof numbers);
	for (int j = 0; j < kernel->operands; j++)
		add_operand(hash, kernel, j);
	for (int o = 0; o < kernel->options; o++)
		add_option(hash, space, kernel, &kernel->option[o]);
	if (kernel->follows >= 0)
		add_numbers(hash, space->kernel[kernel->follows].options, kernel->follow);
}

struct problem problem_of_widths(const struct width_space *space, int64_t points, const int *choice)
{
	struct blake2 hash;
	struct problem problem;
	const int64_t numbers[] = {'w', points, space->kernels, space->loops, space->budget.dsp, space->budget.lut, space->budget.ports, space->extents, space->phases, space->stages, space->few_rows, space->deepens, space->alone, space->generous, space->hurries};
	blake2_start(&hash);
	blake2_add(&hash, numbers, sizeof numbers);
	for (int e = 0; e < extents_of(space); e++) {
		add_number(&hash, space->extent[e]);
		add_real(&hash, space->weight[e]);
	}
	add_real(&hash, space->slack);
	add_real(&hash, space->brought);
	add_reals(&hash, WIDTH_PRICED, space->states);
	for (int l = 0; l < space->loops; l++) {
		const int64_t loop[] = {space->loop[l].first, space->loop[l].end, space->loop[l].layers};
		blake2_add(&hash, loop, sizeof loop);
		add_real(&hash, space->loop[l].unit);
	}
	for (int k = 0; k < space->kernels; k++)
		add_width_kernel(&hash, space, &space->kernel[k]);
	add_numbers(&hash, space->kernels, choice);
	blake2_end(&hash, problem.hex);
	return problem;
}

/* --- orders */

static void add_order(struct blake2 *hash, const struct order *order)
{
	add_number(hash, order->offset);
	add_number(hash, order->loops);
	blake2_add(hash, order->loop, sizeof *order->loop * (size_t)order->loops);
}

static void add_orders(struct blake2 *hash, const struct orders_list *list)
{
	add_number(hash, (int64_t)list->order.count);
	for (size_t i = 0; i < list->order.count; i++)
		add_order(hash, &list->order.data[i]);
}

static void add_value(struct blake2 *hash, const struct orders_value *value)
{
	const int64_t numbers[] = {value->elements, value->bytes, value->writer, value->fixed, value->copies, value->crossing, value->streams, value->stored, value->lanes, value->lane_stride, (int64_t)value->reader.count};
	blake2_add(hash, numbers, sizeof numbers);
	for (size_t i = 0; i < value->reader.count; i++) {
		add_number(hash, value->reader.data[i].kernel);
		add_number(hash, value->reader.data[i].operand);
	}
	add_orders(hash, &value->written);
	add_orders(hash, &value->wanted);
}

static void add_orders_kernel(struct blake2 *hash, const struct orders_kernel *kernel)
{
	const int64_t numbers[] = {kernel->operands, kernel->value, kernel->carried, kernel->options};
	blake2_add(hash, numbers, sizeof numbers);
	add_numbers(hash, kernel->operands, kernel->source);
	for (int j = 0; j < kernel->operands; j++)
		add_number(hash, kernel->late[j]);
	for (int o = 0; o < kernel->options; o++) {
		const struct orders_option *option = &kernel->option[o];
		const int64_t own[] = {option->result, option->accumulators, option->holds};
		blake2_add(hash, own, sizeof own);
		add_numbers(hash, kernel->operands, option->operand);
		blake2_add(hash, option->lag, sizeof *option->lag * (size_t)kernel->operands);
	}
}

struct problem problem_of_orders(const struct orders_graph *graph, int64_t points)
{
	struct blake2 hash;
	struct problem problem;
	const int64_t numbers[] = {'o', points, graph->kernels, graph->values, graph->cuts};
	blake2_start(&hash);
	blake2_add(&hash, numbers, sizeof numbers);
	for (int k = 0; k < graph->kernels; k++)
		add_orders_kernel(&hash, &graph->kernel[k]);
	for (int v = 0; v < graph->values; v++)
		add_value(&hash, &graph->value[v]);
	blake2_end(&hash, problem.hex);
	return problem;
}

/* --- answers */

bool answer_known(const struct map *answers, const struct problem *problem, int count, int *choice)
{
	const int *known = answers ? map_get(answers, problem->hex) : NULL;
	if (known)
		memcpy(choice, known, sizeof *choice * (size_t)count);
	return known != NULL;
}

void answer_keep(struct map *answers, const struct problem *problem, int count, const int *choice)
{
	if (answers)
		map_set(answers, problem->hex, arena_copy(answers->arena, choice, sizeof *choice * (size_t)count));
}
