/* Limits of scalar integer inputs: the token count of a launch, and the row of a state where it
 * writes. A launch without tokens would not end where its work is that of its tokens, and rows past
 * a state would be lost. */
#include "base/json.h"
#include "design.h"
#include <string.h>

static struct design_tensor *scalar_input(struct design *design, const char *name)
{
	struct design_tensor *tensor = name ? design_argument(design, name) : NULL;
	return tensor && tensor->dtype[0] == 'i' && tensor->bytes == (size_t)tensor->element_bytes
	        ? tensor
	        : NULL;
}

static void add_extent(struct design *design, struct design_extent extent)
{
	struct design_phase *phase = design->now;
	for (size_t i = 0; i < phase->extents.count; i++) {
		const struct design_extent *known = &phase->extents.data[i];
		if (known->at == extent.at && known->rows == extent.rows &&
		        known->state_rows == extent.state_rows && known->most == extent.most)
			return;
	}
	if (extent.at || extent.rows)
		VEC_PUSH(design->arena, &phase->extents, extent);
}

/* Extent of the dim in item `axis` of the entry; 0: there is none. */
static int64_t extent_of(const struct design_tensor *tensor, const struct json *entry)
{
	int64_t axis;
	return json_integer(json_get(entry, "axis"), &axis) && axis >= 0 && axis < tensor->rank
	        ? tensor->shape[axis]
	        : 0;
}

/* Reads the limits of a state. One row more than it holds is accepted: the row of a context's last
 * token, which no later token reads, overwrites the row before it. This may happen only once,
 * because a second token there would read it. */
static void read_state(
        struct design *design, const struct json *entry, const struct design_tensor *written)
{
	const struct design_tensor *state = design_argument(design, written->name);
	int64_t lead = 0;
	int64_t past;
	int64_t all = state && text_same(written->role, "state") ? extent_of(state, entry) : 0;
	int64_t most = extent_of(written, entry);
	json_integer(json_get(entry, "lead"), &lead);
	if (!all || !most || lead < 0 || lead > all)
		return;
	if (!json_integer(json_get(entry, "past"), &past) || past < 0 || past > all - lead)
		past = all - lead; /* no row only pads a block */
	add_extent(design,
	        (struct design_extent){ scalar_input(design, json_text(entry, "position")),
	                scalar_input(design, json_text(entry, "token_count")), past, 0, most });
}

void extents_read(struct design *design, const struct json *inputs, const struct json *outputs)
{
	struct design_tensor *tensor = design->now->tensors.data;
	for (const struct json *entry = inputs->first; entry; entry = entry->next, tensor++) {
		int64_t most = extent_of(tensor, entry);
		json_integer(json_get(entry, "step"), &tensor->step);
		struct design_tensor *rows =
		        most ? scalar_input(design, json_text(entry, "token_count")) : NULL;
		add_extent(design, (struct design_extent){ NULL, rows, 0, 1, most });
		if (rows && json_get(entry, "more_chunks"))
			rows->rows = most;
	}
	for (const struct json *entry = outputs->first; entry; entry = entry->next, tensor++)
		read_state(design, entry, tensor);
}

void extents_note(struct design_tensor *tensor, const void *data)
{
	bool integer = tensor->dtype[0] == 'i' && tensor->bytes == (size_t)tensor->element_bytes;
	tensor->number = integer && *(const signed char *)data < 0 ? -1 : 0;
	if (integer)
		memcpy(&tensor->number, data, tensor->bytes);
}

static bool extents_error(struct design *design, const char *what, int64_t low, int64_t high)
{
	diag_error(design->diag, NOWHERE, "%s", what);
	return diag_note(
	        design->diag, "accepted are %lld to %lld", (long long)low, (long long)high);
}

static bool is_followed(const struct design_tensor *counter)
{
	return counter->rows && counter->number == counter->rows + 1;
}

bool extents_followed(const struct design *design)
{
	bool followed = false;
	for (size_t i = 0; i < design->now->tensors.count; i++)
		followed |= is_followed(&design->now->tensors.data[i]);
	return followed;
}

/* Tokens of the first step. */
static int64_t first_tokens(const struct design_tensor *counter)
{
	return counter ? counter->number - is_followed(counter) : 1;
}

/* Tokens of all steps of a launch. */
static int64_t rows_of(const struct design_extent *extent, int64_t further_tokens)
{
	return first_tokens(extent->rows) + further_tokens;
}

static bool allows(
        struct design *design, const struct design_extent *extent, int64_t further_tokens)
{
	struct arena *arena = design->arena;
	int64_t first = first_tokens(extent->rows);
	if (extent->rows && (first < extent->least || first > extent->most))
		return extents_error(design,
		        text_format(arena, "'%s' is %lld", extent->rows->name, (long long)first),
		        extent->least, extent->most + (extent->rows->rows > 0));
	int64_t rows = rows_of(extent, further_tokens);
	int64_t least = design->last_row_replaced ? 2 : 1;
	int64_t last = extent->state_rows + 1 - (rows > least ? rows : least);
	if (!extent->at || (extent->at->number >= 0 && extent->at->number <= last))
		return true;
	if (last < 0)
		return diag_error(design->diag, NOWHERE,
		        "%lld tokens exceed the capacity of the KV cache, %lld", (long long)rows,
		        (long long)extent->state_rows + 1);
	const char *launch = "";
	if (rows > 1)
		launch = text_format(arena, " in a launch of %lld tokens", (long long)rows);
	else if (extent->at->number == extent->state_rows)
		launch = " again, which overwrites the cache row before it";
	return extents_error(design,
	        text_format(arena, "'%s' is %lld%s", extent->at->name,
	                (long long)extent->at->number, launch),
	        0, last);
}

bool extents_allow(struct design *design, int64_t further_tokens)
{
	for (size_t i = 0; i < design->now->extents.count; i++)
		if (!allows(design, &design->now->extents.data[i], further_tokens))
			return false;
	return true;
}

static void note_rows(
        struct design *design, const struct design_extent *extent, int64_t further_tokens)
{
	int64_t rows = rows_of(extent, further_tokens);
	if (extent->at && rows > 0 && extent->at->number + rows >= extent->state_rows)
		design->last_row_replaced = extent->at->number + rows > extent->state_rows;
}

void extents_advance(struct design *design, int64_t further_tokens)
{
	struct design_tensor *counted = design->now->feedback.rows < 0
	        ? NULL
	        : &design->now->tensors.data[design->now->feedback.rows];
	uint64_t rows = (uint64_t)further_tokens + (uint64_t)first_tokens(counted);
	for (size_t i = 0; i < design->now->extents.count; i++)
		note_rows(design, &design->now->extents.data[i], further_tokens);
	for (size_t i = 0; i < design->now->tensors.count; i++)
		design->now->tensors.data[i].number =
		        (int64_t)((uint64_t)design->now->tensors.data[i].number +
		                (uint64_t)design->now->tensors.data[i].step * rows);
	if (counted)
		counted->number = 1;
}
