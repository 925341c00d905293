#define _GNU_SOURCE /* dladdr */
#include "base/data.h"
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MOST 4294967296 /* bytes of a text */
#define TEXT_OF(number) TEXT_OF_(number)
#define TEXT_OF_(number) #number

/* The parent of the folder of this code's file: build/stc and bin/stc are both one folder below the
 * data. */
static const char *program_folder(struct arena *arena)
{
	char path[4096];
	Dl_info info;
	ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
	if (dladdr((void *)(uintptr_t)data_path, &info) && info.dli_fname &&
	        strstr(info.dli_fname, ".so"))
		size = snprintf(path, sizeof path, "%s", info.dli_fname);
	if (size <= 0 || (size_t)size >= sizeof path)
		return ".";
	path[size] = 0;
	char *slash = strrchr(path, '/');
	return slash ? text_format(arena, "%.*s/..", (int)(slash - path), path) : "..";
}

static bool is_folder(const char *path)
{
	struct stat status;
	return !stat(path, &status) && S_ISDIR(status.st_mode);
}

const char *data_path(struct arena *arena, const char *file)
{
	const char *folders[] = { getenv("STREAMTENSOR_DATA"),
		STC_DATA_DIR[0] ? STC_DATA_DIR : NULL, program_folder(arena) };
	for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
		if (folders[i] && is_folder(text_format(arena, "%s/platforms", folders[i])))
			return text_format(arena, "%s/%s", folders[i], file);
	return text_format(arena, "%s", file);
}

/* Why a file is not read at all; NULL: nothing is against it. */
static const char *unreadable(const struct stat *status)
{
	if (S_ISDIR(status->st_mode))
		return "it is a folder";
	if (S_ISCHR(status->st_mode) || S_ISBLK(status->st_mode))
		return "it is a device";
	return S_ISREG(status->st_mode) && status->st_size > FILE_MOST
	        ? "it has more than " TEXT_OF(FILE_MOST) " bytes"
	        : NULL;
}

static char *stream_read(
        struct arena *arena, FILE *stream, size_t expected, size_t *size, const char **reason)
{
	struct text text = text_new(arena);
	char part[1 << 16];
	if (expected) {
		text = (struct text){ .arena = arena,
			.data = arena_alloc(arena, expected + 1),
			.capacity = expected + 1 };
		text.size = fread(text.data, 1, expected, stream);
	}
	for (size_t got; (got = fread(part, 1, sizeof part, stream)) > 0;)
		text_add_bytes(&text, part, got);
	*reason = strerror(errno);
	text_add_bytes(&text, "", 0);
	*size = text.size;
	return ferror(stream) ? NULL : text.data;
}

char *file_read(struct arena *arena, const char *path, size_t *size, const char **reason)
{
	if (!strcmp(path, "-"))
		return stream_read(arena, stdin, 0, size, reason);
	FILE *stream = fopen(path, "rb");
	struct stat status;
	*reason = strerror(errno);
	if (!stream)
		return NULL;
	bool known = !fstat(fileno(stream), &status);
	const char *against = known ? unreadable(&status) : NULL;
	if (against) {
		fclose(stream);
		*reason = against;
		return NULL;
	}
	char *data = stream_read(arena, stream,
	        known && status.st_size > 0 ? (size_t)status.st_size : 0, size, reason);
	fclose(stream);
	return data;
}

char *file_read_regular(struct arena *arena, const char *path, size_t *size, const char **reason)
{
	struct stat status;
	if (!stat(path, &status) && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) {
		*reason = "it is no regular file";
		return NULL;
	}
	return file_read(arena, path, size, reason);
}
