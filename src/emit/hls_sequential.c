/* Pragmas of the pipelined loops of sequential nests. The loop drains before the one around it goes
 * on, so it is not flattened, and its dependences are those between its own iterations. */
#include "emit/hls.h"
#include "predict/sequential_time.h"

bool hls_is_sequential(const struct op *loop)
{
	while (loop->code == OP_FOR && !attr_get(loop, KEY_STREAM_CYCLES))
		loop = loop->parent->parent;
	return loop->code == OP_FOR;
}

/* The least distance of reads of an array that the loop writes; 0: it is not known for all. */
static int64_t least_distance(const struct block *body, const struct value *array)
{
	int64_t least = SEQUENTIAL_NEVER;
	for (const struct op *op = body->first; op; op = op->next) {
		int64_t distance = SEQUENTIAL_NEVER;
		if (op->code == OP_FOR)
			distance = least_distance(op->region[0], array);
		else if (op->code == OP_MEMREF_LOAD && op->operand[0] == array)
			distance = attr_integer_or(op, KEY_STREAM_DISTANCE, 0);
		least = distance < least ? distance : least;
	}
	return least;
}

/* Is the op the first one of its block that writes its array? */
static bool writes_first(const struct op *op)
{
	const struct value *array = op_accessed(op);
	if (!array || !op_writes(op, array))
		return false;
	for (const struct op *before = op->previous; before; before = before->previous)
		if (op_writes(before, array))
			return false;
	return true;
}

static void add_dependence(struct emitter *e, const struct value *array, int64_t distance)
{
	const char *name = hls_spelling(e, array)->text;
	if (distance == SEQUENTIAL_NEVER)
		text_add(&e->body,
		        "#pragma HLS dependence variable=%s type=inter direction=RAW "
		        "dependent=false\n",
		        name);
	else if (distance)
		text_add(&e->body,
		        "#pragma HLS dependence variable=%s type=inter direction=RAW "
		        "distance=%lld dependent=true\n",
		        name, (long long)distance);
}

static void add_dependences(struct emitter *e, const struct op *loop, const struct block *block)
{
	for (const struct op *op = block->first; op; op = op->next) {
		if (op->code == OP_FOR)
			add_dependences(e, loop, op->region[0]);
		else if (writes_first(op))
			add_dependence(e, op_accessed(op),
			        least_distance(loop->region[0], op_accessed(op)));
	}
}

void hls_sequential_pragmas(struct emitter *e, const struct op *loop)
{
	if (!hls_is_sequential(loop))
		return;
	text_add(&e->body, "#pragma HLS loop_flatten off\n");
	add_dependences(e, loop, loop->region[0]);
}
