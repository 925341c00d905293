/* Reads platforms/NAME.json. A figure is {"value": …, "source": …}; a row of `operators` is
 * {latency, dsp, lut, ff, source}, or {parts, chain, source} for a function composed of other rows;
 * one of `operators_f64` is {latency, dsp, lut, ff, source}.
 * Figures that a file with "like": NAME lacks are taken from that platform. */
#include "platform/platform.h"
#include "base/data.h"
#include "base/closest_name.h"
#include "base/number.h"
#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define BRAM18_BYTES 2304
#define URAM_BYTES 36864
/* Estimate of st_float_narrow. LUTs: absolute value 18, shifts of 18 bits by 16, 8, 4, 2 and 1
 * 45, bits shifted out 7, exponent 6, zero 11, 13 for the rest. Registers: four stages of 26 bits
 * of value, exponent and sign. */
#define INTEGER_LUT 100
#define INTEGER_FF 105
/* Estimate of st_mul_narrow: selection and rounding of 24 bits 48, bits shifted out 6, exponent 20,
 * zeros, infinities and NaN 20, 16 for the rest. */
#define NARROW_LUT 110
/* Estimate: the sum of exponents, 10 bits, and the choice of zero or infinity. */
#define SCALE_LUT 40
#define LIKE_MOST 4 /* maximum chain of "like" files */

struct file {
	const char *path;
	cJSON *json;
};

struct platform_reader {
	struct arena *arena;
	struct diag *diag;
	int files;
	struct file file[LIKE_MOST]; /* the requested file, then those it is like */
	bool failed;
};

enum figure_kind { FIGURE_INT, FIGURE_INT64, FIGURE_REAL };

struct figure_bounds { /* accepted range of a figure */
	double low, high;
};

struct figure {
	const char *group, *key; /* group NULL: at top level */
	enum figure_kind kind;
	struct figure_bounds bounds;
	size_t offset;
};

#define FIGURE(group, key, kind, low, high, member)                                                \
	{ group, key, kind, { low, high }, offsetof(struct platform, member) }
static const struct figure figures[] = {
	FIGURE(NULL, "clock_mhz", FIGURE_REAL, 1, 2000, clock_mhz),
	FIGURE("crowded", "lut", FIGURE_INT64, 1, 100, crowded.lut),
	FIGURE("crowded", "ff", FIGURE_INT64, 1, 100, crowded.ff),
	FIGURE("crowded", "dsp", FIGURE_INT64, 1, 100, crowded.dsp),
	FIGURE("crowded", "bram18", FIGURE_INT64, 1, 100, crowded.bram18),
	FIGURE("crowded", "uram", FIGURE_INT64, 1, 100, crowded.uram),
	FIGURE("crowded", "period", FIGURE_REAL, 1, 10, crowded_period),
	FIGURE("slower", "ff", FIGURE_INT64, 1, 100, slower.ff),
	FIGURE("slower", "bram18", FIGURE_INT64, 1, 100, slower.bram18),
	FIGURE("slower", "uram", FIGURE_INT64, 1, 100, slower.uram),
	FIGURE("slower", "wires", FIGURE_INT64, 100, 1000, slower_wires),
	FIGURE(NULL, "crossing_wires", FIGURE_INT64, 0, 1e6, crossing_wires),
	FIGURE(NULL, "launch_us", FIGURE_REAL, 0, 1e6, launch_us),
	FIGURE(NULL, "watts", FIGURE_REAL, 0.1, 1e4, watts),
	FIGURE(NULL, "idle_watts", FIGURE_REAL, 0.01, 1e4, idle_watts),
	FIGURE(NULL, "fifo_lut", FIGURE_INT, 0, 1e5, fifo_word_lut),
	FIGURE("memory", "die", FIGURE_INT, 0, PLATFORM_DIES - 1, memory_die),
	FIGURE("memory", "channels", FIGURE_INT, 1, 1024, channels),
	FIGURE("memory", "channel_bytes", FIGURE_INT64, 4096, 1e15, channel_bytes),
	FIGURE("memory", "channel_gbps", FIGURE_REAL, 1e-3, 1e5, channel_gbps),
	FIGURE("memory", "channel_efficiency", FIGURE_REAL, 0.01, 1, channel_efficiency),
	FIGURE("memory", "latency_cycles", FIGURE_INT, 1, 1e5, memory_latency),
	FIGURE("ports", "most", FIGURE_INT, 1, 1024, ports),
	FIGURE("ports", "bits", FIGURE_INT, 8, 4096, port_bits),
	FIGURE("ports", "burst", FIGURE_INT, 1, 256, burst),
	FIGURE("ports", "outstanding", FIGURE_INT, 1, 256, outstanding),
	FIGURE("ports", "lut", FIGURE_INT64, 0, 1e6, port_cost.lut),
	FIGURE("ports", "ff", FIGURE_INT64, 0, 1e6, port_cost.ff),
	FIGURE("ports", "read_lut", FIGURE_INT64, 0, 1e6, read_cost.lut),
	FIGURE("ports", "read_ff", FIGURE_INT64, 0, 1e6, read_cost.ff),
	FIGURE("ports", "bram18", FIGURE_INT64, 0, 1e4, port_cost.bram18),
};

