/* Makes, locks and removes the folders in which processes work. */
#define _GNU_SOURCE /* flock, mkdtemp, getdents64 */
#include "base/work_folder.h"
#include "base/text.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LETTERS 6 /* behind the prefix */
#define YOUNG 60  /* seconds in which the maker of a folder has locked it for sure */

/* Folders are emptied without memory and with one descriptor besides that of the outermost one, so
 * that it works for a process that has run out of both: what is a folder in a folder is moved out
 * to the outermost one, under the name of a number. */
struct emptying {
	int folder; /* the outermost one */
	unsigned moved;
	bool changed; /* in this walk over it */
};

static bool is_entry(const struct dirent64 *entry)
{
	return strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
}

static void move_out(struct emptying *emptying, int from, const char *name)
{
	char number[32];
	do
		snprintf(number, sizeof number, "%u", emptying->moved++);
	while (!faccessat(emptying->folder, number, F_OK, AT_SYMLINK_NOFOLLOW));
	emptying->changed |= !renameat(from, name, emptying->folder, number);
}

/* Removes an entry of `folder`; what is a folder in an inner one is moved out. */
static void remove_entry(struct emptying *emptying, int folder, const char *name);

static void remove_entries(struct emptying *emptying, int folder)
{
	_Alignas(struct dirent64) char listed[4096];
	ssize_t size;
	while ((size = getdents64(folder, listed, sizeof listed)) > 0)
		for (ssize_t at = 0; at < size;) {
			const struct dirent64 *entry = (const struct dirent64 *)(listed + at);
			at += entry->d_reclen;
			if (is_entry(entry))
				remove_entry(emptying, folder, entry->d_name);
		}
}

static void remove_entry(struct emptying *emptying, int folder, const char *name)
{
	if (!unlinkat(folder, name, 0) || !unlinkat(folder, name, AT_REMOVEDIR)) {
		emptying->changed = true;
		return;
	}
	if (folder != emptying->folder) {
		move_out(emptying, folder, name);
		return;
	}
	int inner = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (inner < 0)
		return;
	remove_entries(emptying, inner);
	close(inner);
	unlinkat(folder, name, AT_REMOVEDIR);
}

static void empty(int folder)
{
	struct emptying emptying = { .folder = folder };
	do {
		emptying.changed = false;
		lseek(folder, 0, SEEK_SET);
		remove_entries(&emptying, folder);
	} while (emptying.changed);
}

bool tree_remove(const char *path)
{
	struct stat status;
	if (lstat(path, &status))
		return errno == ENOENT;
	if (!S_ISDIR(status.st_mode))
		return !unlink(path);
	int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (folder >= 0) {
		empty(folder);
		close(folder);
	}
	return !rmdir(path);
}

/* The descriptor of a folder that is locked now; -1: another process holds it. */
static int lock(const char *path)
{
	int held = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (held >= 0 && !flock(held, LOCK_EX | LOCK_NB))
		return held;
	if (held >= 0)
		close(held);
	return -1;
}

static void remove_left(const char *path)
{
	struct stat status;
	if (lstat(path, &status) || !S_ISDIR(status.st_mode) || status.st_uid != geteuid() ||
	        time(NULL) - status.st_mtime < YOUNG)
		return;
	int held = lock(path);
	if (held < 0)
		return;
	tree_remove(path);
	close(held);
}

static void sweep(struct arena *arena, const char *prefix)
{
	const char *slash = strrchr(prefix, '/');
	const char *name = slash ? slash + 1 : prefix;
	const char *parent = slash ? text_copy(arena, prefix, (size_t)(name - prefix)) : ".";
	DIR *folder = opendir(parent);
	for (struct dirent *entry; folder && (entry = readdir(folder));)
		if (!strncmp(entry->d_name, name, strlen(name)) &&
		        strlen(entry->d_name) == strlen(name) + LETTERS)
			remove_left(text_format(arena, "%s/%s", parent, entry->d_name));
	if (folder)
		closedir(folder);
}

bool work_folder_make(struct arena *arena, const char *prefix, struct work_folder *made)
{
	char *path = text_format(arena, "%sXXXXXX", prefix);
	sweep(arena, prefix);
	if (!mkdtemp(path))
		return false;
	*made = (struct work_folder){ path, lock(path), open("/dev/null", O_RDONLY | O_CLOEXEC) };
	return true;
}

void work_folder_release(struct work_folder *folder)
{
	if (folder->path && folder->lock >= 0)
		close(folder->lock);
	if (folder->path && folder->spare >= 0)
		close(folder->spare);
	*folder = (struct work_folder){ 0 };
}

void work_folder_remove(struct work_folder *folder)
{
	if (folder->path && folder->spare >= 0)
		close(folder->spare);
	folder->spare = -1;
	if (folder->path && folder->lock >= 0)
		empty(folder->lock);
	if (folder->path)
		tree_remove(folder->path);
	work_folder_release(folder);
}
