/* The result folder, written whole or not at all: files go to a sibling with a temporary name,
 * which is renamed to the target at the end. */
#ifndef STC_OUTPUT_H
#define STC_OUTPUT_H
#include "base/text.h"
#include "base/work_folder.h"
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
	struct work_folder folder;         /* none once committed or abandoned */
	const volatile sig_atomic_t *stop; /* set: end soon; may be NULL */
	VEC(struct output_entry) entries;
};

/* Can the parent folder of the target be written to?  false: a diagnostic. */
bool output_place_check(struct arena *arena, struct diag *diag, const char *target);
/* The same, and the target does not exist, is an empty folder, or is a design folder. */
bool output_check(struct arena *arena, struct diag *diag, const char *target);
/* Makes the temporary folder.  NULL after a diagnostic of output_check. */
struct output *output_begin(struct arena *arena, struct diag *diag, const char *target,
        const volatile sig_atomic_t *stop);
/* Writes a file below the folder and lists it in the manifest. */
bool output_file(struct output *output, const char *path, const char *data, size_t size);
/* Writes a file that differs from run to run: not listed. */
bool output_unlisted(struct output *output, const char *path, const char *data, size_t size);
/* The path where to write a file; makes its folders.  NULL after a diagnostic. */
const char *output_place(struct output *output, const char *path);
void output_record(struct output *output, const char *path, const char *hash);
/* A diagnostic about an errno; always false. */
bool output_error(struct output *output, const char *path, int reason);
bool output_stopped(const struct output *output);
bool output_commit(struct output *output); /* replaces the target by the new folder */
/* Removes the temporary folder; `output` may be NULL or committed. */
void output_abandon(struct output *output);

/* Path of a file that each phase has: the first phase's (phase NULL) is in the design folder
 * itself, the others' in a folder with the phase's name. */
const char *phase_file(struct arena *arena, const char *phase, const char *file);
/* The name of the design in a path: the last part, without extension. */
const char *design_name(struct arena *arena, const char *path);

/* Is it a device, a pipe or a socket?  That is written to, and no file replaces it. */
bool file_is_special(const char *path);
/* The file that a symbolic link names, which itself is not replaced; else the path. */
const char *file_resolved(struct arena *arena, const char *path);
/* Writes one file, whole or not at all; a device or a pipe is written to. */
bool file_write_whole(
        struct arena *arena, struct diag *diag, const char *path, const char *data, size_t size);

#endif