struct resource_key {
	const char *key;
	struct figure_bounds bounds;
	size_t offset;
};

#define RESOURCE(key, low, high) { #key, { low, high }, offsetof(struct resources, key) }
static const struct resource_key resource_keys[] = {
	RESOURCE(lut, 1, 1e8),
	RESOURCE(ff, 1, 1e8),
	RESOURCE(dsp, 0, 1e6),
	RESOURCE(bram18, 0, 1e6),
	RESOURCE(uram, 0, 1e6),
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void complain(struct platform_reader *reader, const char *path, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
static void complain(struct platform_reader *reader, const char *path, const char *format, ...)
{
	struct text text = text_new(reader->arena);
	va_list arguments;
	va_start(arguments, format);
	text_add_arguments(&text, format, arguments);
	va_end(arguments);
	diag_error(reader->diag, (struct location){ .file = path }, "%s", text.data);
	reader->failed = true;
}

/* The value of group.key in the first file that has it. */
static const cJSON *find_row(
        const struct platform_reader *reader, const char *group, const char *key, const char **path)
{
	for (int i = 0; i < reader->files; i++) {
		const cJSON *in = group
		        ? cJSON_GetObjectItemCaseSensitive(reader->file[i].json, group)
		        : reader->file[i].json;
		const cJSON *item = in ? cJSON_GetObjectItemCaseSensitive(in, key) : NULL;
		if (item) {
			*path = reader->file[i].path;
			return item;
		}
	}
	*path = reader->file[0].path;
	return NULL;
}

static const char *dotted(struct platform_reader *reader, const char *group, const char *key)
{
	return group ? text_format(reader->arena, "%s.%s", group, key) : key;
}

static bool in_range(struct platform_reader *reader, const char *path, const char *key,
        double value, struct figure_bounds bounds)
{
	if (value >= bounds.low && value <= bounds.high)
		return true;
	complain(reader, path, "'%s' is %.10g", key, value);
	diag_note(reader->diag, "a number from %.10g to %.10g", bounds.low, bounds.high);
	return false;
}

static double figure_read(struct platform_reader *reader, const char *path, const char *key,
        const cJSON *item, struct figure_bounds bounds)
{
	const cJSON *value = cJSON_GetObjectItemCaseSensitive(item, "value");
	const cJSON *source = cJSON_GetObjectItemCaseSensitive(item, "source");
	if (!item) {
		complain(reader, path, "the figure '%s' is missing", key);
	} else if (!cJSON_IsNumber(value)) {
		complain(reader, path, "'%s' has no number", key);
	} else if (!cJSON_IsString(source) || !*source->valuestring) {
		complain(reader, path, "'%s' names no source", key);
	} else if (in_range(reader, path, key, value->valuedouble, bounds)) {
		return value->valuedouble;
	} else {
		return bounds.low;
	}
	diag_note(reader->diag,
	        "{\"value\": a number from %.10g to %.10g, \"source\": \"where it is from\"}",
	        bounds.low, bounds.high);
	return bounds.low;
}

static void figure_store(struct platform *platform, const struct figure *figure, double value)
{
	char *at = (char *)platform + figure->offset;
	if (figure->kind == FIGURE_REAL)
		memcpy(at, &value, sizeof value);
	else if (figure->kind == FIGURE_INT64)
		memcpy(at, &(int64_t){ (int64_t)value }, sizeof(int64_t));
	else
		memcpy(at, &(int){ (int)value }, sizeof(int));
}

static void check_whole(
        struct platform_reader *reader, const char *path, const char *key, double value)
{
	if (value == trunc(value))
		return;
	complain(reader, path, "'%s' is %.10g", key, value);
	diag_note(reader->diag, "a whole number");
}

static void read_figures(struct platform_reader *reader, struct platform *platform)
{
	for (size_t i = 0; i < COUNT(figures); i++) {
		const struct figure *figure = &figures[i];
		const char *path;
		const cJSON *item = find_row(reader, figure->group, figure->key, &path);
		const char *key = dotted(reader, figure->group, figure->key);
		double value = figure_read(reader, path, key, item, figure->bounds);
		if (figure->kind != FIGURE_REAL)
			check_whole(reader, path, key, value);
		figure_store(platform, figure, value);
	}
}

static void read_die(struct platform_reader *reader, const char *path, int number,
        const cJSON *json, struct resources *die)
{
	for (size_t i = 0; i < COUNT(resource_keys); i++) {
		const struct resource_key *key = &resource_keys[i];
		const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key->key);
		const char *name = text_format(reader->arena, "dies[%d].%s", number, key->key);
		double read = figure_read(reader, path, name, item, key->bounds);
		int64_t value = (int64_t)read;
		check_whole(reader, path, name, read);
		memcpy((char *)die + key->offset, &value, sizeof value);
	}
}

static void read_dies(struct platform_reader *reader, struct platform *platform)
{
	const char *path;
	const cJSON *dies = find_row(reader, NULL, "dies", &path);
	const cJSON *die;
	int count = cJSON_GetArraySize(dies);
	if (!cJSON_IsArray(dies) || count < 1 || count > PLATFORM_DIES) {
		complain(reader, path, "'dies' lists %d dies", count);
		diag_note(reader->diag, "a list of 1 to %d", PLATFORM_DIES);
		return;
	}
	cJSON_ArrayForEach(die, dies)
	        read_die(reader, path, platform->dies, die, &platform->die[platform->dies]),
	        platform->dies++;
	if (platform->memory_die >= platform->dies)
		in_range(reader, path, "memory.die", platform->memory_die,
		        (struct figure_bounds){ 0, platform->dies - 1 });
}

#define PARTS_MOST 1000 /* of one operator in another */
static const struct figure_bounds operator_bounds = { 0, 1e6 };

struct operator_row {
	struct platform_reader *reader;
	const struct platform *platform;
	const char *path, *group, *name; /* its file, and the operator */
	const cJSON *json;
};

static int row_number(const struct operator_row *row, const char *key)
{
	struct platform_reader *reader = row->reader;
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(row->json, key);
	const char *full = text_format(reader->arena, "%s.%s.%s", row->group, row->name, key);
	if (cJSON_IsNumber(item))
		return in_range(reader, row->path, full, item->valuedouble, operator_bounds)
		        ? (int)item->valuedouble
		        : 0;
	complain(reader, row->path, "the figure '%s' is missing", full);
	diag_note(
	        reader->diag, "{\"latency\": …, \"dsp\": …, \"lut\": …, \"ff\": …, \"source\": …}");
	return 0;
}

/* Adds to a figure of a composed operator, which stays within the bounds of a simple one's. */
static void add_figure(const struct operator_row *row, const char *key, int64_t more, int *figure)
{
	const char *full = text_format(row->reader->arena, "operators.%s.%s", row->name, key);
	int64_t sum = *figure + more;
	if (in_range(row->reader, row->path, full, (double)sum, operator_bounds))
		*figure = (int)sum;
}

/* chain: the latencies of a list in sequence; else its resources. */
static void add_parts(
        const struct operator_row *row, const cJSON *list, bool chain, struct operator_cost *cost)
{
	const cJSON *part;
	cJSON_ArrayForEach(part, list)
	{
		enum op_code code = op_code_of(part->string, strlen(part->string));
		const struct operator_cost *one = &row->platform->cost[code];
		if (code == OP_NONE || !cJSON_IsNumber(part) || (!one->latency && !one->lut)) {
			complain(row->reader, row->path,
			        "'operators.%s' is composed of '%s', which has no row of its own "
			        "above it",
			        row->name, part->string);
			continue;
		}
		const char *full =
		        text_format(row->reader->arena, "operators.%s.%s", row->name, part->string);
		if (!in_range(row->reader, row->path, full, part->valuedouble,
		            (struct figure_bounds){ 0, PARTS_MOST }))
			continue;
		int count = (int)part->valuedouble;
		if (chain) {
			add_figure(row, "latency", (int64_t)count * one->latency, &cost->latency);
			continue;
		}
		add_figure(row, "dsp", (int64_t)count * one->dsp, &cost->dsp);
		add_figure(row, "lut", (int64_t)count * one->lut, &cost->lut);
		add_figure(row, "ff", (int64_t)count * one->ff, &cost->ff);
		cost->parts += count;
	}
}

static struct operator_cost read_simple(const struct operator_row *row)
{
	struct operator_cost cost = { 0 };
	if (!cJSON_IsString(cJSON_GetObjectItemCaseSensitive(row->json, "source")))
		complain(row->reader, row->path, "'%s.%s' names no source", row->group, row->name);
	cost.latency = row_number(row, "latency");
	cost.dsp = row_number(row, "dsp");
	cost.lut = row_number(row, "lut");
	cost.ff = row_number(row, "ff");
	return cost;
}

static struct operator_cost read_row(const struct operator_row *row)
{
	struct operator_cost cost = { 0 };
	const cJSON *parts = cJSON_GetObjectItemCaseSensitive(row->json, "parts");
	const cJSON *chain = cJSON_GetObjectItemCaseSensitive(row->json, "chain");
	if (!parts)
		return read_simple(row);
	if (!cJSON_IsString(cJSON_GetObjectItemCaseSensitive(row->json, "source")))
		complain(row->reader, row->path, "'%s.%s' names no source", row->group, row->name);
	add_parts(row, parts, false, &cost);
	add_parts(row, chain, true, &cost);
	return cost;
}

static bool has_cost(enum op_code code)
{
	return (op_info[code].levels & LEVEL_BODY) && (op_info[code].levels & LEVEL_HARDWARE) &&
	        code != OP_CONSTANT;
}

/* Simple rows first, so that compositions find their parts. */
static void read_operators(struct platform_reader *reader, struct platform *platform)
{
	for (int composed = 0; composed < 2; composed++)
		for (int code = OP_NONE + 1; code < OP_COUNT; code++) {
			struct operator_row row = { .reader = reader,
				.platform = platform,
				.group = "operators",
				.name = op_info[code].name };
			if (!has_cost((enum op_code)code))
				continue;
			row.json = find_row(reader, "operators", row.name, &row.path);
			bool simple =
			        row.json && !cJSON_GetObjectItemCaseSensitive(row.json, "parts");
			if (row.json && simple == !composed)
				platform->cost[code] = read_row(&row);
			else if (!row.json && !composed)
				complain(reader, reader->file[0].path,
				        "the figure 'operators.%s' is missing", row.name);
		}
}

/* Without a row: three operators for f32, with 1.5 times the latency. */
static void read_double_operators(struct platform_reader *reader, struct platform *platform)
{
	for (int code = OP_NONE + 1; code < OP_COUNT; code++) {
		struct operator_row row = { .reader = reader,
			.platform = platform,
			.group = "operators_f64",
			.name = op_info[code].name };
		if (!has_cost((enum op_code)code))
			continue;
		struct operator_cost cost = platform->cost[code];
		row.json = find_row(reader, row.group, row.name, &row.path);
		platform->double_cost[code] = row.json
		        ? read_simple(&row)
		        : (struct operator_cost){ (cost.latency * 3 + 1) / 2, cost.dsp * 3,
			          cost.lut * 3, cost.ff * 3, cost.parts };
	}
}

/* Checks figures against each other. */
static void check_consistency(struct platform_reader *reader, const struct platform *platform)
{
	const char *path;
	if (platform->port_bits & (platform->port_bits - 1)) {
		find_row(reader, "ports", "bits", &path);
		complain(reader, path, "'ports.bits' is %d", platform->port_bits);
		diag_note(reader->diag, "a power of two");
	}
	find_row(reader, NULL, "idle_watts", &path);
	in_range(reader, path, "idle_watts", platform->idle_watts,
	        (struct figure_bounds){ 0, platform->watts });
}

/* --- keys: a misspelled key would leave the figure of the "like" platform, and of a duplicate only
 * the first is read */

static bool has_text(const char *left, const char *right)
{
	return left && right && !strcmp(left, right);
}

static const char *nearest_key(const char *group, const char *key)
{
	static const char *const texts[] = { "name", "part", "xpfm", "memory_tag", "like", "dies",
		"operators", "operators_f64" };
	struct closest_name closest_name = { .wanted = key };
	for (size_t i = 0; !group && i < COUNT(texts); i++)
		closest_name_consider(&closest_name, texts[i]);
	for (size_t i = 0; i < COUNT(figures); i++)
		if (!group || has_text(group, figures[i].group))
			closest_name_consider(&closest_name,
			        group || !figures[i].group ? figures[i].key : figures[i].group);
	for (size_t i = 0; has_text(group, "dies") && i < COUNT(resource_keys); i++)
		closest_name_consider(&closest_name, resource_keys[i].key);
	bool operators = has_text(group, "operators") || has_text(group, "operators_f64");
	for (int code = OP_NONE + 1; operators && code < OP_COUNT; code++)
		if (has_cost((enum op_code)code))
			closest_name_consider(&closest_name, op_info[code].name);
	return closest_name.found;
}

static void check_keys(
        struct platform_reader *reader, const char *path, const char *group, const cJSON *json)
{
	const cJSON *item;
	cJSON_ArrayForEach(item, json)
	{
		const char *closest_name = nearest_key(group, item->string);
		const cJSON *other = json->child;
		while (other != item && strcmp(other->string, item->string))
			other = other->next;
		if (strcmp(closest_name, item->string)) {
			complain(reader, path, "'%s' is no key of a platform",
			        dotted(reader, group, item->string));
			diag_note(reader->diag, "the nearest is '%s'",
			        dotted(reader, group, closest_name));
		} else if (other != item) {
			complain(reader, path, "'%s' stands there twice",
			        dotted(reader, group, item->string));
		}
	}
}

static void check_file(struct platform_reader *reader, const struct file *file)
{
	const cJSON *item;
	const cJSON *die;
	check_keys(reader, file->path, NULL, file->json);
	cJSON_ArrayForEach(item, file->json)
	{
		bool group = has_text(item->string, "operators") ||
		        has_text(item->string, "operators_f64");
		for (size_t i = 0; i < COUNT(figures); i++)
			group |= has_text(item->string, figures[i].group);
		if (group && cJSON_IsObject(item))
			check_keys(reader, file->path, item->string, item);
	}
	const cJSON *dies = cJSON_GetObjectItemCaseSensitive(file->json, "dies");
	cJSON_ArrayForEach(die, dies) if (cJSON_IsObject(die))
	        check_keys(reader, file->path, "dies", die);
}

/* These texts stand in makefiles, link configurations and shell lines, where other characters would
 * mean something. */
static const char *read_text(struct platform_reader *reader, const char *key)
{
	static const char letters[] =
	        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.+/";
	const char *path;
	const cJSON *item = find_row(reader, NULL, key, &path);
	const char *text = cJSON_IsString(item) ? item->valuestring : "";
	if (!cJSON_IsString(item))
		complain(reader, path, "the text '%s' is missing", key);
	else if (text[strspn(text, letters)]) {
		complain(reader, path, "the text '%s' has the character '%c'", key,
		        text[strspn(text, letters)]);
		diag_note(reader->diag, "letters, digits, and _ - . + /");
	}
	return text_copy(reader->arena, text, strlen(text));
}

static void unknown_platform(struct platform_reader *reader, const char *name, const char *reason)
{
	const char *const *names;
	int count = platform_names(reader->arena, &names);
	struct text list = text_new(reader->arena);
	for (int i = 0; i < count; i++)
		text_add(&list, "%s%s", i ? ", " : "", names[i]);
	diag_error(reader->diag, NOWHERE, "unknown platform '%s': %s", name, reason);
	diag_note(reader->diag, "one of %s, or the path of a .json file",
	        count ? list.data : "none (no platforms folder was found)");
	reader->failed = true;
}

static const char *platform_path(struct arena *arena, const char *name)
{
	size_t size = strlen(name);
	bool path = strchr(name, '/') || (size > 5 && !strcmp(name + size - 5, ".json"));
	return path ? name : data_path(arena, text_format(arena, "platforms/%s.json", name));
}

static int line_of(const char *text, const char *at)
{
	int line = 1;
	for (; text < at; text++)
		line += *text == '\n';
	return line;
}

/* Opens a file and its chain of "like" files; false after diagnostics. */
static bool open_file(struct platform_reader *reader, const char *name)
{
	size_t size;
	const char *reason;
	const char *path = platform_path(reader->arena, name);
	const char *text = file_read(reader->arena, path, &size, &reason);
	if (!text) {
		unknown_platform(reader, name, reason);
		return false;
	}
	const char *end = NULL;
	errno = 0;
	cJSON *json = cJSON_ParseWithOpts(text, &end, 1);
	if (!json && errno == ENOMEM)
		arena_exhausted(reader->arena, size);
	if (!cJSON_IsObject(json)) {
		cJSON_Delete(json);
		diag_error(reader->diag,
		        (struct location){ .file = path, .line = line_of(text, end), .column = 1 },
		        "this is not the JSON of a platform");
		return !(reader->failed = true);
	}
	reader->file[reader->files++] = (struct file){ path, json };
	const cJSON *like = cJSON_GetObjectItemCaseSensitive(json, "like");
	if (!cJSON_IsString(like))
		return true;
	if (reader->files < LIKE_MOST)
		return open_file(reader, like->valuestring);
	complain(reader, path, "'like' leads through more than %d files", LIKE_MOST);
	return false;
}

const struct platform *platform_load(struct arena *arena, struct diag *diag, const char *name)
{
	struct platform_reader reader = { .arena = arena, .diag = diag };
	struct platform *platform = ARENA_NEW(arena, struct platform);
	if (open_file(&reader, name)) {
		platform->name = read_text(&reader, "name");
		platform->part = read_text(&reader, "part");
		platform->xpfm = read_text(&reader, "xpfm");
		platform->memory_tag = read_text(&reader, "memory_tag");
		read_figures(&reader, platform);
		read_dies(&reader, platform);
		read_operators(&reader, platform);
		read_double_operators(&reader, platform);
		check_consistency(&reader, platform);
	}
	for (int i = 0; i < reader.files; i++)
		check_file(&reader, &reader.file[i]);
	for (int i = 0; i < reader.files; i++)
		cJSON_Delete(reader.file[i].json);
	return reader.failed ? NULL : platform;
}

static int compare_names(const void *left, const void *right)
{
	return strcmp(*(const char *const *)left, *(const char *const *)right);
}

int platform_names(struct arena *arena, const char *const **names)
{
	VEC(const char *) found = { 0 };
	DIR *folder = opendir(data_path(arena, "platforms"));
	for (struct dirent *entry; folder && (entry = readdir(folder));) {
		size_t size = strlen(entry->d_name);
		if (size > 5 && !strcmp(entry->d_name + size - 5, ".json"))
			VEC_PUSH(arena, &found, text_copy(arena, entry->d_name, size - 5));
	}
	if (folder)
		closedir(folder);
	if (found.count)
		qsort(found.data, found.count, sizeof *found.data, compare_names);
	*names = found.data;
	return (int)found.count;
}

/* DSPs for a product whose low bits as wide as the wider factor are kept: 18-bit digits, only the
 * pairs that reach them. A DSP takes 18 bits by 25, all with a sign. */
static int product_dsp(int bits, int narrow)
{
	int digits = (bits + 17) / 18;
	int low = digits * (digits + 1) / 2;
	int all = ((narrow + 15) / 17) * ((bits + 22) / 24);
	return all > 0 && all < low ? all : low;
}

/* The multiplier is as wide as the operands, whatever the type of the product. */
struct operator_cost platform_narrow(const struct platform *platform)
{
	struct operator_cost cost = platform->cost[OP_MULF];
	return (struct operator_cost){ cost.latency, 1, NARROW_LUT, cost.ff, 0 };
}

struct operator_cost platform_narrow_integer(const struct platform *platform)
{
	struct operator_cost cost = platform->cost[OP_SITOFP];
	return (struct operator_cost){ cost.latency, cost.dsp,
		cost.lut < INTEGER_LUT ? cost.lut : INTEGER_LUT,
		cost.ff < INTEGER_FF ? cost.ff : INTEGER_FF, 0 };
}

struct operator_cost platform_product(const struct platform *platform, int bits, int other)
{
	struct operator_cost cost = platform->cost[OP_MULI];
	int wide = bits > other ? bits : other;
	return (struct operator_cost){ cost.latency, product_dsp(wide, bits + other - wide),
		(cost.lut * wide + 31) / 32, (cost.ff * wide + 31) / 32, 0 };
}

struct operator_cost platform_scale(const struct platform *platform)
{
	struct operator_cost cost = platform->cost[OP_MULF];
	return (struct operator_cost){ cost.latency, 0, SCALE_LUT, cost.ff, 0 };
}

/* The table is for 32 bits; narrow floats compute as f32. */
bool operator_divides(enum op_code code)
{
	return code == OP_DIVSI || code == OP_DIVUI || code == OP_REMSI || code == OP_REMUI ||
	        code == OP_FLOORDIVSI;
}

struct operator_cost operator_of_width(struct operator_cost cost, enum op_code code, int width)
{
	int64_t rows = operator_divides(code) ? width : 1;
	int64_t all = operator_divides(code) ? 32 * 32 : 32;
	cost.lut = (int)ceil_div(cost.lut * rows * width, all);
	cost.ff = (int)ceil_div(cost.ff * rows * width, all);
	cost.latency += operator_divides(code) ? width - 32 : 0;
	return cost;
}

struct operator_cost platform_operator(
        const struct platform *platform, enum op_code code, const struct type *scalar)
{
	struct operator_cost cost = platform->cost[code];
	if (scalar->kind == TYPE_FLOAT && scalar->width == 64)
		return platform->double_cost[code];
	if (scalar->kind != TYPE_INTEGER)
		return cost;
	if (code == OP_MULI)
		return platform_product(platform, scalar->width, scalar->width);
	return operator_of_width(cost, code, scalar->width);
}

struct resources resources_add(struct resources left, struct resources right)
{
	return (struct resources){ left.lut + right.lut, left.ff + right.ff, left.dsp + right.dsp,
		left.bram18 + right.bram18, left.uram + right.uram };
}

struct resources resources_times(struct resources one, int64_t count)
{
	return (struct resources){ one.lut * count, one.ff * count, one.dsp * count,
		one.bram18 * count, one.uram * count };
}

static int64_t at_least_0(int64_t number)
{
	return number > 0 ? number : 0;
}

struct resources resources_subtract(struct resources all, struct resources used)
{
	const struct resources left = { all.lut - used.lut, all.ff - used.ff, all.dsp - used.dsp,
		all.bram18 - used.bram18, all.uram - used.uram };
	return (struct resources){ at_least_0(left.lut), at_least_0(left.ff), at_least_0(left.dsp),
		at_least_0(left.bram18), at_least_0(left.uram) };
}

int64_t resources_bytes(struct resources resources)
{
	return resources.bram18 * BRAM18_BYTES + resources.uram * URAM_BYTES;
}

static double share(int64_t used, int64_t has)
{
	return has ? (double)used / (double)has : 0;
}

double resources_share(struct resources used, struct resources has)
{
	const double of[] = { share(used.lut, has.lut), share(used.ff, has.ff),
		share(used.dsp, has.dsp), share(used.bram18, has.bram18),
		share(used.uram, has.uram) };
	double most = 0;
	for (size_t i = 0; i < COUNT(of); i++)
		most = of[i] > most ? of[i] : most;
	return most;
}

struct resources platform_total(const struct platform *platform)
{
	struct resources total = { 0 };
	for (int i = 0; i < platform->dies; i++)
		total = resources_add(total, platform->die[i]);
	return total;
}

struct resources platform_uncrowded(const struct platform *platform, int die)
{
	const struct resources has = platform->die[die];
	const struct resources part = platform->crowded;
	return (struct resources){ has.lut * part.lut / 100, has.ff * part.ff / 100,
		has.dsp * part.dsp / 100, has.bram18 * part.bram18 / 100,
		has.uram * part.uram / 100 };
}

/* At a slower clock operators keep their latency in cycles, and memory answers in fewer cycles. If
 * the period is at least that of a crowded design, longer wires are possible too. */
const struct platform *platform_slower(
        struct arena *arena, const struct platform *platform, double mhz)
{
	struct platform *slower = arena_copy(arena, platform, sizeof *platform);
	slower->clock_mhz = mhz;
	slower->memory_latency =
	        (int)(platform->memory_latency * mhz / platform->clock_mhz + 0.999);
	if (mhz * platform->crowded_period > platform->clock_mhz)
		return slower;
	slower->crowded.ff = platform->slower.ff;
	slower->crowded.bram18 = platform->slower.bram18;
	slower->crowded.uram = platform->slower.uram;
	slower->crossing_wires = platform->crossing_wires * platform->slower_wires / 100;
	return slower;
}

double platform_launch_ms(const struct platform *platform, int64_t cycles)
{
	return (double)cycles / (platform->clock_mhz * 1e3) + platform->launch_us / 1e3;
}

double platform_channel_rate(const struct platform *platform)
{
	return platform->channel_gbps * platform->channel_efficiency * 1e3 / platform->clock_mhz;
}
