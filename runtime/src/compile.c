/* Compiles the emitted C++ to a library for this machine. The library is cached under the hash of
 * everything it depends on: sources, headers, flags and compiler. */
#define _GNU_SOURCE /* mkdtemp */
#include "base/data.h"
#include "base/blake2.h"
#include "base/work_folder.h"
#include "design.h"
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOG_LINES 12 /* lines of the compiler's output in a message */
#define ARGUMENTS_MOST 64
#define WORDS_MOST 8 /* of the compiler in CXX */

extern char **environ;

static const char *const flags[] = { "-march=native", "-fno-trapping-math", "-fno-math-errno",
	"-std=c++17", "-ffp-contract=off", "-fno-gnu-unique", "-fvisibility=hidden", "-shared",
	"-fPIC", "-w" };
#define FLAGS ((int)(sizeof flags / sizeof *flags))

static const char *const headers[] = { "st_math.h", "st_functions.h", "st_integer.h", "st_narrow.h",
	"st_double.h", "ap_int.h", "st_fibre.h", "hls_stream.h", "hls_streamofblocks.h",
	"hls_vector.h" };
#define HEADERS ((int)(sizeof headers / sizeof *headers))

struct build {
	struct arena *arena;
	struct diag *diag;
	const struct device_program *program;
	const char *compiler, *include, *source;
	const char *level; /* option of how far it optimizes; all of them give the same bits */
	const char *shim;  /* C++ that calls the top function */
	struct work_folder folder; /* in the cache */
};

static bool failed(struct build *build, const char *path, const char *what, const char *note)
{
	diag_error(build->diag, (struct location){ .file = path }, "%s: %s", what, strerror(errno));
	return diag_note(build->diag, "%s", note);
}

/* ---- running the compiler */

static bool is_stopped(const struct build *build)
{
	return build->program->stop && *build->program->stop;
}

/* Is it the exit status of a program that an interrupt or a hang-up ended? */
static bool was_interrupted(int status)
{
	return status == 128 + SIGINT || status == 128 + SIGTERM || status == 128 + SIGHUP;
}

/* Adds the words of the compiler, as of "ccache g++", unless a program has this whole name. */
static int add_compiler(const struct build *build, const char **arguments)
{
	int count = 0;
	const char *from = build->compiler;
	if (!access(from, X_OK))
		return arguments[0] = from, 1;
	for (size_t size; from += strspn(from, " "), size = strcspn(from, " "); from += size)
		if (count < WORDS_MOST)
			arguments[count++] = text_copy(build->arena, from, size);
	return count;
}

/* Runs the compiler with its output in `log`, and ends it when the user interrupts. Returns its
 * exit status; -1: it cannot be started, with errno. */
