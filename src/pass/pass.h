/* What every pass is given.  A pass is one file with one public function of its name; the table is in driver/passes.c. */
#ifndef STC_PASS_H
#define STC_PASS_H
#include "ir/ir.h"
#include "ir/kernel.h"
#include "model/platform.h"
#include "ir/dot.h"
#include "pass/choices.h"

/* What --quant asks for; bits 0: left in floating point. */
struct quant_scheme {
	const char *text;         /* as given */
	int weight, head;         /* bits of contractions' weights; of the last one's */
	int embedding;            /* bits of gathered rows */
	int64_t group;            /* numbers of a reduction that share a weight's scale; 0: all */
	bool per_token;           /* activations: one scale for each token rather than each group */
	int state;                /* bits of keys and values; 16: bf16 */
	int64_t lead;             /* rows in front of the past ones in a state of bytes; 0: as many as a launch makes */
	bool half;                /* matrices and tables are kept as bf16 */
};

enum contractions { CONTRACTIONS_SHARED, CONTRACTIONS_SPATIAL, CONTRACTIONS };
extern const char *const contractions_name[CONTRACTIONS];

enum softmax_form { SOFTMAX_AUTO, SOFTMAX_RUNNING, SOFTMAX_WHOLE, SOFTMAXES };
extern const char *const softmax_name[SOFTMAXES];
enum ends_pace { ENDS_SEARCHED, ENDS_QUICK, ENDS_PACES };
extern const char *const ends_name[ENDS_PACES];

#define UNIT_STEP 2           /* a contraction unit has a multiple of this as slices, which share multipliers in pairs, */
#define UNIT_LEAST 4          /* and at least so many */
#define UNIT_FEW 8            /* tokens of a launch that is shaped as decode's */
#define UNIT_NUMBER_BITS 8    /* of a number that is multiplied with the weights */
#define UNIT_WORD_BITS 512    /* in it, a group of weights is a word of a memory port */

enum fifo_strategy { FIFO_STRATEGY_TRIM, FIFO_STRATEGY_LEAST, FIFO_STRATEGY_LP, FIFO_STRATEGY_NORMAL, FIFO_STRATEGY_CONSERVATIVE, FIFO_STRATEGY_SAFE, FIFO_STRATEGIES };
extern const char *const fifo_strategy_name[FIFO_STRATEGIES];

struct pass_context {
	const struct platform *platform;
	struct choices choices;   /* the point of the design space */
	struct resources limit;   /* where limited: what the design may take */
	bool limited;
	int64_t least_on_chip;    /* out: the least budget with which fusion would succeed; 0: it did */
	int64_t held, least_held; /* out: bytes that fusion counts against the budget, and what they would be with every edge cut that can be */
	struct resources taken;   /* out, of allocate_memory: what the design takes, even if it is more than there is */
	int excess_ports;         /* out: memory ports that the design needs and the platform lacks */
	int few_slices;           /* out: slices' ports that are left, where words of a unit's results have more numbers than there are slices; 0: they have not */
	const struct quant_scheme *quant;         /* NULL: none */
	int64_t fifo_events;      /* iterations that may be simulated to size FIFOs; 0: the default */
	struct map *widths;       /* weight's name → struct fixed_width * of the kernel that reads it through ports of its own: another phase's where `follows`, else to be filled in; NULL: neither */
	bool follows;
	struct map *answers;      /* of searches over widths and loop orders (answers.h), kept from one design to the next that is tried; NULL: they are not */
	struct text *lp;          /* where the text of their linear program goes; NULL: nowhere */
	bool dumped;              /* the module was read with streams in it: somebody may have changed what passes had made */
};

/* Does the point ask for a contraction unit, and has the platform enough ports for one? */
bool has_unit(const struct pass_context *context);
/* What multipliers of the unit make with weights of so many bits, of tokens abreast: as many slices share one as it takes weights. */
struct dot unit_dot(const struct pass_context *context, int bits, int abreast);
/* How the unit uses the words of weights of a memory port: so many tokens a cycle, by each of so many slices that they are dealt to in turn. */
struct unit_shape {
	int abreast, dealt;
};

