/* Pipelined loops of sequential nests. The loop drains before the one around it goes on, so it is
 * not flattened, and its dependences are those between its own iterations. */
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

/* --- two loops as one pipeline where the inner one's trips follow from the outer one's counter
 * Before: for row: for at < trips(row): body
 * After:  one loop, in which the trips of the next row are computed while this one runs, and come
 *         some iterations later: a row has so many at least, and the first one is preceded by as
 *         many. So no iteration waits for the computation. */

struct row_names {
	const char *rows, *row, *at, *trips, *before, *last, *ahead, *queue, *next, *over;
};

static struct row_names names_of(struct emitter *e)
{
	return (struct row_names){
		.rows = names_add(&e->names, "", "rows"),
		.row = names_add(&e->names, "", "row"),
		.at = names_add(&e->names, "", "at"),
		.trips = names_add(&e->names, "", "trips"),
		.before = names_add(&e->names, "", "before"),
		.last = names_add(&e->names, "", "last"),
		.ahead = names_add(&e->names, "", "ahead"),
		.queue = names_add(&e->names, "", "queue"),
		.next = names_add(&e->names, "", "next"),
		.over = names_add(&e->names, "", "over"),
	};
}

static void declare(struct emitter *e, const struct row_names *n, const struct op *outer)
{
	hls_line(e, "const int %s = %s;", n->rows, hls_spelling(e, outer->operand[1])->text);
	hls_line(e, "int %s = -1, %s = 0, %s = 0, %s = 0;", n->row, n->at, n->trips, n->ahead);
	hls_line(e, "int %s = %d;", n->before, SEQUENTIAL_ROW - 2);
	hls_line(e, "bool %s = false;", n->last);
	hls_line(e, "int %s[%d] = {};", n->queue, SEQUENTIAL_ROW - 1);
	text_add(&e->body, "#pragma HLS array_partition variable=%s complete\n", n->queue);
}

/* Moves the queue on, and begins with the trips of the row ahead. */
static void look_ahead(struct emitter *e, const struct row_names *n, const struct op *outer,
        const struct op *inner)
{
	struct value *counter = outer->region[0]->argument[0];
	hls_line(e, "const int %s = %s[%d];", n->next, n->queue, SEQUENTIAL_ROW - 2);
	hls_line(e, "for (int i = %d; i > 0; i--)", SEQUENTIAL_ROW - 2);
	text_add(&e->body, "#pragma HLS unroll\n");
	hls_line(e, "\t%s[i] = %s[i - 1];", n->queue, n->queue);
	hls_line(e, "{");
	e->indent++;
	hls_bind(e, counter, (struct spelling){ .text = n->ahead, .atomic = true });
	hls_body_around(e, outer, inner);
	hls_line(e, "%s[0] = %s;", n->queue, hls_spelling(e, inner->operand[1])->text);
	e->indent--;
	hls_line(e, "}");
}

static void count_on(struct emitter *e, const struct row_names *n)
{
	hls_line(e, "if (%s) {", n->last);
	hls_line(e, "\t%s = %s == %s;", n->over, n->ahead, n->rows);
	hls_line(e, "\t%s = %s++;", n->row, n->ahead);
	hls_line(e, "\t%s = 0;", n->at);
	hls_line(e, "\t%s = %s;", n->trips, n->next);
	hls_line(e, "\t%s = (%s > %d ? %s : %d) - 2;", n->before, n->next, SEQUENTIAL_ROW, n->next,
	        SEQUENTIAL_ROW);
	hls_line(e, "\t%s = false;", n->last);
	hls_line(e, "} else {");
	hls_line(e, "\t%s = %s == %s;", n->last, n->at, n->before);
	hls_line(e, "\t%s++;", n->at);
	hls_line(e, "}");
}

void hls_rows(struct emitter *e, struct op *outer, struct op *inner)
{
	struct row_names n = names_of(e);
	hls_flush(e);
	hls_line(e, "{");
	e->indent++;
	declare(e, &n, outer);
	hls_line(e, "for (bool %s = %s <= 0; !%s;) {", n.over, n.rows, n.over);
	hls_pipeline(e, inner);
	hls_sequential_pragmas(e, inner);
	e->indent++;
	e->depth += 2;
	look_ahead(e, &n, outer, inner);
	hls_line(e, "if (%s < %s) {", n.at, n.trips);
	e->indent++;
	hls_bind(e, outer->region[0]->argument[0],
	        (struct spelling){ .text = n.row, .atomic = true });
	hls_bind(e, inner->region[0]->argument[0],
	        (struct spelling){ .text = n.at, .atomic = true });
	hls_body_around(e, outer, inner);
	hls_block(e, inner->region[0]);
	hls_flush(e);
	e->indent--;
	hls_line(e, "}");
	count_on(e, &n);
	e->depth -= 2;
	e->indent--;
	hls_line(e, "}");
	e->indent--;
	hls_line(e, "}");
}
