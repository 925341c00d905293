/* What the files of quantise share. */
#ifndef STC_QUANTISE_H
#define STC_QUANTISE_H
#include "image/quantized.h"
#include "ir/kernel_edit.h"
#include "options/pass_context.h"

/* Numbers that a group of quantised activations was made from: kernels that read the same ones
 * share it. */
struct activation {
	struct value *x;
	const char *key; /* how it is walked */
	struct value *q, *scale;
};

/* of numbers of several tokens, which their scales have in place of the numbers */
struct deferred_factor {
	const struct value *x; /* without it */
	struct value *by;
	const struct kernel *from; /* the kernel that multiplied by it */
	int operand;               /* of that */
};

struct rotated_mask { /* a mask whose numbers are in the order of a state */
	struct value *from, *to;
};

struct quantizer {
	struct module *module;
	struct op *main;
	const struct quant_scheme *scheme;
	enum softmax_form softmax;
	bool for_engine;       /* contractions are for a unit: all outputs are one block */
	const struct op *head; /* the last contraction */
	struct map names;      /* of arguments */
	VEC(struct activation) activations;
	VEC(struct deferred_factor) deferred_factors;
	VEC(struct rotated_mask) rotated_masks;
	VEC(const struct attr *) attributes; /* of arguments that were added */
	int made;                            /* kernels that were replaced */
};

/* One loop of the reduction, as both sides walk it. */
struct digit {
	int64_t extent, x, w;
};

/* result = post(Σ x * w): a weight, and what it is multiplied by. */
struct contraction {
	struct op *op;
	int x, w; /* operands */
	int bits;
	int64_t group;  /* numbers of the reduction that are added as integers; 0: all */
	bool row_scale; /* one weight scale for all of them */
	bool per_token; /* one activation scale for all of them */
	bool grouped;   /* a unit takes a group of all tokens after another */
	int digits;     /* the reduction, outermost first: [digits] */
	struct digit *digit;
	/* parallel loops that x walks; that w walks, the one that is contiguous in the result
	 * last */
	int tokens, outputs;
	int *token, *output;
};

bool is_weight(const struct quantizer *q, const struct value *value);
/* false: not a contraction with a weight. */
bool contraction_match(const struct quantizer *q, struct op *op, struct contraction *c);
/* Of the weight that the contraction would have; 0: it is left as it is. */
int contraction_bits(const struct quantizer *q, const struct op *op);
/* Bits, group and scales as --quant says. */
void contraction_scheme(const struct quantizer *q, struct contraction *c);
/* The dim of the weight that the reduction runs along, in one digit or in several that count it;
 * -1: along none alone. */
int contraction_axis(const struct contraction *c);
int64_t contraction_tokens(const struct contraction *c);
/* In place of c->op; false, and nothing is changed: it has a form that is left in floating
 * point. */
bool quantize_contraction(struct quantizer *q, struct contraction *c);
/* May it be a phase of a unit, for several tokens?  Then its result is brought into the order of
 * [tokens][outputs], and what follows the sum becomes a kernel of its own. */
bool contraction_fits_engine(const struct quantizer *q, const struct contraction *c);
void contraction_plain(struct quantizer *q, struct contraction *c);
/* A bias of what only contractions with a bias read becomes a part of theirs. */
void fold_norm_biases(struct quantizer *q);
/* Factors of what contractions read that are the same for all that they add up go behind the
 * sums of one token, or into the scales of several. */
void defer_norm_factors(struct quantizer *q);
void quantize_weights_bf16(struct quantizer *q);
/* The kernel's bodies read operands of bf16, where half[j], as the f32 that they stand for. */
void widen_operands(struct module *module, struct op *op, const bool *half);
/* Keys and values: as bytes; as bf16. */
void quantize_kv_cache(struct quantizer *q);
void quantize_kv_cache_bf16(struct quantizer *q);
bool quantize_embeddings(struct quantizer *q, struct op *op);
/* Does the reduction fall into runs of c->group along its digits?  Then the outer digits count
 * groups and the inner ones walk a group. */
struct grouping {
	int outer, inner;
	struct digit *digit; /* outer, then inner */
	int64_t groups, size;
};
bool group_digits(struct arena *arena, const struct contraction *c, struct grouping *to);
/* The quantised activations of a contraction, [token extents …, groups, size of a group], and
 * their scales, without the last dim.  .q NULL: it has a form that is not quantised.  A
 * reduction that does not fall into groups is copied to one that does, filled up with zeros. */
struct activation activation_of(struct quantizer *q, const struct contraction *c);

/* max |x| over the reduction, divided by `most`; ones: 1 where that is 0. */
void quantize_scale(struct module *module, struct kernel *kernel, double most, bool ones);
/* Operand 0 over operand 1, which is of type `scale`, as an integer within +-limit. */
void quantize_round(
        struct module *module, struct kernel *kernel, const struct type *scale, int limit);

/* Made from a weight of main: all of it in its own order, no runs. */
struct quantized from_weight(const struct quantizer *q, const struct value *weight);
struct value *add_weight(struct quantizer *q, const struct quantized *from, const char *suffix,
        const struct type *type);
/* A kernel before `at`. */
struct op *quantize_kernel(struct quantizer *q, struct op *at, const char *name, const char *suffix,
        int loops, int operands, struct value *const *operand, const struct type *result);
void finish_arguments(struct quantizer *q);
#endif
