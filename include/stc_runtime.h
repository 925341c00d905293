/* The host runtime: runs a compiled design, on the CPU or on an accelerator card. A design is used
 * by one thread at a time. Functions return 0 on success; otherwise stc_design_error says why.
 * Nothing here prints or exits. */
#ifndef STC_RUNTIME_H
#define STC_RUNTIME_H
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#endif

typedef struct stc_design stc_design;

/* Opens the design folder `dir` on device "cpu", "cpu-once" (compiled sooner, for few launches) or
 * "xrt:INDEX". cache_dir: folder for compiled designs; NULL: the user's cache. On failure *out is
 * NULL and `error` holds the reason. */
int stc_design_open(const char *dir, const char *device, const char *cache_dir, stc_design **out,
        char *error, size_t error_size);
/* Compiles the design for the CPU, which the first launch does otherwise. */
int stc_design_prepare(stc_design *design);
/* Selects a phase of a design with several, such as decode and prefill, for all later calls (NULL:
 * the first, which is the default). All phases share states and weights. */
int stc_design_phase(stc_design *design, const char *name);
/* Sets a whole input, a state, or a weight of a design without weights. `bytes` must be the
 * tensor's size; elements are row-major. */
int stc_design_input(stc_design *design, const char *name, const void *data, size_t bytes);
/* Runs one launch. Every input must have been set once; states start at zero and persist. Rejected
 * are:
 * - positions at which the tokens of the launch exceed the KV cache. One last token may lie one row
 *   past it: its row overwrites the row before, so this is possible once until that row is written
 *   anew.
 * - token counts above the maximum of the design, and 0 where the work of a launch is that of its
 *   tokens.
 * Where manifest.json has `more_chunks` for an input with a token count, the count may be one above
 * the maximum: all tokens are present, and later launches continue the prompt. Results that are no
 * states are not computed then. */
int stc_design_launch(stc_design *design);
/* Runs several steps in one launch, for designs that select tokens themselves: an output feeds an
 * input (stc_design_tokens_most is more than 1), and the input of positions advances. Equivalent to
 * as many launches, except that each leaves its inputs as the next step needs them.
 *
 * `text` holds the fed input for the first `prompt_tokens` tokens (at least 1). On return it holds
 * it for all tokens and the one after them: tokens + 1 times the input's bytes.
 *
 * Where another input holds the number of tokens, up to R, a launch has `tokens` steps, and `text`
 * holds in this order:
 * - the whole input, of which the first step takes the counted tokens,
 * - the prompt_tokens - 1 rows from the host, of which each further step takes R, or the rest:
 *   chunks = ceil((prompt_tokens - 1) / R) chunks of a prompt,
 * - a row for each output after them, which the next step takes, one per step.
 * prompt_tokens is at most 1 + (tokens - 1) * R, and `text` has the input's bytes and prompt_tokens
 * - 1 + tokens - chunks rows. Outputs of steps before the last chunk are not stored. */
int stc_design_tokens(
        stc_design *design, long long tokens, long long prompt_tokens, void *text, size_t bytes);
/* maximum steps of a launch; 1: a launch is one step of the phase */
long long stc_design_tokens_most(const stc_design *design);
/* Reads a result of the last launch, or a whole state. */
int stc_design_output(stc_design *design, const char *name, void *data, size_t bytes);
/* Zeroes the states. */
int stc_design_reset(stc_design *design);
const char *stc_design_error(const stc_design *design);
/* Times of the last launch: setting inputs and reading outputs since the launch before it, and
 * waiting for the device. */
int stc_design_times(const stc_design *design, double *host_seconds, double *device_seconds);
/* Clocks in MHz: at which the device runs (0: it has none), and for which the design was compiled.
 * The vendor's linker lowers the first without an error where timing fails. */
int stc_design_clock(const stc_design *design, double *device_mhz, double *design_mhz);
void stc_design_close(stc_design *design); /* NULL is accepted */

/* The signature: tensors 0, 1, … in the order of the source function, inputs first. Returns
 * non-zero if there is no such tensor. */
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
