/* Addresses of a tensor as seen by the kernel that stores it and by one that reads it: both are
 * mixed radix numbers whose digits are loops.  A loop of the reader inside one digit is a factor of
 * that digit's counter; a loop across digits is split. */
#include "fusion/fuse.h"
#include <string.h>

bool fuse_digits(struct module *module, const struct op *op, int *order, int *count)
{
	(void)module;
	const struct kernel *kernel = op->kernel;
	int digits = kernel_parallel_order(kernel, order);
	int64_t below = 1;
	*count = digits;
	for (int d = digits - 1; d >= 0; d--) {
		if (kernel->result.stride[order[d]] != below)
			return false;
		below *= kernel->loop[order[d]].extent;
	}
	return !kernel->result.offset && below == type_elements(op->result[0]->type);
}

/* Counters of a loop for which an access reads. */
struct counter_range {
	int64_t low, count;
};

static struct counter_range range_of(
        const struct kernel *kernel, const struct access *access, int loop)
{
	const struct guard_range *guard = access_guard(access, loop);
	if (guard)
		return (struct counter_range){ guard->low, guard->high - guard->low };
	return (struct counter_range){ 0, kernel->loop[loop].extent };
}

/* A composition of two kernels in progress. */
struct composition {
	struct module *module;
	const struct kernel *producer;
	struct op *consumer;
	int operand;
	const int *order; /* loops of the producer by falling stride: [digits] */
	int digits;
	struct composed *composed;
};

/* The outermost digit whose stride is no larger than this one; -1: none. */
static int digit_of(const struct composition *c, int64_t stride)
{
	for (int d = 0; d < c->digits; d++)
		if (c->producer->result.stride[c->order[d]] <= stride)
			return d;
	return -1;
}

/* Splits the consumer's loop at the end of the digit.  false: it does not divide there. */
static bool split_at_digit(const struct composition *c, int64_t stride, int loop, int64_t span)
{
	return span % stride == 0 && kernel_split_loop(c->module, c->consumer, loop, span / stride);
}

/* NOT_AFFINE: give up; SPLIT: the consumer's loops have changed; PLACED: the factor is set. */
enum outcome { NOT_AFFINE, SPLIT, PLACED };

/* Finds the factor of one loop of the consumer. */
static enum outcome place_loop(const struct composition *c, int loop)
{
	const struct access *access = &c->consumer->kernel->operand[c->operand];
	int64_t stride = access->stride[loop];
	struct counter_range range = range_of(c->consumer->kernel, access, loop);
	if (stride < 0)
		return NOT_AFFINE;
	if (stride == 0 || range.count == 1) {
		c->composed->once &= range.count == 1;
		return PLACED;
	}
	int digit = digit_of(c, stride);
	int own = digit < 0 ? -1 : c->order[digit];
	if (own < 0 || stride % c->producer->result.stride[own])
		return NOT_AFFINE;
	int64_t span = c->producer->result.stride[own] * c->producer->loop[own].extent;
	if (stride * (range.count - 1) >= span)
		return split_at_digit(c, stride, loop, span) ? SPLIT : NOT_AFFINE;
	c->composed->factor[own * c->composed->loops + loop] =
	        stride / c->producer->result.stride[own];
	return PLACED;
}

/* Do the loops in one digit reach each of its values at most once?  So if by rising factor each one
 * is larger than the reach of all before it. */
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

/* Sets the constants of the digits.  false: a sum would carry into the next digit. */
static bool set_constants(const struct kernel *producer, const struct op *consumer, int operand,
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
			struct counter_range range = range_of(kernel, access, l);
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
	struct composition c = { module, kernel, consumer, operand, order, digits, composed };
	for (bool retry = true; retry;) {
		int loops = consumer->kernel->loops;
		*composed = (struct composed){ loops,
			ARENA_ARRAY(module->arena, int64_t, kernel->loops *loops),
			ARENA_ARRAY(module->arena, int64_t, kernel->loops), true };
		retry = false;
		for (int l = 0; l < loops && !retry; l++) {
			enum outcome outcome = place_loop(&c, l);
			if (outcome == NOT_AFFINE)
				return false;
			retry = outcome == SPLIT;
		}
	}
	return set_constants(kernel, consumer, operand, composed);
}
