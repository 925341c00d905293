/* Addresses of a tensor as seen by the kernel that writes it and by one that reads it: both are
 * mixed radix numbers. */
#include "fusion/fuse.h"
#include <string.h>

bool fuse_digits(struct module *module, const struct op *op, int *order, int *count)
{
	(void)module;
	const struct kernel *kernel = op->kernel;
	int digits = 0;
	int64_t below = 1;
	for (int l = 0; l < kernel->loops; l++) {
		if (kernel->loop[l].reduction)
			continue;
		int at = digits++;
		for (; at > 0 && kernel->result.stride[order[at - 1]] < kernel->result.stride[l];
		        at--)
			order[at] = order[at - 1];
		order[at] = l;
	}
	*count = digits;
	for (int d = digits - 1; d >= 0; d--) {
		if (kernel->result.stride[order[d]] != below)
			return false;
		below *= kernel->loop[order[d]].extent;
	}
	return !kernel->result.offset && below == type_elements(op->result[0]->type);
}

struct range {
	int64_t low, count;
};

static struct range range_of(const struct kernel *kernel, const struct access *access, int loop)
{
	const struct guard_range *guard = access_guard(access, loop);
	return guard ? (struct range){ guard->low, guard->high - guard->low }
	             : (struct range){ 0, kernel->loop[loop].extent };
}

static int digit_of(const struct kernel *producer, const int *order, int digits, int64_t stride)
{
	for (int d = 0; d < digits; d++)
		if (producer->result.stride[order[d]] <= stride)
			return d;
	return -1;
}

/* Splits the consumer's loop where it runs over the digit's end; false if that cannot be. */
static bool split_at_digit(struct module *module, struct op *consumer, const struct access *access,
        int loop, int64_t span)
{
	if (span % access->stride[loop])
		return false;
	return kernel_split_loop(module, consumer, loop, span / access->stride[loop]);
}

enum outcome { REFUSED, RETRY, DONE };

static enum outcome place_loop(struct module *module, const struct kernel *producer,
        struct op *consumer, int operand, const int *order, int digits, int loop,
        struct composed *composed)
{
	const struct access *access = &consumer->kernel->operand[operand];
	int64_t stride = access->stride[loop];
	struct range range = range_of(consumer->kernel, access, loop);
	if (stride < 0)
		return REFUSED;
	if (stride == 0 || range.count == 1) {
		composed->once &= range.count == 1;
		return DONE;
	}
	int digit = digit_of(producer, order, digits, stride);
	if (digit < 0 || stride % producer->result.stride[order[digit]])
		return REFUSED;
	int64_t span = producer->result.stride[order[digit]] * producer->loop[order[digit]].extent;
	if (stride * (range.count - 1) >= span)
		return split_at_digit(module, consumer, access, loop, span) ? RETRY : REFUSED;
	composed->factor[order[digit] * composed->loops + loop] =
	        stride / producer->result.stride[order[digit]];
	return DONE;
}

/* Whether the loops in one digit reach each value once: by rising factor, each is larger than
 * all below together. */
static bool digit_once(const struct kernel *consumer, const struct access *access,
        const int64_t *factor, int loops)
{
	int64_t reach = 0;
	int64_t done = 0;
	for (int round = 0; round < loops; round++) {
		int next = -1;
		for (int l = 0; l < loops; l++)
			if (factor[l] > done && (next < 0 || factor[l] < factor[next]))
				next = l;
		if (next < 0)
			break;
		int same = 0;
		for (int l = 0; l < loops; l++)
			same += factor[l] == factor[next];
		if (same > 1 || factor[next] <= reach)
			return false;
		reach += factor[next] * (range_of(consumer, access, next).count - 1);
		done = factor[next];
	}
	return true;
}

/* Constants of the digits, and whether no digit carries. */
static bool finish(const struct kernel *producer, const struct op *consumer, int operand,
        struct composed *composed)
{
	const struct kernel *kernel = consumer->kernel;
	const struct access *access = &kernel->operand[operand];
	int64_t base = access->offset;
	for (int l = 0; l < kernel->loops; l++)
		base += access->stride[l] * range_of(kernel, access, l).low;
	if (base < 0)
		return false;
	for (int t = 0; t < producer->loops; t++) {
		int64_t extent = producer->loop[t].extent;
		int64_t first = base / producer->result.stride[t] % extent;
		int64_t reach = first;
		const int64_t *factor = composed->factor + t * composed->loops;
		composed->constant[t] = first;
		for (int l = 0; l < kernel->loops; l++) {
			if (!factor[l])
				continue;
			struct range range = range_of(kernel, access, l);
			reach += factor[l] * (range.count - 1);
			composed->constant[t] -= factor[l] * range.low;
		}
		if (reach >= extent)
			return false;
		composed->once &= digit_once(kernel, access, factor, kernel->loops);
	}
	return true;
}

bool fuse_compose(struct module *module, const struct op *producer, struct op *consumer,
        int operand, struct composed *composed)
{
	const struct kernel *kernel = producer->kernel;
	int digits;
	int *order = ARENA_ARRAY(module->arena, int, kernel->loops);
	if (!fuse_digits(module, producer, order, &digits) || digits != kernel->loops)
		return false;
	for (bool retry = true; retry;) {
		int loops = consumer->kernel->loops;
		*composed = (struct composed){ loops,
			ARENA_ARRAY(module->arena, int64_t, kernel->loops *loops),
			ARENA_ARRAY(module->arena, int64_t, kernel->loops), true };
		retry = false;
		for (int l = 0; l < loops && !retry; l++) {
			enum outcome outcome = place_loop(
			        module, kernel, consumer, operand, order, digits, l, composed);
			if (outcome == REFUSED)
				return false;
			retry = outcome == RETRY;
		}
	}
	return finish(kernel, consumer, operand, composed);
}
