/* The host runtime: runs a compiled design, on the CPU or on a card.  A design is used by one
 * thread at a time.  Functions return 0, or not and then stc_design_error says why.  Nothing
 * here prints or exits. */
#ifndef STC_RUNTIME_H
#define STC_RUNTIME_H
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#endif

typedef struct stc_design stc_design;

/* `dir` is a design folder.  device: "cpu" or "xrt:INDEX".  cache_dir: where compiled designs
 * are kept; NULL: the user's cache. On failure *out is NULL and `error` holds the reason. */
int stc_design_open(const char *dir, const char *device, const char *cache_dir, stc_design **out,
        char *error, size_t error_size);
/* A design may hold several phases, such as decode and prefill: what follows is about this one
 * (NULL: the first, as when it was opened).  States and weights are of all. */
int stc_design_phase(stc_design *design, const char *name);
/* Sets a whole input, state, or weight of a design without weights.  `bytes` must be the
 * tensor's size; elements are row-major. */
int stc_design_input(stc_design *design, const char *name, const void *data, size_t bytes);
/* Every input must have been set once; states are zero at first and persist.  Refused: positions
 * behind a state's rows (but for one, of a last token, whose row takes the place of the one
 * before it; once, until that one is written again), counts of rows above what the design takes,
 * and none where the work of a launch is that of its rows. Where manifest.json says `more` of an
 * input whose rows are counted, the count may be one above them: all are there, and other
 * launches go on with the text.  Results that are no states are not made then. */
int stc_design_launch(stc_design *design);
/* Several text tokens in one launch, where the design chooses them itself: an output feeds an
 * input (stc_design_tokens_most is more than 1), and the input of positions moves on. `text`
 * holds what that input is for the first `given` tokens, 1 or more, and gets what it was for all
 * of them and is for the one behind: tokens + 1 times the input's bytes. Where another input
 * says how many rows of that input count, up to R, a launch has `tokens` steps: `text` has the
 * whole input first, of which the first step takes the rows that count, then the given - 1 rows
 * that the host gives, of which each further step takes R, or those that are left, and then a
 * row for each output behind them, which the next step takes: chunks of a prompt, ceil((given -
 * 1) / R) of them behind the first, then a token a step.  given: at most 1 + (tokens - 1) * R;
 * `text`: the input's bytes, and given - 1 + tokens - chunks rows.  What a step puts out before
 * the last chunk is not kept. Equal to as many launches: each leaves its inputs as the next step
 * wants them. */
int stc_design_tokens(
        stc_design *design, long long tokens, long long prompt_tokens, void *text, size_t bytes);
/* in one launch; 1: a launch is one token, or what the phase reads */
long long stc_design_tokens_most(const stc_design *design);
/* A result of the last launch, or a whole state. */
int stc_design_output(stc_design *design, const char *name, void *data, size_t bytes);
/* Zeroes the states. */
int stc_design_reset(stc_design *design);
const char *stc_design_error(const stc_design *design);
/* Of the last launch: setting inputs and reading outputs since the launch before, and waiting
 * for the device. */
int stc_design_times(const stc_design *design, double *host_seconds, double *device_seconds);
void stc_design_close(stc_design *design); /* NULL is accepted */

/* The signature: tensors 0 … in the order of the source function, inputs first.  Not 0: there is
 * no such tensor. */
struct stc_tensor {
	const char *name;
	const char *role;  /* input, state, weight, constant; output, state */
	const char *dtype; /* as in NumPy: f4 f8 f2 i8 i4 i2 i1 u1 b1 */
	int rank;
	const long long *shape;
	int result;
	size_t bytes;
};
int stc_design_tensor(const stc_design *design, int index, struct stc_tensor *tensor);

#ifdef __cplusplus
}
#endif
#endif
