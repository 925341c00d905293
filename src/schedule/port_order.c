#include "schedule/port_order.h"
#include "ir/kernel_edit.h"
#include <string.h>

static void push_loop(struct order *order, int64_t trip, int64_t stride)
{
	struct order_loop *last = order->loops ? &order->loop[order->loops - 1] : NULL;
	if (trip == 1)
		return;
	if (last && last->stride == stride * trip)
		*last = (struct order_loop){ last->trip * trip, stride };
	else
		order->loop[order->loops++] = (struct order_loop){ trip, stride };
}

/* Number of outer parts that matter for the order: loops inside the last one that the operand uses
 * repeat nothing. */
static int used_parts(const struct kernel *kernel, const struct schedule *schedule,
        const struct access *access, bool parallel_only)
{
	int parts = schedule_loops(schedule);
	while (parts > 0) {
		const struct schedule_part *part = &schedule->part[parts - 1];
		if (part->trip > 1 && access->stride[part->source] &&
		        !(parallel_only && kernel->loop[part->source].reduction))
			return parts;
		parts--;
	}
	return 0;
}

struct order order_of_port(
        const struct kernel *kernel, const struct schedule *schedule, int operand)
{
	const struct access *access = operand < 0 ? &kernel->result : &kernel->operand[operand];
	bool parallel_only = operand < 0 ? !kernel->scan : kernel_is_post_operand(kernel, operand);
	struct order order = { .offset = access->offset };
	int used = used_parts(kernel, schedule, access, parallel_only);
	for (int i = 0; i < schedule->parts; i++) {
		const struct schedule_part *part = &schedule->part[i];
		int64_t stride = access->stride[part->source];
		const struct guard_range *guard = access_guard(access, part->source);
		if (parallel_only && kernel->loop[part->source].reduction)
			continue;
		order.offset += guard ? guard->low * stride : 0;
		if (i < used ||
		        ((schedule_is_lane(schedule, i) || schedule_is_row(schedule, i)) && stride))
			push_loop(&order, guard ? guard->high - guard->low : part->trip,
			        stride * part->step);
	}
	return order;
}

struct order order_of_tensor(const struct type *tensor)
{
	struct order order = { 0 };
	push_loop(&order, type_elements(tensor), 1);
	return order;
}

struct order order_of_loops(int loops, const struct order_loop *loop)
{
	struct order order = { 0 };
	for (int i = 0; i < loops; i++)
		push_loop(&order, loop[i].trip, loop[i].stride);
	return order;
}

struct order order_of_sequence(const struct sequence *flat)
{
	struct order order = { .offset = flat->offset };
	for (int i = 0; i < flat->dims; i++)
		push_loop(&order, flat->trip[i], flat->stride[i]);
	return order;
}

bool order_same(const struct order *left, const struct order *right)
{
	return left->offset == right->offset && left->loops == right->loops &&
	        !memcmp(left->loop, right->loop, sizeof *left->loop * (size_t)left->loops);
}

bool order_of_words(const struct order *order, int64_t lanes, int64_t stride)
{
	const struct order_loop *last = order->loops ? &order->loop[order->loops - 1] : NULL;
	bool is_repeated = last && !order->loop[0].stride;
	return !is_repeated &&
	        (lanes == 1 || (last && last->stride == stride && last->trip % lanes == 0));
}

static void add_raw(struct order *order, int64_t trip, int64_t stride)
{
	if (trip > 1)
		order->loop[order->loops++] = (struct order_loop){ trip, stride };
}

/* Strip-mines the loops that both orders have in common, where one is coarser than the other, so
 * that both begin with the same loops; returns how many these are. */
static int share_outer_loops(struct order *left, struct order *right)
{
	struct order from = *left;
	struct order to = *right;
	int l = 0;
	int shared = 0;
	left->loops = right->loops = 0;
	for (bool even = true; even && l < from.loops && l < to.loops; l++) {
		struct order_loop a = from.loop[l];
		struct order_loop b = to.loop[l];
		int64_t common = common_divisor(a.trip, b.trip);
		int64_t inner = a.trip / common;
		int64_t other = b.trip / common;
		if (common == 1 || a.stride * inner != b.stride * other)
			break;
		add_raw(left, common, a.stride * inner);
		add_raw(right, common, b.stride * other);
		shared++;
		even = inner == 1 && other == 1;
		add_raw(left, inner, a.stride);
		add_raw(right, other, b.stride);
	}
	for (int i = l; i < from.loops; i++)
		add_raw(left, from.loop[i].trip, from.loop[i].stride);
	for (int i = l; i < to.loops; i++)
		add_raw(right, to.loop[i].trip, to.loop[i].stride);
	return shared;
}

/* The elements that the loops from `first` on reach, as loops sorted by stride. */
static struct order reached(const struct order *order, int first)
{
	struct order sorted = { 0 };
	struct order merged = { 0 };
	for (int l = first; l < order->loops; l++) {
		if (!order->loop[l].stride)
			continue;
		int at = sorted.loops++;
		for (; at > 0 && sorted.loop[at - 1].stride < order->loop[l].stride; at--)
			sorted.loop[at] = sorted.loop[at - 1];
		sorted.loop[at] = order->loop[l];
	}
	for (int l = 0; l < sorted.loops; l++)
		push_loop(&merged, sorted.loop[l].trip, sorted.loop[l].stride);
	return merged;
}

static int64_t product(const struct order *order, int first, int end)
{
	int64_t trips = 1;
	for (int l = first; l < end; l++)
		trips *= order->loop[l].trip;
	return trips;
}

/* Does `to` walk a part of what `from` walks, in the same order? The reader then drops the rest;
 * tested loop by loop. */
static bool is_part(const struct order *from, const struct order *to)
{
	int64_t rest = to->offset - from->offset;
	int w = 0;
	for (int l = 0; rest >= 0 && l < from->loops; l++) {
		int64_t stride = from->loop[l].stride;
		int64_t above = stride * from->loop[l].trip;
		for (; stride > 0 && w < to->loops && to->loop[w].stride >= stride &&
		        to->loop[w].stride < above && to->loop[w].stride % stride == 0;
		        w++) {
			int64_t step = to->loop[w].stride;
			if (above % step || rest / step + to->loop[w].trip > above / step)
				return false;
			rest %= step;
			above = step;
		}
		if (stride <= 0 || rest / stride >= above / stride)
			return false;
		rest %= stride;
	}
	return w == to->loops && !rest;
}

struct order_buffer order_buffer(const struct order *from, const struct order *to, int64_t whole)
{
	struct order left = *from;
	struct order right = *to;
	struct order_buffer best = { whole, 1 };
	if (order_same(from, to) || is_part(from, to))
		return (struct order_buffer){ 0, 1 };
	if (from->offset != to->offset || from->loops == ORDER_LOOPS || to->loops == ORDER_LOOPS)
		return best;
	int shared = share_outer_loops(&left, &right);
	for (int k = 0; k <= shared; k++) {
		struct order a = reached(&left, k);
		struct order b = reached(&right, k);
		if (!order_same(&a, &b))
			continue;
		int64_t elements = product(&left, k, left.loops) * (k ? 2 : 1);
		if (elements <= best.elements)
			best = (struct order_buffer){ elements, product(&left, 0, k) };
	}
	return best;
}
