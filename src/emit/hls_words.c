/* Emits reads and writes of FIFOs. A word wider than a FIFO may be is split into equal parts, which
 * travel through as many FIFOs. Where the lanes are no multiple, the last part begins with lanes
 * that the one before it has, too. */
#include "base/number.h"
#include "emit/hls.h"

/* FIFOs in which the words of a channel travel. */
static int parts_of(const struct type *word)
{
	return (int)ceil_div(type_bits(word), FIFO_BITS);
}

/* The type of a part of a word. */
static const struct type *part_of(struct emitter *e, const struct type *word)
{
	int64_t lanes = ceil_div(type_lanes(word), parts_of(word));
	return parts_of(word) < 2
	        ? word
	        : type_shaped(e->module, TYPE_VECTOR, 1, &lanes, type_scalar(word));
}

/* The lane of a word with which a part begins. */
static long long first_lane(const struct type *word, const struct type *part, int number)
{
	int64_t first = number * type_lanes(part);
	int64_t last = type_lanes(word) - type_lanes(part);
	return (long long)(first < last ? first : last);
}

/* The name of a part of what has this name. */
static const char *part_name(struct emitter *e, const char *name, int number)
{
	if (!number)
		return name;
	return number == 1 ? text_format(e->arena, "%s_high", name)
	                   : text_format(e->arena, "%s_high%d", name, number);
}

const char *hls_channel_part(
        struct emitter *e, const struct type *channel, const char *name, int number)
{
	int parts = channel->kind == TYPE_FIFO ? parts_of(channel->element) : 1;
	return number < parts ? part_name(e, name, number) : NULL;
}

const char *hls_channel_type(struct emitter *e, const struct type *channel)
{
	return hls_type(
	        e, channel->kind == TYPE_FIFO ? part_of(e, channel->element) : channel->element);
}

const char *hls_channel_names(struct emitter *e, const struct type *channel, const char *name)
{
	struct text names = text_new(e->arena);
	const char *own;
	for (int i = 0; (own = hls_channel_part(e, channel, name, i)); i++)
		text_add(&names, "%s%s", i ? ", " : "", own);
	return names.data;
}

/* Helper functions that join and split a word, once for each type of word. */
static void add_helpers(
        struct emitter *e, const struct op *op, const struct type *word, const struct type *part)
{
	const char *whole = hls_type(e, word);
	const char *type = hls_type(e, part);
	long long lanes = (long long)type_lanes(part);
	char *name = text_format(e->arena, "joined_%s", whole);
	struct text *out = &e->helpers;
	if (map_get(&e->made, name))
		return;
	map_set(&e->made, name, (void *)(uintptr_t)op);
	text_add(out, "static %s %s(", whole, name);
	for (int i = 0; i < parts_of(word); i++)
		text_add(out, "%sconst %s &%s", i ? ", " : "", type, part_name(e, "x", i));
	text_add(out,
	        ")\n{\n#pragma HLS inline\n\t%s y;\n\tfor (int l = 0; l < %lld; l++) {\n#pragma "
	        "HLS unroll\n",
	        whole, lanes);
	for (int i = 0; i < parts_of(word); i++)
		text_add(out, "\t\ty[l + %lld] = %s[l];\n", first_lane(word, part, i),
		        part_name(e, "x", i));
	text_add(out, "\t}\n\treturn y;\n}\n\n");
	text_add(out,
	        "static %s part_%s(const %s &x, int first)\n{\n#pragma HLS inline\n\t%s y;\n\tfor "
	        "(int l = 0; l < %lld; l++) {\n#pragma HLS unroll\n\t\ty[l] = x[first + "
	        "l];\n\t}\n\treturn y;\n}\n\n",
	        type, whole, whole, type, lanes);
}

const char *hls_read(struct emitter *e, const struct op *take)
{
	const struct type *word = take->result[0]->type;
	const char *fifo = hls_spelling(e, take->operand[1])->text;
	if (parts_of(word) < 2)
		return text_format(e->arena, "%s.read()", fifo);
	struct text reads = text_new(e->arena);
	add_helpers(e, take, word, part_of(e, word));
	for (int i = 0; i < parts_of(word); i++)
		text_add(&reads, "%s%s.read()", i ? ", " : "", part_name(e, fifo, i));
	return text_format(e->arena, "joined_%s(%s)", hls_type(e, word), reads.data);
}

void hls_write(struct emitter *e, const struct op *push, const char *when)
{
	const struct type *word = push->operand[1]->type;
	const struct type *part = part_of(e, word);
	const char *fifo = hls_spelling(e, push->operand[2])->text;
	const char *value = hls_word(e, push->operand[1]);
	const char *type = hls_type(e, word);
	if (parts_of(word) < 2) {
		hls_line(e, "%s%s.write(%s);", when, fifo, value);
		return;
	}
	add_helpers(e, push, word, part);
	for (int i = 0; i < parts_of(word); i++)
		hls_line(e, "%s%s.write(part_%s(%s, %lld));", when, part_name(e, fifo, i), type,
		        value, first_lane(word, part, i));
}
