/* Makes, locks and removes the folders in which processes work. */
#define _DEFAULT_SOURCE /* flock, mkdtemp, lstat */
#include "base/work_folder.h"
#include "base/text.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LETTERS 6 /* behind the prefix */
#define YOUNG 60  /* seconds in which the maker of a folder has locked it for sure */

bool tree_remove(struct arena *arena, const char *path)
{
	struct stat status;
	if (lstat(path, &status))
		return errno == ENOENT;
	if (!S_ISDIR(status.st_mode))
		return !unlink(path);
	DIR *folder = opendir(path);
	for (struct dirent *entry; folder && (entry = readdir(folder));)
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			tree_remove(arena, text_format(arena, "%s/%s", path, entry->d_name));
	if (folder)
		closedir(folder);
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

static void remove_left(struct arena *arena, const char *path)
{
	struct stat status;
	if (lstat(path, &status) || !S_ISDIR(status.st_mode) || status.st_uid != geteuid() ||
	        time(NULL) - status.st_mtime < YOUNG)
		return;
	int held = lock(path);
	if (held < 0)
		return;
	tree_remove(arena, path);
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
			remove_left(arena, text_format(arena, "%s/%s", parent, entry->d_name));
	if (folder)
		closedir(folder);
}

bool work_folder_make(struct arena *arena, const char *prefix, struct work_folder *made)
{
	char *path = text_format(arena, "%sXXXXXX", prefix);
	sweep(arena, prefix);
	if (!mkdtemp(path))
		return false;
	*made = (struct work_folder){ path, lock(path) };
	return true;
}

void work_folder_release(struct work_folder *folder)
{
	if (folder->path && folder->lock >= 0)
		close(folder->lock);
	*folder = (struct work_folder){ 0 };
}

void work_folder_remove(struct arena *arena, struct work_folder *folder)
{
	if (folder->path)
		tree_remove(arena, folder->path);
	work_folder_release(folder);
}
