/* Streams of a scheduled kernel: a type must have as many words, with as many lanes, as the
 * schedule reads or writes (docs/ir.md, "Ports of a kernel"). */
#include "ir/kernel.h"
#include "ir/kernel_edit.h"
#include "ir/verify.h"
#include <inttypes.h>

struct port_words {
	int64_t words, lanes;
};

/* Is loop l unrolled inside a word: the lane loop, or the row loop before it? The rows of a
 * register tile leave one after the other. */
static bool is_unrolled(const struct kernel *kernel, const struct access *access, int l)
{
	bool row = kernel->row_unroll > 1 && l == kernel->loops - 2;
	return (kernel->lanes > 1 && l == kernel->loops - 1) ||
	        (row && !(access == &kernel->result && kernel_is_register_tile(kernel)));
}

/* Counts the words of the sequential loops, down to the innermost one that the access depends on.
 * parallel: without reduction loops, for the result and for operands that only post reads. */
static struct port_words port_of(
        const struct kernel *kernel, const struct access *access, bool parallel)
{
	struct port_words port = { 1, 1 };
	int64_t words = 1;
	for (int l = 0; l < kernel->loops; l++) {
		if (is_unrolled(kernel, access, l)) {
			port.lanes *= access->stride[l] ? kernel->loop[l].extent : 1;
			continue;
		}
		if (parallel && kernel->loop[l].reduction)
			continue;
		if (__builtin_mul_overflow(words, access_extent(kernel, access, l), &words))
			words = INT64_MAX;
		if (access->stride[l] && access_extent(kernel, access, l) > 1)
			port.words = words;
	}
	return port;
}

static void check_port(struct verifier *verifier, const struct op *op, const struct type *stream,
        struct port_words port, int operand)
{
	int64_t words = itensor_tiles(stream->itensor);
	int64_t lanes = stream_lanes(stream);
	const char *which = operand < 0 ? "result" : "operand";
	if (words != port.words || lanes != port.lanes)
		verify_fail(verifier, op,
		        "%s %d: the schedule has %" PRId64 " words of %" PRId64 ", and %s %" PRId64
		        " of %" PRId64,
		        which, operand < 0 ? 0 : operand, port.words, port.lanes, stream->text,
		        words, lanes);
}

void verify_ports(struct verifier *verifier, const struct op *op)
{
	const struct kernel *kernel = op->kernel;
	if (!kernel || !kernel->scheduled)
		return;
	for (int j = 0; j < op->operands; j++)
		if (op->operand[j]->type->kind == TYPE_ITENSOR)
			check_port(verifier, op, op->operand[j]->type,
			        port_of(kernel, &kernel->operand[j],
			                kernel_is_post_operand(kernel, j)),
			        j);
	if (op->result[0]->type->kind == TYPE_ITENSOR)
		check_port(verifier, op, op->result[0]->type,
		        port_of(kernel, &kernel->result, !kernel->scan), -1);
}
