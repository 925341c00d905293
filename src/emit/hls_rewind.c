/* Emits a rewinding process, whose pipeline does not drain between loop nests.  The HLS compiler
 * drains a loop's pipeline before the next loop begins, so all nests become one loop.
 * Before: nest A; nest B; nest A ...                                  (in one function)
 * After:  p_nests: writes the numbers of each nest to a FIFO
 *         p:       while (more) { at the end of a nest read the next one; one iteration of A or B }
 * The pipeline flushes (style flp) while it waits for the first word of the next nest. */
#include "emit/hls.h"
#include "platform/index_range.h"
#include "predict/timing.h"

#define NEST_QUEUE_DEPTH 4 /* nests in the FIFO */

struct rewinding *hls_rewind_new(
        struct emitter *e, struct names *names, const struct op *process, const char *function)
{
	struct rewinding *own = ARENA_NEW(e->arena, struct rewinding);
	own->function = function;
	own->counts = names_add(names, "", text_format(e->arena, "%s_nests", function));
	own->entry = names_add(names, "", text_format(e->arena, "%s_nest", function));
	own->queue = names_add(names, "s_",
	        text_format(e->arena, "%s_nests", attr_text_or(process, KEY_SYM_NAME, "")));
	own->arrays = text_new(e->arena);
	own->inside = ARENA_ARRAY(e->arena, bool, process->region[0]->arguments + 1);
	return own;
}

/* --- a nest as an entry of the FIFO: its datapath, and the numbers of all datapaths, which are 0
 * for the others */

static size_t columns_before(const struct emitter *e, int mark)
{
	size_t columns = 0;
	for (int m = 0; m < mark; m++)
		columns += e->datapath[m].columns.list.count;
	return columns;
}

static const char *type_of(const struct nest_column *column, size_t nests)
{
	int most = 0;
	for (size_t n = 0; n < nests; n++) {
		int bits = index_bits(column->number[n]) + !index_is_below_zero(column->number[n]);
		most = bits > most ? bits : most;
	}
	if (most <= 8)
		return "int8_t";
	return most <= 16 ? "int16_t" : "int";
}

static void add_entry_type(struct emitter *e, const struct rewinding *own)
{
	size_t number = 0;
	text_add(e->out, "struct %s {\n\tint8_t path;\n", own->entry);
	for (int mark = 0; mark < NEST_DATAPATHS_MOST; mark++)
		for (size_t c = 0; c < e->datapath[mark].columns.list.count; c++)
			text_add(e->out, "\t%s n%zu;\n",
			        type_of(&e->datapath[mark].columns.list.data[c],
			                e->datapath[mark].nests.count),
			        number++);
	text_add(e->out, "};\n\n");
}

/* Entry of nest `nest` of datapath `mark`; mark -1: the end of the launch. */
static const char *entry_of(struct emitter *e, int mark, size_t nest)
{
	struct text text = text_new(e->arena);
	text_add(&text, "%s{%d", e->rewinding->entry, mark);
	for (int m = 0; m < NEST_DATAPATHS_MOST; m++)
		for (size_t c = 0; c < e->datapath[m].columns.list.count; c++) {
			const struct datapath *path = &e->datapath[m];
			const struct value *number =
			        m == mark ? path->columns.list.data[c].number[nest] : NULL;
			text_add(&text, ", ");
			if (number && number->def->code != OP_CONSTANT)
				text_add(&text, "(%s)",
				        type_of(&path->columns.list.data[c], path->nests.count));
			text_add(&text, "%s",
			        number ? hls_bracket(e->arena, hls_spelling(e, number)) : "0");
		}
	text_add(&text, "}");
	return text.data;
}

/* `if (…) ` where a run-time trip count of the nest may be 0, else "". */
static const char *where_any(struct emitter *e, struct op *nest)
{
	struct op *loop[NEST_MOST];
	struct text text = text_new(e->arena);
	for (int l = 0, loops = hls_nest(nest, loop); l < loops; l++)
		if (loop[l]->operand[1]->def->code != OP_CONSTANT)
			text_add(&text, "%s%s > 0", text.size ? " && " : "",
			        hls_bracket(e->arena, hls_spelling(e, loop[l]->operand[1])));
	return text.size ? text_format(e->arena, "if (%s) ", text.data) : "";
}

