/* The cache folder: compiled designs, and records of checked designs. */
#define _POSIX_C_SOURCE 200809L
#include "design.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool make_folders(const char *path)
{
	char part[4096];
	size_t size = strlen(path);
	if (size >= sizeof part)
		return errno = ENAMETOOLONG, false;
	for (size_t i = 1; i <= size; i++) {
		if (path[i] != '/' && path[i])
			continue;
		memcpy(part, path, i);
		part[i] = 0;
		if (mkdir(part, 0777) && errno != EEXIST)
			return false;
	}
	return !access(path, W_OK | X_OK);
}

static const char *place(struct arena *arena)
{
	const char *cache = getenv("XDG_CACHE_HOME");
	const char *home = getenv("HOME");
	if (cache && *cache == '/')
		return text_format(arena, "%s/streamtensor", cache);
	return home && *home == '/' ? text_format(arena, "%s/.cache/streamtensor", home) : NULL;
}

const char *cache_folder(struct arena *arena, struct diag *diag, const char *cache_dir)
{
	const char *folder = cache_dir ? cache_dir : place(arena);
	if (folder && make_folders(folder))
		return folder;
	if (folder)
		diag_error(diag, (struct location){ .file = folder },
		        "cannot keep compiled designs: %s", strerror(errno));
	else
		diag_error(diag, NOWHERE,
		        "there is no folder for compiled designs: neither XDG_CACHE_HOME nor HOME "
		        "is set");
	diag_note(diag, "XDG_CACHE_HOME names a folder that can be written");
	return NULL;
}