static int run(const struct build *build, const char *const *own, const char *log)
{
	const char *arguments[WORDS_MOST + ARGUMENTS_MOST];
	int count = add_compiler(build, arguments);
	if (!count)
		return errno = ENOENT, -1;
	do
		arguments[count++] = *own;
	while (*own++);
	posix_spawn_file_actions_t actions;
	pid_t child;
	int status = 0;
	int reason;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	posix_spawn_file_actions_adddup2(&actions, 1, 2);
	reason = posix_spawnp(
	        &child, arguments[0], &actions, NULL, (char *const *)(uintptr_t)arguments, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (reason)
		return errno = reason, -1;
	while (waitpid(child, &status, 0) < 0) {
		if (errno != EINTR)
			return -1;
		if (is_stopped(build))
			kill(child, SIGTERM);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static const char *last_lines(struct build *build, const char *log)
{
	size_t size;
	const char *reason;
	const char *text = file_read(build->arena, log, &size, &reason);
	const char *from;
	if (!text || !size)
		return "it said nothing";
	from = text + size;
	for (int lines = 0; from > text && lines <= LOG_LINES; from--)
		lines += from[-1] == '\n';
	return from > text ? from + 1 : from;
}

/* Identifies the compiler and the processor, on which the result depends because of
 * -march=native. */
static const char *compiler_version(struct build *build)
{
	const char *const arguments[] = { "-march=native", "-Q", "--help=target", "--version",
		NULL };
	const char *log = text_format(build->arena, "%s/version", build->folder.path);
	const char *reason;
	size_t size;
	int status = run(build, arguments, log);
	if (status < 0) {
		failed(build, NULL,
		        text_format(build->arena, "the C++ compiler '%s' cannot be started",
		                build->compiler),
		        "g++, or the program that CXX names: it compiles designs for the CPU");
		return NULL;
	}
	if (is_stopped(build) || was_interrupted(status)) {
		diag_error(build->diag, NOWHERE, "interrupted");
		return NULL;
	}
	const char *text = status ? NULL : file_read(build->arena, log, &size, &reason);
	if (!text)
		diag_error(build->diag, NOWHERE,
		        "the C++ compiler '%s' does not say its version: %s", build->compiler,
		        last_lines(build, log));
	return text;
}

/* ---- sources of the library */

static const char *source_path(const struct device *device)
{
	return text_format(
	        device->arena, "%s/hls/%s.cpp", device->program->folder, device->program->top);
}

static bool add_file(struct arena *arena, struct diag *diag, struct blake2 *hash, const char *path)
{
	size_t size;
	const char *reason;
	const char *text = file_read(arena, path, &size, &reason);
	if (!text)
		return diag_error(
		        diag, (struct location){ .file = path }, "cannot be read: %s", reason);
	blake2_add(hash, text, size + 1);
	return true;
}

bool hash_source(struct device *device, char hash[65])
{
	struct blake2 state;
	blake2_start(&state);
	if (!add_file(device->arena, device->diag, &state, source_path(device)))
		return false;
	blake2_end(&state, hash);
	return true;
}

/* The files of the design that are mapped already are those of its source as it was. */
static bool is_unchanged(struct device *device, const char source[65])
{
	char hash[65];
	if (!hash_source(device, hash))
		return diag_note(device->diag, "the design was moved or deleted: open it again");
	if (text_same(hash, source))
		return true;
	diag_error(device->diag, (struct location){ .file = source_path(device) },
	        "was changed since the design was opened");
	return diag_note(device->diag, "open the design again");
}

static bool make_key(struct build *build, char key[65])
{
	const char *version = compiler_version(build);
	struct blake2 hash;
	if (!version)
		return false;
	blake2_start(&hash);
	blake2_add(&hash, version, strlen(version) + 1);
	blake2_add(&hash, build->shim, strlen(build->shim) + 1);
	blake2_add(&hash, build->level, strlen(build->level) + 1);
	for (int i = 0; i < FLAGS; i++)
		blake2_add(&hash, flags[i], strlen(flags[i]) + 1);
	for (int i = 0; i < HEADERS; i++)
		if (!add_file(build->arena, build->diag, &hash,
		            text_format(build->arena, "%s/%s", build->include, headers[i])))
			return false;
	if (!add_file(build->arena, build->diag, &hash, build->source))
		return false;
	blake2_end(&hash, key);
	return true;
}

/* The C++ source, behind that of the design, of a function that calls the top function with its
 * ports from an array; no C++ exception leaves it.  A top function with another number of arguments
 * than the manifest says is refused, not called. */
static const char *make_shim(struct build *build)
{
	const struct device_program *program = build->program;
	struct text text = text_new(build->arena);
	struct text arguments = text_new(build->arena);
	struct text types = text_new(build->arena);
	text_add(&arguments, "%s", "");
	text_add(&types, "%s", "");
	const struct {
		const char *name;
		bool taken;
	} scalar[] = { { "phase", program->phases > 1 }, { "tokens", program->counts },
		{ "given", program->counts } };
	int count = 0;
	for (; count < program->ports; count++) {
		const char *comma = count ? ", " : "";
		text_add(&types, "%svoid *", comma);
		text_add(&arguments, "%sport[%d]", comma, count);
	}
	for (size_t i = 0; i < sizeof scalar / sizeof *scalar; i++) {
		const char *comma = count ? ", " : "";
		if (!scalar[i].taken)
			continue;
		text_add(&types, "%sint", comma);
		text_add(&arguments, "%s%s", comma, scalar[i].name);
		count++;
	}
	text_add(&text,
	        "#include <exception>\n#include <string>\ntemplate <class... P> constexpr int "
	        "arguments_of(void (*)(P...))\n{\n\treturn sizeof...(P);\n}\n"
	        "static_assert(arguments_of(%s) == %d, \"manifest.json has the ports of another "
	        "top function\");\n",
	        program->top, count);
	text_add(&text,
	        "extern \"C\" __attribute__((visibility(\"default\"))) const char *stc_launch(void "
	        "*const *port, int phase, int tokens, int given)\n{\n\tstatic thread_local "
	        "std::string what;\n\ttry {\n\t\t(void)port, (void)phase, (void)tokens, "
	        "(void)given;\n");
	text_add(&text,
	        "\t\treinterpret_cast<void (*)(%s)>(&%s)(%s);\n\t\treturn st_region_error();\n",
	        types.data, program->top, arguments.data);
	text_add(&text,
	        "\t} catch (const std::exception &error) {\n\t\twhat = error.what();\n\t\treturn "
	        "what.c_str();\n\t}\n}\n");
	return text.data;
}

static bool write_shim(struct build *build, const char *path)
{
	int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	size_t size = strlen(build->shim);
	bool written = file >= 0 && write(file, build->shim, size) == (ssize_t)size;
	if (file >= 0 && close(file))
		written = false;
	return written ||
	        failed(build, path, "cannot be written",
	                "a cache with room: XDG_CACHE_HOME names another");
}

static bool compile(struct build *build, const char *library)
{
	const char *arguments[ARGUMENTS_MOST];
	const char *log = text_format(build->arena, "%s/log", build->folder.path);
	const char *shim = text_format(build->arena, "%s/launch.cpp", build->folder.path);
	const char *made = text_format(build->arena, "%s/library.so", build->folder.path);
	const char *const rest[] = { build->level, "-I", build->include, "-o", made, "-include",
		build->source, shim, NULL };
	memcpy(arguments, flags, sizeof flags);
	memcpy(arguments + FLAGS, rest, sizeof rest);
	if (!write_shim(build, shim))
		return false;
	int status = run(build, arguments, log);
	if (status < 0)
		return failed(build, NULL,
		        text_format(build->arena, "the C++ compiler '%s' cannot be started",
		                build->compiler),
		        "g++, or the program that CXX names");
	if (is_stopped(build) || was_interrupted(status))
		return diag_error(build->diag, NOWHERE, "interrupted");
	if (status) {
		diag_error(build->diag, (struct location){ .file = build->source },
		        "the C++ compiler '%s' ends with status %d", build->compiler, status);
		return diag_note(build->diag, "its last lines:\n%s", last_lines(build, log));
	}
	if (access(made, R_OK)) {
		diag_error(build->diag, NOWHERE, "the C++ compiler '%s' makes no library",
		        build->compiler);
		return diag_note(build->diag, "g++, or the program that CXX names");
	}
	return !rename(made, library) ||
	        failed(build, library, "cannot be put into the cache",
	                "a cache that can be written: XDG_CACHE_HOME names another");
}

static const char *find_or_compile(struct build *build)
{
	char key[65];
	if (!make_key(build, key))
		return NULL;
	const char *library = text_format(build->arena, "%s/%s.so", build->program->cache, key);
	return !access(library, R_OK) || compile(build, library) ? library : NULL;
}

const char *compile_design(struct device *device, const char source[65])
{
	if (!is_unchanged(device, source))
		return NULL;
	const char *compiler = getenv("CXX");
	struct build build = { .arena = device->arena,
		.diag = device->diag,
		.program = device->program,
		.compiler = compiler && *compiler ? compiler : "g++",
		.level = device->class == &device_cpu_once ? "-Og" : "-O3" };
	build.include = data_path(device->arena, "runtime/include");
	build.source = source_path(device);
	build.shim = make_shim(&build);
	if (!work_folder_make(device->arena,
	            text_format(device->arena, "%s/build-", device->program->cache),
	            &build.folder)) {
		failed(&build, device->program->cache, "cannot keep compiled designs",
		        "a folder that can be written: XDG_CACHE_HOME names another");
		return NULL;
	}
	const char *library = find_or_compile(&build);
	work_folder_remove(&build.folder);
	return library;
}
