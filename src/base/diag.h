/* Diagnostics: what is wrong with the input, where, and what would be accepted. At most DIAG_MOST
 * are stored. The command line prints them as `FILE:LINE:COL: error: …` and `note: …`. */
#ifndef STC_DIAG_H
#define STC_DIAG_H
#include "base/text.h"

#define DIAG_MOST 20

struct location {
	const char *file; /* NULL: no location */
	int line, column; /* from 1; 0: unknown */
	/* what the user calls the part that it comes from, as layers.3.mlp; NULL: nothing */
	const char *layer;
};

struct diag_entry {
	struct location location;
	const char *message; /* what was found */
	const char *note;    /* what would be accepted; may be NULL */
};

struct diag {
	struct arena *arena;
	struct diag_entry entry[DIAG_MOST];
	int count;   /* stored entries */
	int dropped; /* errors beyond DIAG_MOST */
};

/* Both return false, so that a caller can `return diag_error(…)`. */
bool diag_error(struct diag *diag, struct location location, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
/* adds a note to the last error */
bool diag_note(struct diag *diag, const char *format, ...) __attribute__((format(printf, 2, 3)));
void diag_print(const struct diag *diag, struct text *out);

#define NOWHERE ((struct location){ 0 })

#endif
