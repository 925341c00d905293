/* Folders in which a process works until it renames or removes them.  Each is locked by its maker,
 * so that what a killed process left is known and removed by the next that works there. */
#ifndef STC_WORK_FOLDER_H
#define STC_WORK_FOLDER_H
#include "base/arena.h"
#include <stdbool.h>

struct work_folder {
	const char *path; /* NULL: there is none */
	int lock;         /* descriptor of the folder */
	int spare;        /* descriptor that is given up to remove it where there is no other */
};

/* Makes `prefix` with six more characters, and first removes those that nobody holds, of more than
 * a minute ago.  false: errno. */
bool work_folder_make(struct arena *arena, const char *prefix, struct work_folder *made);
/* The folder is another's now, or has another name. */
void work_folder_release(struct work_folder *folder);
/* Removes it with all that is in it, without memory or a descriptor more. */
void work_folder_remove(struct work_folder *folder);
/* Removes a file or a folder with all that is in it. */
bool tree_remove(const char *path);
#endif
