/* What the matmul engine (stream.contract) computes in a launch, decided once and recorded as the
 * attribute stream.workload of main, and how weights and small operands reach the engine. */
#ifndef STC_WORKLOAD_H
#define STC_WORKLOAD_H
#include "ir/contract.h"

#define FEW_TOKENS 8 /* up to this many tokens a design has the form of a decode design */

enum workload {
	WORKLOAD_NONE,                 /* no contractions: there is no engine */
	WORKLOAD_DECODE,               /* one token */
	WORKLOAD_FEW_TOKENS,           /* 2 to FEW_TOKENS tokens */
	WORKLOAD_FEW_COUNTED_TOKENS,   /* the same, counted at run time */
	WORKLOAD_TILED_TOKENS,         /* more tokens, processed in tiles */
	WORKLOAD_TILED_COUNTED_TOKENS, /* the same, counted at run time */
};

/* Records the workload of main's contractions. map_contractions does, and bind_token_count when it
 * knows whether tokens are counted; no later pass changes it. */
void workload_record(struct module *module);
/* The recorded workload of the module that contains the op. */
enum workload workload_of(const struct op *op);
/* The workload by the contractions of main's body, for the verifier. */
enum workload workload_of_contractions(const struct block *body);
/* spelling in the attribute; NULL: there is no engine, nor an attribute */
const char *workload_name(enum workload workload);

static inline bool workload_has_many_tokens(enum workload workload)
{
	return workload > WORKLOAD_DECODE;
}

/* Are there contractions, of at most FEW_TOKENS tokens? */
static inline bool workload_has_few_tokens(enum workload workload)
{
	return workload > WORKLOAD_NONE && workload < WORKLOAD_TILED_TOKENS;
}

/* Does each row of a KV cache serve few tokens? So it does with few tokens, and in a batch, whose
 * sequences have a cache each and few tokens each. The cache is then most of the work: its heads
 * are partitioned, and several memory ports read it in parallel. main: at tensor level. */
bool cache_rows_serve_few_tokens(const struct op *main);
/* Does a launch take at most one token of each sequence, as decode does? main: at tensor level. */
bool sequences_take_one_token(const struct op *main);

/* How the engine uses a word of weights from a memory port: tokens per cycle of one PE, and PEs
 * that share the port by interleaving. */
struct engine_shape {
	int tokens_per_cycle, pes_per_port;
};

/* The shape of the contraction that uses a word most often; {1, 1} by default. */
struct engine_shape engine_shape(const struct block *body);
/* uses of a word per cycle by all PEs of its port */
int engine_word_uses(struct engine_shape shape);
/* Do small operands and results share the AXI bundle of a weight port, in words as wide as the
 * port? So they do in decode designs, which leaves ports for more PEs, if they are small compared
 * with the weights. */
bool operands_share_weight_port(const struct op *main);
/* Are small operands read in full-width words? So they are if they share a weight port, and also
 * with many tokens counted at run time, which leaves one more PE. */
bool operands_use_full_words(const struct op *main);
/* Maximum tokens of a contraction; 0: there is none. token_symbol: unless NULL, set to the name of
 * the input that holds the token count, if one does. */
int64_t engine_tokens(const struct block *block, const char **token_symbol);
/* fewest tokens of an argument whose tokens are counted at run time; 0: there is none */
int64_t run_time_tokens_least(const struct op *main);
/* At tensor level: is the token count a run-time value of at most FEW_TOKENS? The driver then tries
 * several tokens per cycle, an attribute of contractions. */
bool counts_few_tokens(const struct op *main);
/* sets the attributes of the shape on all contractions */
void mark_engine_shape(struct module *module, struct block *block, struct engine_shape shape);
/* sets the lanes of result words, where the engine has at most `pes` PEs */
void mark_result_lanes(struct module *module, struct block *block, int64_t pes);
#endif
