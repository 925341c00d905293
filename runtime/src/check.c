/* Checks that a design's files are those of its manifest. Hashing a large model takes seconds, so a
 * successful check is recorded in the cache: an empty file whose name is the hash of all paths,
 * hashes, sizes, times and inodes. */
#define _GNU_SOURCE /* realpath */
#include "base/blake2.h"
#include "design.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *path_of(const struct design *design, const struct design_file *file)
{
	return text_format(design->arena, "%s/%s", design->folder, file->path);
}

static bool cannot_read(struct design *design, const char *path, int reason)
{
	diag_error(design->diag, (struct location){ .file = path },
	        "is listed in manifest.json but cannot be read: %s", strerror(reason));
	return diag_note(
	        design->diag, "the design as `stc compile` wrote it: compile the model again");
}

static void add_text(struct blake2 *hash, const char *text)
{
	blake2_add(hash, text, strlen(text) + 1);
}

static void add_number(struct blake2 *hash, int64_t number)
{
	blake2_add(hash, &number, sizeof number);
}

/* Identifies the files without reading them. */
static bool make_key(struct design *design, char key[65])
{
	struct blake2 hash;
	char whole[PATH_MAX];
	blake2_start(&hash);
	add_text(&hash, realpath(design->folder, whole) ? whole : design->folder);
	for (size_t i = 0; i < design->files.count; i++) {
		const struct design_file *file = &design->files.data[i];
		const char *path = path_of(design, file);
		struct stat status;
		if (stat(path, &status))
			return cannot_read(design, path, errno);
		if (!S_ISREG(status.st_mode))
			return cannot_read(design, path, EINVAL);
		add_text(&hash, file->path);
		add_text(&hash, file->hash);
		const int64_t numbers[] = { status.st_size, (int64_t)status.st_ino,
			status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_ctim.tv_sec,
			status.st_ctim.tv_nsec };
		for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++)
			add_number(&hash, numbers[n]);
	}
	blake2_end(&hash, key);
	return true;
}

static bool check_file(struct design *design, const struct design_file *file)
{
	const char *path = path_of(design, file);
	struct stat status;
	char hash[65];
	int opened = open(path, O_RDONLY | O_CLOEXEC);
	int reason = opened < 0 || fstat(opened, &status) ? errno : 0;
	size_t size = reason ? 0 : (size_t)status.st_size;
	void *data = size ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, opened, 0) : NULL;
	if (data == MAP_FAILED)
		reason = errno;
	if (opened >= 0)
		close(opened);
	if (reason)
		return cannot_read(design, path, reason);
	blake2_hex(data ? data : "", size, hash);
	if (data)
		munmap(data, size);
	if (!strcmp(hash, file->hash))
		return true;
	diag_error(design->diag, (struct location){ .file = path },
	        "is not the file that manifest.json lists: its hash differs");
	return diag_note(
	        design->diag, "the design as `stc compile` wrote it: compile the model again");
}

bool check_files(struct design *design, const char *cache)
{
	char key[65];
	if (!make_key(design, key))
		return false;
	const char *mark = text_format(design->arena, "%s/%s.checked", cache, key);
	if (!access(mark, F_OK))
		return true;
	for (size_t i = 0; i < design->files.count; i++)
		if (!check_file(design, &design->files.data[i]))
			return false;
	int file = open(mark, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	if (file >= 0)
		close(file);
	return true;
}
