/* `stc itensor TYPE`: lists the tiles of an itensor type in order.  `stc itensor TYPE TYPE`:
 * compares two types, and prints the reorder buffer that converts one to the other. */
#include "driver/command_line.h"
#include "base/json.h"
#include "pipeline/session.h"
#include "import/import.h"
#include "itensor/itensor.h"
#include <inttypes.h>

#define LISTED_MOST 100000 /* tiles */

static const struct type *take_type(struct session *session, const char *name, const char *text)
{
	const struct type *type = import_itensor(session->module, &session->diag, name, text);
	const char *fault = type ? itensor_fault(session->arena, type) : NULL;
	if (!fault)
		return type;
	diag_error(&session->diag, (struct location){ .file = name }, "%s: %s", type->text, fault);
	diag_note(&session->diag,
	        "accepted are a number or a vector with one extent for each map result, positive "
	        "trip counts and steps, one for each map dim, "
	        "and tiles within 2^48 elements from 0 on");
	return NULL;
}

static void add_numbers(struct text *out, int count, const int64_t *number)
{
	text_add(out, "[");
	for (int i = 0; i < count; i++)
		text_add(out, "%s%" PRId64, i ? "," : "", number[i]);
	text_add(out, "]");
}

static void list_tiles(struct session *session, const struct type *type)
{
	struct text *out = &session->out;
	struct walk walk = itensor_walk(session->arena, type);
	bool json = session->options.json;
	bool more = true;
	int64_t *counter = ARENA_ARRAY(session->arena, int64_t, walk.loops + 1);
	int64_t *offset = ARENA_ARRAY(session->arena, int64_t, walk.rank + 1);
	int64_t tiles = itensor_tiles(type->itensor);
	int64_t listed = 0;
	if (json)
		text_add(out, "{\"tiles\":%" PRId64 ",\"offsets\":[", tiles);
	for (; more && listed < LISTED_MOST; listed++) {
		walk_at(walk, counter, offset);
		text_add(out, json && listed ? "," : "");
		add_numbers(out, walk.rank, offset);
		text_add(out, json ? "" : "\n");
		more = walk_next(walk, counter);
	}
	text_add(out, json ? "]}\n" : "");
	if (listed < tiles)
		text_add(&session->notices,
		        "stc: the first %" PRId64 " of %" PRId64 " tiles are listed\n", listed,
		        tiles);
}

static void add_tile(struct text *out, const struct type *type, const int64_t *offset)
{
	if (!offset) {
		text_add(out, "not there");
		return;
	}
	text_add(out, "%s at ", type->element->text);
	add_numbers(out, type->itensor->map.results, offset);
}

static void print_mismatch(struct session *session, const struct type *left,
        const struct type *right, struct sequence_mismatch sequence_mismatch)
{
	struct text *out = &session->notices;
	if (!sequence_mismatch.found)
		return;
	text_add(out, "stc: tile %" PRId64 " is ", sequence_mismatch.tile);
	add_tile(out, left, sequence_mismatch.left);
	text_add(out, " in the first type and ");
	add_tile(out, right, sequence_mismatch.right);
	text_add(out, " in the second\n");
}

static void compare(struct session *session, const struct type *left, const struct type *right)
{
	struct text *out = &session->out;
	struct walk from = walk_normal(session->arena, itensor_walk(session->arena, left));
	struct walk to = walk_normal(session->arena, itensor_walk(session->arena, right));
	if (walk_same(from, to)) {
		text_add(out, "{\"equal\":true}\n");
		return;
	}
	print_mismatch(session, left, right, walk_mismatch(session->arena, from, to));
	struct reorder reorder = walk_reorder(session->arena, from, to);
	text_add(out, "{\"equal\":false,\"buffer_shape\":");
	if (reorder.why) {
		text_add(out, "null,\"why\":");
		json_quote(out, reorder.why);
		text_add(out, "}\n");
		return;
	}
	add_numbers(out, from.rank, reorder.shape);
	text_add(out, ",\"halves\":%d,\"shared_loops\":%d,\"bytes\":%" PRId64 "}\n", reorder.halves,
	        reorder.shared, reorder.bytes);
}

bool command_itensor(struct session *session)
{
	const struct options *options = &session->options;
	session->module = module_new(session->arena, &session->guard, &session->diag, LEVEL_STREAM);
	const struct type *left =
	        take_type(session, options->second ? "first type" : "type", options->file);
	const struct type *right = NULL;
	if (options->second)
		right = take_type(session, "second type", options->second);
	if (session->diag.count || !left)
		return false;
	if (right)
		compare(session, left, right);
	else
		list_tiles(session, left);
	return true;
}