void hls_rewind_nest(struct emitter *e, struct op *nest)
{
	struct op *loop[NEST_MOST];
	int mark = nest_datapath(nest);
	int loops = hls_nest(nest, loop);
	if (!attr_get(loop[loops - 1], KEY_STREAM_PIPELINE))
		hls_fail(e, nest, "is not one pipeline, in a process with stream.rewind");
	hls_line(e, "%s%s.write(%s);", where_any(e, nest), e->rewinding->nests,
	        entry_of(e, mark, hls_datapath_place(&e->datapath[mark], nest)));
}

/* --- the loop */

static void bind_numbers(struct emitter *e, const char *nest, int mark)
{
	const struct nest_columns *columns = &e->datapath[mark].columns;
	for (size_t i = 0; i < columns->parameters.count; i++) {
		size_t column =
		        columns_before(e, mark) + (size_t)columns->parameters.data[i].column;
		hls_bind(e, columns->parameters.data[i].value,
		        (struct spelling){ .text = text_format(e->arena, "%s.n%zu", nest, column),
		                .atomic = true });
	}
}

/* Iterations of all nests at the largest run-time extents. */
static int64_t iterations_of(const struct block *block)
{
	int64_t sum = 0;
	for (const struct op *op = block->first; op; op = op->next)
		if (op->code == OP_FOR)
			sum += timing_most_trips(op) *
			        (attr_get(op, KEY_STREAM_PIPELINE) ? 1
			                                           : iterations_of(op->region[0]));
	return sum;
}

/* The counters of the nests of a datapath, whose trip counts are numbers of the nest. */
static struct counters counters_of(struct emitter *e, const char *nest, int mark)
{
	const struct datapath *path = &e->datapath[mark];
	struct counters counters = hls_counters(e, path->nests.data[0], path, true);
	bind_numbers(e, nest, mark);
	for (int l = 0; l < counters.loops; l++)
		counters.trips[l] = hls_spelling(e, counters.loop[l]->operand[1])->text;
	return counters;
}

static void add_nests(
        struct emitter *e, const char *nest, const struct counters *counters, const char *over)
{
	const char *otherwise = "";
	for (int mark = 0; mark < NEST_DATAPATHS_MOST; mark++) {
		if (!e->datapath[mark].nests.count)
			continue;
		bind_numbers(e, nest, mark);
		hls_line(e, "%sif (%s.path == %d) {", otherwise, nest, mark);
		e->indent++;
		hls_iteration(e, &counters[mark], over);
		e->indent--;
		otherwise = "} else ";
	}
	hls_line(e, "}");
}

/* The next nest begins. */
static void add_beginning(
        struct emitter *e, const char *nest, const char *next, const struct counters *counters)
{
	hls_line(e, "%s = %s;", nest, next);
	hls_line(e, "if (%s.path >= 0) %s = %s.read();", nest, next, e->rewinding->nests);
	for (int mark = 0; mark < NEST_DATAPATHS_MOST; mark++)
		if (e->datapath[mark].nests.count)
			hls_counters_begin(e, &counters[mark]);
}

/* The numbers of the next nest are read ahead into registers, so that no comparison of an iteration
 * waits for the FIFO. */
