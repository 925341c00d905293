/* What the work of one launch looks like to the contraction unit (stream.contract): tokens,
 * tiles, how weights and small operands reach it. */
#ifndef STC_WORKLOAD_H
#define STC_WORKLOAD_H
#include "ir/contract.h"

#define FEW_TOKENS 8 /* tokens of a launch that is shaped as decode's */

/* How the unit uses the words of weights of a memory port: so many tokens a cycle, by each of so
 * many slices that they are dealt to in turn. */
struct engine_shape {
	int tokens_per_cycle, pes_per_port;
};

/* one token of one slice where no contraction has several, or so few that nobody asked for more */
struct engine_shape engine_shape(const struct block *body);
/* tokens abreast of all slices that a port brings words for */
int engine_word_uses(struct engine_shape shape);
/* Are there contractions of a unit?  Has one several tokens, or so many that it takes them in
 * tiles? */
bool has_contraction(const struct block *block);
bool engine_has_many_tokens(const struct block *block);
/* is the kernel beside a unit of one token?  Words may be of WORD_BITS then, else of half of
 * that */
bool engine_is_single_token(const struct op *op);
/* Do small operands and results go in words as wide as a port?  They ride on an adapter of a
 * unit that decodes then, so that it has more slices; where they are little beside its weights. */
bool operands_share_weight_port(const struct op *main);
/* Do small operands alone?  So they do where many tokens are counted at run time as well, which
 * leaves a slice more for one token alone. */
bool operands_use_full_words(const struct op *main);
/* many tokens, in tiles, of which a launch may have one */
bool engine_has_run_time_tiles(const struct block *body);
bool engine_has_tiles(const struct block *block);
/* there are contractions, and none has so many: then ports side by side bring the words of a
 * state */
bool engine_takes_few_tokens(const struct block *block);
/* Of the contraction of most tokens; 0: there is none.  rows: unless NULL, set to the name of
 * the input that says how many are there, if one does. */
int64_t engine_tokens(const struct block *block, const char **token_symbol);
/* the fewest rows of an argument whose rows are counted at run time; 0: of none they are */
int64_t run_time_tokens_least(const struct op *main);
/* Of tensor level: may a launch be about one token of a few, alone or with others?  Then how
 * many a slice takes a cycle is for the driver to try: contractions have it as an attribute. */
bool counts_few_tokens(const struct op *main);
void mark_engine_shape(struct module *module, struct block *block, struct engine_shape shape);
/* where there are no more slices than that */
void mark_result_lanes(struct module *module, struct block *block, int64_t pes);
#endif