struct unit_shape unit_shape(const struct block *body);       /* one token of one slice where no contraction has several, or so few that nobody asked for more */
int unit_uses(struct unit_shape shape);       /* tokens abreast of all slices that a port brings words for */
/* Of the slices of a port, with so many uses of a word: words of products of weights of so many bits, and what scales and adds them. */
int64_t slice_dsp(const struct pass_context *context, struct module *module, int bits, int uses);
/* The same with their loader, about. */
int64_t slice_lut(const struct pass_context *context, struct module *module, int bits, int uses);
/* Ports that bring weights are a multiple of it. */
int unit_step(int uses, bool counted);
/* As many of these as there are ports, as the point allows, as a quarter of the LUTs is enough for and as the memory die has DSPs for; half of the wires between dies may bring weights to some more. */
int ports_within(const struct pass_context *context, struct module *module, int bits, int uses, bool counted, int ports);
/* Are there contractions of a unit?  Has one several tokens, or so many that it takes them in tiles? */
bool has_contraction(const struct block *block);
bool unit_has_tokens(const struct block *block);
bool unit_is_alone(const struct op *op);      /* is the kernel beside a unit of one token?  Words may be of WORD_BITS then, else of half of that */
/* Do small operands and results go in words as wide as a port?  They ride on an adapter of a unit that decodes then, so that it has more slices; where they are little beside its weights. */
bool words_ride(const struct op *main);
/* Do small operands alone?  So they do where many tokens are counted at run time as well, which leaves a slice more for one token alone. */
bool words_are_full(const struct op *main);
bool unit_counts_tiles(const struct block *body);      /* many tokens, in tiles, of which a launch may have one */
/* Can the channel of small operands, which has `beside` to bring, bring as much more while a channel brings a layer's part of the weights? */
bool channel_has_time(int64_t unit, int64_t beside, int64_t more);
bool unit_has_tiles(const struct block *block);
bool unit_takes_few(const struct block *block);        /* there are contractions, and none has so many: then ports side by side bring the words of a state */
/* Of the contraction of most tokens; 0: there is none.  rows: unless NULL, set to the name of the input that says how many are there, if one does. */
int64_t unit_tokens(const struct block *block, const char **rows);
int64_t rows_counted(const struct op *main);           /* the fewest rows of an argument whose rows are counted at run time; 0: of none they are */
/* Of tensor level: may a launch be about one token of a few, alone or with others?  Then how many a slice takes a cycle is for the driver to try: contractions have it as an attribute. */
bool counts_few(const struct op *main);
void mark_shape(struct module *module, struct block *block, struct unit_shape shape);
void mark_lanes(struct module *module, struct block *block, int64_t slices);      /* where there are no more slices than that */
/* Does a phase do the rows of a slice in one block, so that no group is needed twice?  words: cycles that a tile of its tokens takes. */
bool unit_block_once(double rows, int64_t groups, double words);

/* Each returns false after diagnostics about the input (module->diag); broken invariants leave by module->guard. */
bool name_arguments(struct pass_context *context, struct module *module);
bool fold_views(struct pass_context *context, struct module *module);
bool count_unfused(struct pass_context *context, struct module *module);
bool demote_f64(struct pass_context *context, struct module *module);
bool merge_common(struct pass_context *context, struct module *module);
bool fuse_elementwise(struct pass_context *context, struct module *module);
bool fold_sigmoids(struct pass_context *context, struct module *module);
bool split_sliced(struct pass_context *context, struct module *module);
bool fuse_largest(struct pass_context *context, struct module *module);
bool bind_extents(struct pass_context *context, struct module *module);
bool quantise(struct pass_context *context, struct module *module);
bool roll_layers(struct pass_context *context, struct module *module);
bool count_fused(struct pass_context *context, struct module *module);
bool sink_quotients(struct pass_context *context, struct module *module);
bool carry_maxima(struct pass_context *context, struct module *module);
bool split_gathers(struct pass_context *context, struct module *module);
bool split_posts(struct pass_context *context, struct module *module);
bool share_units(struct pass_context *context, struct module *module);
bool bind_rows(struct pass_context *context, struct module *module);
bool tile_tokens(struct pass_context *context, struct module *module);
bool hide_later(struct pass_context *context, struct module *module);
bool sink_picks(struct pass_context *context, struct module *module);
bool group_tokens(struct pass_context *context, struct module *module);
bool split_states(struct pass_context *context, struct module *module);
bool interleave_parts(struct pass_context *context, struct module *module);
bool make_streams(struct pass_context *context, struct module *module);
bool fuse_streams(struct pass_context *context, struct module *module);
bool mark_final(struct pass_context *context, struct module *module);
bool make_processes(struct pass_context *context, struct module *module);
bool size_fifos(struct pass_context *context, struct module *module);
bool allocate_memory(struct pass_context *context, struct module *module);
bool place_dies(struct pass_context *context, struct module *module);
#endif
