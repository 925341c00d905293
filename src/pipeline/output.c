/* Writes a result folder or file whole or not at all: into a temporary sibling that is renamed to
 * the target at the end. */
#define _GNU_SOURCE /* renameat2 */
#include "pipeline/output.h"
#include "base/data.h"
#include "base/json.h"
#include "base/blake2.h"
#include "emit/emit.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool output_error(struct output *output, const char *path, int reason)
{
	return diag_error(output->diag, (struct location){ .file = output->target },
	        "%s cannot be written: %s", path, strerror(reason));
}

bool output_stopped(const struct output *output)
{
	return output->stop && *output->stop;
}

/* ---- folders */

/* A manifest of ours is recognized by its first characters, because parsing a large one is slow;
 * one with the same contents but another layout is parsed. */
static bool is_design(struct arena *arena, const char *folder)
{
	size_t size;
	const char *reason;
	const char *text = file_read_regular(
	        arena, text_format(arena, "%s/manifest.json", folder), &size, &reason);
	int64_t version;
	if (text && !strncmp(text, MANIFEST_BEGIN, sizeof MANIFEST_BEGIN - 1))
		return true;
	const struct json *json = text ? json_parse(arena, text, size, NULL) : NULL;
	return json_integer(json_get(json, "design"), &version) && json_get(json, "tool") &&
	        json_get(json, "files");
}

static bool is_empty(const char *path)
{
	DIR *folder = opendir(path);
	bool empty = folder != NULL;
	for (struct dirent *entry; empty && (entry = readdir(folder));)
		empty = !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..");
	if (folder)
		closedir(folder);
	return empty;
}

static bool is_here(const char *path)
{
	struct stat here;
	struct stat other;
	return !stat(".", &here) && !stat(path, &other) && here.st_dev == other.st_dev &&
	        here.st_ino == other.st_ino;
}

static const char *without_slashes(struct arena *arena, const char *path)
{
	size_t size = strlen(path);
	while (size > 1 && path[size - 1] == '/')
		size--;
	return text_copy(arena, path, size);
}

/* PARENT/.NAME.stc- */
static const char *sibling(struct arena *arena, const char *target)
{
	const char *slash = strrchr(target, '/');
	const char *name = slash ? slash + 1 : target;
	return text_format(arena, "%.*s.%s.stc-", (int)(name - target), target, name);
}

const char *file_resolved(struct arena *arena, const char *target)
{
	struct stat status;
	char real[PATH_MAX];
	const char *path = without_slashes(arena, target);
	bool link = !lstat(path, &status) && S_ISLNK(status.st_mode);
	return link && realpath(path, real) ? text_copy(arena, real, strlen(real)) : path;
}

bool output_place_check(struct arena *arena, struct diag *diag, const char *target)
{
	const char *path = file_resolved(arena, target);
	const char *slash = strrchr(path, '/');
	const char *parent = ".";
	if (slash)
		parent = slash == path ? "/" : text_copy(arena, path, (size_t)(slash - path));
	if (!access(text_format(arena, "%s/.", parent), W_OK | X_OK))
		return true;
	diag_error(diag, (struct location){ .file = path }, "cannot be made: %s", strerror(errno));
	return diag_note(diag, "a path in a folder that exists and can be written to");
}

bool output_check(struct arena *arena, struct diag *diag, const char *target)
{
	struct stat status;
	const char *path = file_resolved(arena, target);
	struct location at = { .file = path };
	bool ours = lstat(path, &status) ||
	        (S_ISDIR(status.st_mode) && (is_empty(path) || is_design(arena, path)));
	if (ours && !is_here(path))
		return output_place_check(arena, diag, path);
	diag_error(diag, at,
	        ours ? "is the folder that this runs in, and would be replaced"
	             : "exists and is no design of ours");
	return diag_note(diag,
	        "a path that does not exist yet, an empty folder, or a design folder, which is "
	        "replaced");
}

struct output *output_begin(struct arena *arena, struct diag *diag, const char *target,
        const volatile sig_atomic_t *stop)
{
	struct output *output = ARENA_NEW(arena, struct output);
	*output = (struct output){
		.arena = arena, .diag = diag, .target = file_resolved(arena, target), .stop = stop
	};
	if (!output_check(arena, diag, output->target))
		return NULL;
	if (!work_folder_make(arena, sibling(arena, output->target), &output->folder)) {
		diag_error(diag, (struct location){ .file = output->target }, "cannot be made: %s",
		        strerror(errno));
		diag_note(diag, "a path in a folder that exists and can be written to");
		return NULL;
	}
	mode_t mask = umask(0);
	umask(mask);
	chmod(output->folder.path, 0777 & ~mask);
	return output;
}

