/* Emits reads and writes of FIFOs.  A word wider than a FIFO may be is split into halves, which
 * travel through two FIFOs. Both halves of an odd number of lanes have the middle one. */
#include "emit/hls.h"

/* The type of half a word; NULL: the word fits into one FIFO. */
static const struct type *half_of(struct emitter *e, const struct type *word)
{
	int64_t half = (type_lanes(word) + 1) / 2;
	if (type_bits(word) <= FIFO_BITS)
		return NULL;
	return type_shaped(e->module, TYPE_VECTOR, 1, &half, type_scalar(word));
}

const char *hls_channel_half(struct emitter *e, const struct type *channel, const char *name)
{
	if (channel->kind != TYPE_FIFO || !half_of(e, channel->element))
		return NULL;
	return text_format(e->arena, "%s_high", name);
}

const char *hls_channel_type(struct emitter *e, const struct type *channel)
{
	const struct type *half = channel->kind == TYPE_FIFO ? half_of(e, channel->element) : NULL;
	return hls_type(e, half ? half : channel->element);
}

const char *hls_channel_names(struct emitter *e, const struct type *channel, const char *name)
{
	const char *high = hls_channel_half(e, channel, name);
	return high ? text_format(e->arena, "%s, %s", name, high) : name;
}

/* The first lane of the high half. */
static long long high_lane(const struct type *word, const struct type *half)
{
	return (long long)(type_lanes(word) - type_lanes(half));
}

/* Helper functions that join and split a word, once for each type of word. */
static void add_helpers(
        struct emitter *e, const struct op *op, const struct type *word, const struct type *half)
{
	const char *whole = hls_type(e, word);
	const char *part = hls_type(e, half);
	long long lanes = (long long)type_lanes(half);
	char *name = text_format(e->arena, "joined_%s", whole);
	struct text *out = &e->helpers;
	if (map_get(&e->made, name))
		return;
	map_set(&e->made, name, (void *)(uintptr_t)op);
	text_add(out,
	        "static %s %s(const %s &low, const %s &high)\n{\n#pragma HLS inline\n\t%s "
	        "y;\n\tfor (int l = 0; l < %lld; l++) {\n#pragma HLS unroll\n\t\ty[l] = "
	        "low[l];\n\t\ty[l + %lld] = high[l];\n\t}\n\treturn y;\n}\n\n",
	        whole, name, part, part, whole, lanes, high_lane(word, half));
	text_add(out,
	        "static %s half_%s(const %s &x, int first)\n{\n#pragma HLS inline\n\t%s y;\n\tfor "
	        "(int l = 0; l < %lld; l++) {\n#pragma HLS unroll\n\t\ty[l] = x[first + "
	        "l];\n\t}\n\treturn y;\n}\n\n",
	        part, whole, whole, part, lanes);
}

const char *hls_read(struct emitter *e, const struct op *take)
{
	const struct type *word = take->result[0]->type;
	const struct type *half = half_of(e, word);
	const char *fifo = hls_spelling(e, take->operand[1])->text;
	const char *type = hls_type(e, word);
	if (!half)
		return text_format(e->arena, "%s.read()", fifo);
	add_helpers(e, take, word, half);
	return text_format(e->arena, "joined_%s(%s.read(), %s_high.read())", type, fifo, fifo);
}

void hls_write(struct emitter *e, const struct op *push, const char *when)
{
	const struct type *word = push->operand[1]->type;
	const struct type *half = half_of(e, word);
	const char *fifo = hls_spelling(e, push->operand[2])->text;
	const char *value = hls_word(e, push->operand[1]);
	const char *type = hls_type(e, word);
	if (!half) {
		hls_line(e, "%s%s.write(%s);", when, fifo, value);
		return;
	}
	add_helpers(e, push, word, half);
	hls_line(e, "%s%s.write(half_%s(%s, 0));", when, fifo, type, value);
	hls_line(e, "%s%s_high.write(half_%s(%s, %lld));", when, fifo, type, value,
	        high_lane(word, half));
}
