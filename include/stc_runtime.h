/* The runtime: a compiled design folder as an accelerator, on the CPU or on the card.  0 is success everywhere; one design is used by one thread at a time. */
#ifndef STC_RUNTIME_H
#define STC_RUNTIME_H
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#endif

typedef struct stc_design stc_design;

/* device: "cpu" (the emitted code, compiled once into cache_dir) or "xrt:0" (the card of that number; the design's hls/ holds the .xclbin).
 * cache_dir NULL: $XDG_CACHE_HOME/streamtensor or ~/.cache/streamtensor.  On failure *out is NULL and `error` says why. */
int stc_design_open(const char *dir, const char *device, const char *cache_dir, stc_design **out, char *error, size_t error_size);
/* Sets an input, a weight, or a whole state, by name; row-major, little endian, i1 one byte an element. */
int stc_design_input(stc_design *design, const char *name, const void *data, size_t bytes);
int stc_design_launch(stc_design *design);
/* Reads an output of the last launch, or a whole state (a row of it that a launch wrote goes by the state's name too). */
int stc_design_output(stc_design *design, const char *name, void *data, size_t bytes);
int stc_design_reset(stc_design *design);                             /* all states are 0 again */
const char *stc_design_error(const stc_design *design);               /* of the last call that failed; "" before */
void stc_design_times(const stc_design *design, double *host_seconds, double *device_seconds);   /* since the design was opened */
int stc_design_check(const char *dir, char *error, size_t error_size);        /* every file, also large ones, against the manifest's hashes */
void stc_design_close(stc_design *design);                            /* NULL is accepted */

#ifdef __cplusplus
}
#endif
#endif