static bool exchange(const char *left, const char *right)
{
	return !renameat2(AT_FDCWD, left, AT_FDCWD, right, RENAME_EXCHANGE);
}

/* Puts `folder` in the place of `target`; *old is the replaced folder, or NULL.  If the file system
 * cannot exchange them in one step, the old folder is moved aside first. */
static bool take_place(
        struct arena *arena, const char *folder, const char *target, const char **old)
{
	*old = NULL;
	if (access(target, F_OK))
		return !rename(folder, target);
	if (exchange(folder, target)) {
		*old = folder;
		return true;
	}
	char *aside = text_format(arena, "%sXXXXXX", sibling(arena, target));
	if (!mkdtemp(aside) || rename(target, aside))
		return false;
	if (rename(folder, target)) {
		rename(aside, target);
		return false;
	}
	*old = aside;
	return true;
}

bool output_commit(struct output *output)
{
	const char *old;
	if (output_stopped(output))
		return diag_error(output->diag, NOWHERE, "stopped");
	if (!take_place(output->arena, output->folder.path, output->target, &old))
		return diag_error(output->diag, (struct location){ .file = output->target },
		        "cannot be put in place: %s", strerror(errno));
	work_folder_release(&output->folder);
	if (old)
		tree_remove(old);
	return true;
}

void output_abandon(struct output *output)
{
	if (output)
		work_folder_remove(&output->folder);
}

/* ---- files */

const char *output_place(struct output *output, const char *path)
{
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		const char *folder = text_format(
		        output->arena, "%s/%.*s", output->folder.path, (int)(slash - path), path);
		if (mkdir(folder, 0777) && errno != EEXIST) {
			output_error(output, path, errno);
			return NULL;
		}
	}
	return text_format(output->arena, "%s/%s", output->folder.path, path);
}

/* Returns 0 or an errno. */
static int write_all(const char *path, const char *data, size_t size)
{
	int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (file < 0)
		return errno;
	int reason = 0;
	for (size_t done = 0; done < size && !reason;) {
		ssize_t got = write(file, data + done, size - done);
		if (got >= 0)
			done += (size_t)got;
		else if (errno != EINTR)
			reason = errno;
	}
	return close(file) && !reason ? errno : reason;
}

void output_record(struct output *output, const char *path, const char *hash)
{
	struct output_entry entry = { text_format(output->arena, "%s", path),
		hash ? text_format(output->arena, "%s", hash) : NULL };
	VEC_PUSH(output->arena, &output->entries, entry);
}

bool output_unlisted(struct output *output, const char *path, const char *data, size_t size)
{
	const char *place = output_place(output, path);
	int reason = place ? write_all(place, data, size) : 0;
	if (reason)
		return output_error(output, path, reason);
	return place != NULL;
}

bool output_file(struct output *output, const char *path, const char *data, size_t size)
{
	char hash[65];
	if (!output_unlisted(output, path, data, size))
		return false;
	blake2_hex(data, size, hash);
	output_record(output, path, hash);
	return true;
}

bool file_is_special(const char *path)
{
	struct stat about;
	return !stat(path, &about) && !S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode);
}

static int replace_file(struct arena *arena, const char *path, const char *data, size_t size)
{
	char *temporary = text_format(arena, "%sXXXXXX", sibling(arena, path));
	int file = mkstemp(temporary);
	int reason = file < 0 ? errno : 0;
	if (file >= 0)
		close(file);
	if (!reason)
		reason = write_all(temporary, data, size);
	mode_t mask = umask(0);
	umask(mask);
	if (!reason && (chmod(temporary, 0666 & ~mask) || rename(temporary, path)))
		reason = errno;
	if (reason && file >= 0)
		unlink(temporary);
	return reason;
}

bool file_write_whole(
        struct arena *arena, struct diag *diag, const char *path, const char *data, size_t size)
{
	int reason = file_is_special(path)
	        ? write_all(path, data, size)
	        : replace_file(arena, file_resolved(arena, path), data, size);
	return !reason ||
	        diag_error(diag, (struct location){ .file = path }, "cannot be written: %s",
	                strerror(reason));
}

const char *design_name(struct arena *arena, const char *path)
{
	const char *end = path + strlen(path);
	const char *begin;
	const char *dot;
	while (end > path && end[-1] == '/')
		end--;
	for (begin = end; begin > path && begin[-1] != '/'; begin--) {
	}
	for (dot = end; dot > begin && *dot != '.'; dot--) {
	}
	return text_copy(arena, begin, (size_t)((dot > begin ? dot : end) - begin));
}

const char *phase_file(struct arena *arena, const char *phase, const char *file)
{
	return phase ? text_format(arena, "%s/%s", phase, file) : file;
}