static void add_loop(struct emitter *e)
{
	const char *nest = names_add(&e->names, "", "nest");
	const char *next = names_add(&e->names, "", "next");
	const char *begins = names_add(&e->names, "", "begins");
	const char *more = names_add(&e->names, "", "more");
	struct counters counters[NEST_DATAPATHS_MOST];
	hls_line(e, "%s %s = %s.read();", e->rewinding->entry, next, e->rewinding->nests);
	hls_line(e, "%s %s = %s;", e->rewinding->entry, nest, next);
	hls_line(e, "bool %s = true;", begins);
	hls_line(e, "bool %s = true;", more);
	for (int mark = 0; mark < NEST_DATAPATHS_MOST; mark++)
		if (e->datapath[mark].nests.count) {
			counters[mark] = counters_of(e, nest, mark);
			hls_counters_declare(e, &counters[mark], &e->body, "\t");
		}
	hls_line(e, "while (%s) {", more);
	text_add(&e->body,
	        "#pragma HLS loop_tripcount max=%lld\n#pragma HLS pipeline II=1 style=flp\n",
	        (long long)iterations_of(e->process->region[0]) + 1);
	for (int mark = 0; mark < NEST_DATAPATHS_MOST; mark++)
		hls_distances(e, &e->datapath[mark]);
	e->indent++;
	hls_line(e, "if (%s) {", begins);
	e->indent++;
	add_beginning(e, nest, next, counters);
	e->indent--;
	hls_line(e, "}");
	hls_line(e, "%s = false;", begins);
	hls_line(e, "%s = %s.path >= 0;", more, nest);
	add_nests(e, nest, counters, text_format(e->arena, "%s = true;", begins));
	e->indent--;
	hls_line(e, "}");
}

/* --- both functions */

static void note_inside(struct emitter *e)
{
	for (int mark = 0; mark < NEST_DATAPATHS_MOST; mark++) {
		struct datapath *path = &e->datapath[mark];
		hls_datapath_uses(e, path);
		for (size_t i = 0; i < path->used.list.count; i++)
			if (!path->used.list.data[i]->def)
				e->rewinding->inside[path->used.list.data[i]->index] = true;
	}
}

static void add_function(
        struct emitter *e, const char *name, bool inside, const struct text *arrays)
{
	const struct block *body = e->process->region[0];
	const struct rewinding *own = e->rewinding;
	struct text head = text_new(e->arena);
	for (int i = 0; i < body->arguments; i++)
		if (own->inside[i] == inside)
			text_add(&head, "%s, ",
			        hls_parameter(e, i, hls_spelling(e, body->argument[i])->text));
	text_add(e->out, "static void %s(%shls::stream<%s> &%s)\n{\n#pragma HLS inline off\n", name,
	        head.data ? head.data : "", own->entry, own->nests);
	const struct text *parts[] = { arrays, &e->registers, &e->body };
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		text_add_bytes(e->out, parts[i]->data ? parts[i]->data : "", parts[i]->size);
	text_add(e->out, "}\n\n");
	e->body = text_new(e->arena);
	e->registers = text_new(e->arena);
}

void hls_rewind(struct emitter *e)
{
	const struct text none = text_new(e->arena);
	struct rewinding *own = e->rewinding;
	own->nests = names_add(&e->names, "", "nests");
	note_inside(e);
	add_entry_type(e, own);
	hls_block(e, e->process->region[0]);
	hls_line(e, "%s.write(%s);", own->nests, entry_of(e, -1, 0));
	add_function(e, own->counts, false, &none);
	add_loop(e);
	add_function(e, own->function, true, &own->arrays);
}

/* --- as a part of the dataflow region */

void hls_rewind_queue(const struct rewinding *own, struct text *out)
{
	text_add(out, "\thls::stream<%s, %d> %s(\"%s\");\n", own->entry, NEST_QUEUE_DEPTH,
	        own->queue, own->queue);
}

void hls_rewind_call(
        struct emitter *e, const struct rewinding *own, const struct op *call, struct text *out)
{
	for (int inside = 0; inside < 2; inside++) {
		text_add(out, "\tST_PROCESS(%s", inside ? own->function : own->counts);
		for (int i = 0; i < call->operands; i++)
			if (own->inside[i] == (bool)inside)
				text_add(out, ", %s",
				        hls_channel_names(e, call->operand[i]->type,
				                hls_spelling(e, call->operand[i])->text));
		text_add(out, ", %s);\n", own->queue);
	}
}
