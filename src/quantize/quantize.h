/* What the passes of --quant share: what a pass knows of main (struct quantizer), the form in
 * which a contraction with a weight is matched (struct contraction), and how arguments and
 * kernels are added. */
#ifndef STC_QUANTIZE_H
#define STC_QUANTIZE_H
#include "image/quantized.h"
#include "ir/kernel_edit.h"
#include "options/pass_context.h"

/* The quantized form of one activation tensor.  Contractions that read the same numbers in the
 * same order share it. */
struct activation {
	struct value *x;            /* the f32 activations */
	const struct value *factor; /* by which the scales are multiplied; NULL: none */
	const char *key;            /* text of the order in which x is read, and of its groups */
	struct value *q;            /* the int8 numbers; NULL: the form is not quantized */
	struct value *scale;
	struct value *sum; /* i32: Σ q of each group; NULL: nothing has asked for it */
};

/* A mask whose entries were reordered from the attention's keys to the rows of the cache. */
struct rotated_mask {
	struct value *from, *to;
};

struct quantizer {
	struct module *module;
	struct op *main;
	const struct quant_scheme *scheme; /* what --quant asks for */
	enum softmax_form softmax;
	bool for_engine;       /* the shared matmul engine runs contractions: one output block */
	const struct op *head; /* the last contraction: the logits */
	struct map names;      /* names of main's arguments that are taken */
	VEC(struct activation) activations;
	VEC(struct rotated_mask) rotated_masks;
	VEC(const struct attr *) attributes; /* of the arguments added to main, in order */
};

/* One loop of the reduction, a digit of its mixed-radix index: its extent, and its strides in
 * the activations x and in the weight w. */
struct digit {
	int64_t extent, x, w;
};

/* result = post(Σ x * w), w a weight. */
struct contraction {
	struct op *op;
	int x, w; /* operands */
	int bits; /* of a quantized weight */
	/* numbers of the reduction whose products are added as integers; 0: all of them */
	int64_t group;
	bool row_scale; /* one weight scale for all groups of a row */
	bool zeros;     /* numbers that share a weight scale have a zero point too */
	bool per_token; /* one activation scale for all groups of a token */
	bool grouped;   /* the engine takes a group of all tokens before the next group */
	int digits;
	struct digit *digit; /* the reduction, outermost first: [digits] */
	/* numbers of parallel loops: those that move x, and those that move w, where the loop
	 * that is contiguous in the result is last */
	int tokens, outputs;
	int *token, *output; /* loops of op: [tokens], [outputs] */
	/* a factor of the tokens that goes into the activation scales, and how the loops of op walk
	 * it; NULL: none */
	struct value *factor;
	struct access factor_access;
};

/* Begins a pass whose scheme is not NULL. false: after a diagnostic. */
bool quantizer_begin(
        struct quantizer *q, const struct pass_context *context, struct module *module);
/* Removes weights of main that nothing reads and sets the attributes of the added arguments. */
void quantizer_end(struct quantizer *q);
/* Is the value an f32 argument of main with stream.role "weight", as it was imported? */
bool is_weight(const struct quantizer *q, const struct value *value);
/* Matches a kernel as a contraction.  false: it is none with a weight. */
bool contraction_match(const struct quantizer *q, struct op *op, struct contraction *c);
/* Bits that the contraction's weight gets; 0: it stays in floating point. */
int contraction_bits(const struct quantizer *q, const struct contraction *c);
/* Is there a layer for each pattern of --quant? false: after a diagnostic. */
bool layers_are_known(const struct quantizer *q);
/* Sets bits, group and scales of the contraction as --quant says. */
void contraction_scheme(const struct quantizer *q, struct contraction *c);
/* The dim of the weight that the whole reduction covers, in one digit or in several; -1: no
 * single dim. */
int contraction_axis(const struct contraction *c);
/* Points of the contraction's token loops. */
int64_t contraction_tokens(const struct contraction *c);
/* Replaces c->op by quantized kernels.  false: nothing is changed, the form stays in floating
 * point. */
bool quantize_contraction(struct quantizer *q, struct contraction *c);
/* Can this contraction of several tokens be a job of the engine? */
bool contraction_fits_engine(const struct quantizer *q, const struct contraction *c);
/* Brings the result into the order [tokens][outputs] and what follows the sum into a kernel of
 * its own, as the engine needs it. */
void contraction_plain(struct quantizer *q, struct contraction *c);
/* Takes the factor that defer_norm_factors has marked from the epilogue of c->op into c. */
void take_deferred_factor(struct quantizer *q, struct contraction *c);
/* Widens operands in the kernel's bodies to f32: those j with half[j] are bf16. */
void widen_operands(struct module *module, struct op *op, const bool *half);
/* The reduction cut into groups: the outer digits count groups, the inner ones walk a group. */
struct grouping {
	int outer, inner;
	struct digit *digit; /* outer, then inner */
	int64_t groups, size;
};
/* false: the reduction does not fall into groups of c->group along its digits. */
bool group_digits(struct arena *arena, const struct contraction *c, struct grouping *to);
/* The quantized activations of a contraction: q is [token extents ..., groups, size of a group]
 * and scale has the same shape without the last dim.  A reduction that does not fall into groups
 * is copied to one that does, padded with zeros.  q NULL: the form is not quantized. */
struct activation activation_of(struct quantizer *q, const struct contraction *c);
/* The sums of the groups of quantized activations, i32 [token extents ..., groups], once for all
 * contractions that read these. */
struct value *activation_sums(
        struct quantizer *q, const struct contraction *c, const struct activation *x);

/* Bodies of a scale kernel: max |x| over the reduction, divided by `most`.  ones: 1 where that
 * is 0, so that it can be divided by. */
void quantize_scale(struct module *module, struct kernel *kernel, double most, bool ones);
/* Body of a rounding kernel: operand 0 over operand 1, of type `scale`, as an integer within
 * +-limit. */
void quantize_round(
        struct module *module, struct kernel *kernel, const struct type *scale, int limit);

/* How an argument is made from a weight of main: to begin with all of it in its own order,
 * without runs. */
struct quantized from_weight(const struct quantizer *q, const struct value *weight);
/* Adds an argument to main, named after the source of `from` and the suffix. */
struct value *add_weight(struct quantizer *q, const struct quantized *from, const char *suffix,
        const struct type *type);
/* A kernel to be made; loops, strides and bodies are set afterwards. */
struct kernel_spec {
	struct op *at; /* it is inserted before this operation */
	/* it is called NAME_SUFFIX; name NULL: the name of the kernel `at` */
	const char *name, *suffix;
	int loops;
	int operands;
	struct value *const *operand;
	const struct type *result;
};
struct op *quantize_kernel(struct quantizer *q, const struct kernel_spec *spec);
#endif
