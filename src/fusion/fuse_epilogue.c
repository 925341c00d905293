/* Makes an elementwise consumer the post body of the reduction that feeds it.
 *     s = Σ x * w; y = f(s, b)  ->  y = post f(acc, b) of the same kernel */
#include "fusion/fuse.h"

/* Splits loops of `op`, walked with `stride`, wherever a stride of `other` falls inside one.
 * Reduction loops are left alone. */
static bool split_like(struct module *module, struct op *op, int operand,
        const struct kernel *other, const int64_t *stride)
{
	for (int l = 0; l < op->kernel->loops; l++) {
		const struct access *access =
		        operand < 0 ? &op->kernel->result : &op->kernel->operand[operand];
		int64_t own = access->stride[l];
		if (op->kernel->loop[l].reduction || !own)
			continue;
		for (int m = 0; m < other->loops; m++) {
			int64_t at = stride[m];
			int64_t span = own * op->kernel->loop[l].extent;
			if (other->loop[m].reduction || at <= own || at >= span)
				continue;
			if (at % own || !kernel_split_loop(module, op, l, at / own))
				return false;
			l = -1;
			break;
		}
	}
	return true;
}

/* place[c]: the producer's loop that is loop c of the consumer. */
static bool match_loops(const struct kernel *producer, const struct kernel *consumer,
        const int64_t *stride, int *place)
{
	int parallel = 0;
	for (int t = 0; t < producer->loops; t++)
		parallel += !producer->loop[t].reduction;
	if (parallel != consumer->loops)
		return false;
	for (int c = 0; c < consumer->loops; c++) {
		place[c] = -1;
		for (int t = 0; t < producer->loops; t++)
			if (!producer->loop[t].reduction &&
			        producer->result.stride[t] == stride[c] &&
			        producer->loop[t].extent == consumer->loop[c].extent)
				place[c] = t;
		if (place[c] < 0)
			return false;
	}
	return true;
}

static struct access moved(
        struct module *module, const struct access *from, int loops, const int *place, int count)
{
	struct access access = access_empty(module, count);
	access.offset = from->offset;
	for (int c = 0; c < loops; c++)
		access.stride[place[c]] = from->stride[c];
	for (int g = 0; g < from->guards; g++) {
		struct guard_range guard = from->guard[g];
		guard.loop = place[guard.loop];
		access_add_guard(module, &access, guard);
	}
	return access;
}

/* The operand of the consumer that reads the producer, if there is one only and it reads the
 * whole in some order; else -1. */
static int read_operand(const struct op *producer, const struct op *consumer)
{
	int found = -1;
	for (int j = 0; j < consumer->operands; j++) {
		if (consumer->kernel->operand[j].index_operand >= 0)
			return -1;
		if (consumer->operand[j] != producer->result[0])
			continue;
		if (found >= 0)
			return -1;
		found = j;
	}
	const struct access *access = found < 0 ? NULL : &consumer->kernel->operand[found];
	return access && !access->guards && !access->offset ? found : -1;
}

static struct body epilogue_body(struct module *module, const struct op *producer,
        const struct op *consumer, int read, const int *place)
{
	const struct kernel *kernel = producer->kernel;
	struct body post = { 0 };
	int base = producer->operands;
	int value = kernel->post.count
	        ? body_rewrite(module, &post, &kernel->post, (struct body_map){ .accumulator = -1 })
	        : body_add(module, &post,
	                  (struct node){ .kind = NODE_ACCUMULATOR, .type = kernel->type });
	int *operand = ARENA_ARRAY(module->arena, int, consumer->operands);
	int *active = ARENA_ARRAY(module->arena, int, consumer->operands);
	int *index = ARENA_ARRAY(module->arena, int, consumer->kernel->loops);
	for (int j = 0; j < consumer->operands; j++) {
		operand[j] = j == read ? value
		                       : body_operand(module, &post,
		                                 type_scalar(consumer->operand[j]->type), base + j);
		active[j] = j == read ? -1 : body_active(module, &post, base + j);
	}
	for (int c = 0; c < consumer->kernel->loops; c++)
		index[c] = body_index(module, &post, place[c]);
	post.result = body_rewrite(module, &post, &consumer->kernel->update,
	        (struct body_map){ operand, active, index, -1 });
	body_remove_dead(module, &post);
	return post;
}

bool fuse_epilogue(struct module *module, struct op *producer, struct op *consumer)
{
	int read = read_operand(producer, consumer);
	int digits;
	struct kernel *kernel = producer->kernel;
	struct kernel *reader = consumer->kernel;
	int *order = ARENA_ARRAY(module->arena, int, kernel->loops);
	if (read < 0 || kernel->type != reader->type ||
	        producer->operands + consumer->operands > KERNEL_OPERANDS ||
	        !fuse_digits(module, producer, order, &digits))
		return false;
	if (!split_like(module, producer, -1, reader, reader->operand[read].stride) ||
	        !split_like(module, consumer, read, kernel, kernel->result.stride))
		return false;
	int *place = ARENA_ARRAY(module->arena, int, reader->loops);
	if (!match_loops(kernel, reader, reader->operand[read].stride, place))
		return false;
	int base = producer->operands;
	int count = base + consumer->operands;
	struct value **values = ARENA_ARRAY(module->arena, struct value *, count);
	struct access *access = ARENA_ARRAY(module->arena, struct access, count);
	for (int j = 0; j < count; j++) {
		values[j] = j < base ? producer->operand[j] : consumer->operand[j - base];
		access[j] = j < base ? kernel->operand[j]
		                     : moved(module, &reader->operand[j - base], reader->loops,
		                               place, kernel->loops);
	}
	struct kernel *merged = kernel_clone(module, kernel, base);
	merged->post = epilogue_body(module, producer, consumer, read, place);
	merged->operand = access;
	merged->result = moved(module, &reader->result, reader->loops, place, kernel->loops);
	op_set_operands(module, consumer, count, values);
	consumer->kernel = merged;
	consumer->location = producer->location;
	kernel_tidy(module, consumer);
	return true;
}
