/* The result folder, written whole or not at all: files go to a sibling with a temporary name,
 * which takes the place of the target at the end. */
#ifndef STC_OUTPUT_H
#define STC_OUTPUT_H
#include "base/text.h"
#include "ir/ir.h"
#include <signal.h>

struct output_entry {
	const char *path; /* below the folder */
	const char *hash; /* BLAKE2b in hex; NULL: not listed in the manifest */
};

struct output {
	struct arena *arena;
	struct diag *diag;
	const char *target;
	const char *folder;                /* temporary; NULL once committed or abandoned */
	const volatile sig_atomic_t *stop; /* set: end soon; may be NULL */
	VEC(struct output_entry) entries;
};

/* The folder that the target stands in, or will, can be written to; else a diagnostic. */
bool output_place_check(struct arena *arena, struct diag *diag, const char *target);
/* The same, and the target does not exist, is empty, or is a design of ours. */
bool output_check(struct arena *arena, struct diag *diag, const char *target);
/* NULL after diagnostics: the target exists and is no design of ours, or its place cannot be
 * written to. */
struct output *output_begin(struct arena *arena, struct diag *diag, const char *target,
        const volatile sig_atomic_t *stop);
bool output_file(struct output *output, const char *path, const char *data, size_t size);
/* what differs from run to run */
bool output_unlisted(struct output *output, const char *path, const char *data, size_t size);
/* where to write the file; folders are made.  NULL after a diagnostic */
const char *output_place(struct output *output, const char *path);
void output_record(struct output *output, const char *path, const char *hash);
/* a diagnostic about an errno; false */
bool output_error(struct output *output, const char *path, int reason);
bool output_stopped(const struct output *output);
bool output_commit(struct output *output); /* the target is now the new folder */
/* removes all; NULL and committed ones are accepted */
void output_abandon(struct output *output);

/* Where a file that each phase has is: the first phase's in the design's folder (phase NULL),
 * the others' in one of their own. */
const char *phase_file(struct arena *arena, const char *phase, const char *file);
/* What a path calls the design in it: the last part, without an extension. */
const char *design_name(struct arena *arena, const char *path);

/* One file, whole or not at all; a device or a pipe takes it as it comes. */
bool file_write_whole(
        struct arena *arena, struct diag *diag, const char *path, const char *data, size_t size);

#endif
