/* Checks the interface of a model: one public function, static shapes, and a name and a role for
 * every argument and result. */
#include "import/read.h"
#include <string.h>

#define FED_MOST 64 /* maximum elements of an input that an output feeds */

struct signature_side {
	enum attr_key list; /* arg_attrs or res_attrs */
	const char *noun;
	const char *name;     /* argN or resultN */
	const char *role;     /* the default */
	const char *roles[4]; /* accepted roles */
};

static const struct signature_side arguments = { KEY_ARG_ATTRS, "argument", "arg", "input",
	{ "weight", "input", "state" } };
static const struct signature_side results = { KEY_RES_ATTRS, "result", "result", "output",
	{ "output", "state" } };

static bool is_role(const struct signature_side *side, const char *role)
{
	for (int i = 0; side->roles[i]; i++)
		if (!strcmp(side->roles[i], role))
			return true;
	return false;
}

static const struct attr *item(const struct attr *list, int index, enum attr_key key)
{
	const struct attr *dictionary = list && list->kind == ATTR_ARRAY && index < list->count
	        ? list->items[index].value
	        : NULL;
	return dictionary ? attr_item(dictionary, key) : NULL;
}

static const char *text_or(const struct attr *attr, const char *absent)
{
	return attr && attr->kind == ATTR_STRING && *attr->text ? attr->text : absent;
}

/* Keeps only stream attributes, and adds missing names and roles. */
static const struct attr *complete(struct module *module, const struct signature_side *side,
        const struct attr *list, int index)
{
	VEC(struct named) items = { 0 };
	const struct attr *given = list && index < list->count ? list->items[index].value : NULL;
	const char *name = text_or(item(list, index, KEY_STREAM_NAME),
	        text_format(module->arena, "%s%d", side->name, index));
	const char *role = text_or(item(list, index, KEY_STREAM_ROLE), side->role);
	struct named added[] = { { key_name(KEY_STREAM_NAME), attr_string(module, name) },
		{ key_name(KEY_STREAM_ROLE), attr_string(module, role) } };
	for (int i = 0; i < 2; i++)
		VEC_PUSH(module->arena, &items, added[i]);
	for (int i = 0; given && given->kind == ATTR_DICTIONARY && i < given->count; i++) {
		const char *key = given->items[i].name;
		bool ours = !strncmp(key, "stream.", 7) &&
		        strcmp(key, key_name(KEY_STREAM_NAME)) != 0 &&
		        strcmp(key, key_name(KEY_STREAM_ROLE)) != 0;
		if (ours)
			VEC_PUSH(module->arena, &items, given->items[i]);
	}
	return attr_dictionary(module, (int)items.count, items.data);
}

static void complete_side(
        struct module *module, struct op *function, const struct signature_side *side, int count)
{
	const struct attr *list = attr_get(function, side->list);
	if (list && list->kind != ATTR_ARRAY)
		list = NULL;
	const struct attr **all = ARENA_ARRAY(module->arena, const struct attr *, count);
	for (int i = 0; i < count; i++)
		all[i] = complete(module, side, list, i);
	attr_set(module, function, side->list, count ? attr_array(module, count, all) : NULL);
}

static bool check_side(struct module *module, const struct op *function,
        const struct signature_side *side, int count)
{
	const struct attr *list = attr_get(function, side->list);
	struct map seen = map_new(module->arena);
	bool good = true;
	for (int i = 0; i < count; i++) {
		const char *name = item(list, i, KEY_STREAM_NAME)->text;
		const char *role = item(list, i, KEY_STREAM_ROLE)->text;
		if (!text_is_utf8(name)) {
			good = diag_error(module->diag, function->location,
			        "the name of %s %d is no UTF-8", side->noun, i);
			diag_note(module->diag, "accepted are texts of Unicode");
		}
		if (map_get(&seen, name)) {
			good = diag_error(module->diag, function->location,
			        "two %ss are named \"%s\"", side->noun, name);
			diag_note(module->diag,
			        "accepted is a name of its own for each (attribute stream.name)");
		}
		map_set(&seen, name, module);
		if (!is_role(side, role)) {
			good = diag_error(module->diag, function->location,
			        "\"%s\" has the unknown role \"%s\"", name, role);
			diag_note(module->diag, "accepted are stream.role = %s, %s%s%s",
			        side->roles[0], side->roles[1], side->roles[2] ? ", " : "",
			        side->roles[2] ? side->roles[2] : "");
		}
	}
	return good;
}

static const struct type *argument_named(
        const struct op *function, const struct type *type, const char *name, const char *role)
{
	for (int i = 0; i < type->inputs; i++) {
		const struct attr *list = attr_get(function, KEY_ARG_ATTRS);
		bool same = !strcmp(item(list, i, KEY_STREAM_NAME)->text, name) &&
		        !strcmp(item(list, i, KEY_STREAM_ROLE)->text, role);
		if (same)
			return type->input[i];
	}
	return NULL;
}

static bool is_integer(const struct type *type)
{
	return type && type->kind == TYPE_TENSOR && type_elements(type) == 1 &&
	        type_scalar(type)->kind == TYPE_INTEGER;
}

static bool refuse_state(
        struct module *module, const struct op *function, const char *name, const char *wanted)
{
	diag_error(module->diag, function->location,
	        "the state result \"%s\" does not say where its row belongs", name);
	return diag_note(module->diag, "accepted is %s", wanted);
}

/* Checks a result that appends rows to the state of its name: equal extents except for `axis`,
 * written from the index in input `at` on. */
static bool check_state(
        struct module *module, const struct op *function, const struct type *type, int index)
{
	const struct attr *list = attr_get(function, KEY_RES_ATTRS);
	const char *name = item(list, index, KEY_STREAM_NAME)->text;
	if (strcmp(item(list, index, KEY_STREAM_ROLE)->text, "state") != 0)
		return true;
	const struct type *row = type->output[index];
	const struct type *state = argument_named(function, type, name, "state");
	const struct attr *axis = item(list, index, KEY_STREAM_AXIS);
	const struct attr *at = item(list, index, KEY_STREAM_POSITION);
	const struct attr *rows = item(list, index, KEY_STREAM_TOKEN_COUNT);
	if (!state || state->rank != row->rank || state->element != row->element)
		return refuse_state(module, function, name,
		        "an argument with the same name, role state, rank and element type");
	if (!axis || axis->kind != ATTR_INTEGER || axis->integer < 0 || axis->integer >= row->rank)
		return refuse_state(
		        module, function, name, "stream.axis = N : i64, one of its dimensions");
	if (!at || at->kind != ATTR_STRING || !argument_named(function, type, at->text, "input"))
		return refuse_state(module, function, name,
		        "stream.position = \"NAME\", an input with the position");
	if (rows &&
	        (rows->kind != ATTR_STRING ||
	                !is_integer(argument_named(function, type, rows->text, "input"))))
		return refuse_state(module, function, name,
		        "stream.token_count = \"NAME\", an input of one integer with the number of "
		        "rows to write");
	if (row->shape[axis->integer] > state->shape[axis->integer])
		return refuse_state(module, function, name, "no more rows than the state has");
	for (int i = 0; i < row->rank; i++)
		if (i != axis->integer && row->shape[i] != state->shape[i])
			return refuse_state(module, function, name,
			        "a row with the extents of the state but for stream.axis");
	return true;
}

static bool refuse_next(
        struct module *module, const struct op *function, int index, const char *wanted)
{
	diag_error(module->diag, function->location,
	        "the input \"%s\" cannot be taken from an output, or moved on, for the next token",
	        item(attr_get(function, KEY_ARG_ATTRS), index, KEY_STREAM_NAME)->text);
	return diag_note(module->diag, "accepted is %s", wanted);
}

static bool holds_ids(const struct type *type)
{
	return type && type->kind == TYPE_TENSOR && type_scalar(type)->kind == TYPE_INTEGER &&
	        type_scalar(type)->width >= 32;
}

/* The fed input (its first row where tokens are counted) must have as many elements as the output,
 * and few enough to be copied one by one. */
static bool is_fed_by(
        const struct op *function, const struct type *type, int input, const char *name)
{
	const struct attr *list = attr_get(function, KEY_RES_ATTRS);
	const struct attr *given = attr_get(function, KEY_ARG_ATTRS);
	const struct attr *rows = item(given, input, KEY_STREAM_TOKEN_COUNT);
	const struct attr *axis = item(given, input, KEY_STREAM_AXIS);
	int64_t elements = type_elements(type->input[input]) /
	        (rows && type_elements(type->input[input])
	                        ? type->input[input]->shape[axis->integer]
	                        : 1);
	for (int r = 0; r < type->outputs; r++)
		if (!strcmp(item(list, r, KEY_STREAM_NAME)->text, name) &&
		        !strcmp(item(list, r, KEY_STREAM_ROLE)->text, "output"))
			return holds_ids(type->input[input]) && holds_ids(type->output[r]) &&
			        elements == type_elements(type->output[r]) && elements <= FED_MOST;
	return false;
}

/* stream.next and stream.step: the feedback between tokens of one launch. */
static bool check_next(struct module *module, const struct op *function, const struct type *type)
{
	const struct attr *list = attr_get(function, KEY_ARG_ATTRS);
	int fed = 0;
	for (int i = 0; i < type->inputs; i++) {
		const struct attr *next = item(list, i, KEY_STREAM_NEXT);
		const struct attr *step = item(list, i, KEY_STREAM_STEP);
		const struct attr *output = attr_item(next, KEY_OUTPUT);
		bool input = !strcmp(item(list, i, KEY_STREAM_ROLE)->text, "input");
		fed += next != NULL;
		if (next &&
		        (!input || !output || output->kind != ATTR_STRING ||
		                !is_fed_by(function, type, i, output->text) ||
		                attr_item_integer(next, KEY_MOST, 0) < 1 || fed > 1))
			return refuse_next(module, function, i,
			        text_format(module->arena,
			                "one input with stream.next = {output = \"NAME\", most = "
			                "COUNT : i64}, the output as many integers of 32 or 64 "
			                "bits as the input, or as a row of it where rows count, "
			                "at most %d",
			                FED_MOST));
		if (step &&
		        (!input || step->kind != ATTR_INTEGER || !holds_ids(type->input[i]) ||
		                type_elements(type->input[i]) != 1))
			return refuse_next(module, function, i,
			        "stream.step = COUNT : i64 on an input of one integer of 32 or 64 "
			        "bits");
	}
	return true;
}

/* Checks an input with a run-time number of rows along an axis, which a scalar integer input
 * holds. */
static bool check_rows(
        struct module *module, const struct op *function, const struct type *type, int index)
{
	const struct attr *list = attr_get(function, KEY_ARG_ATTRS);
	const struct attr *rows = item(list, index, KEY_STREAM_TOKEN_COUNT);
	const struct attr *axis = item(list, index, KEY_STREAM_AXIS);
	const struct type *own = type->input[index];
	if (!rows)
		return true;
	bool known = rows->kind == ATTR_STRING &&
	        is_integer(argument_named(function, type, rows->text, "input"));
	if (known && axis && axis->kind == ATTR_INTEGER && axis->integer >= 0 &&
	        own->kind == TYPE_TENSOR && axis->integer < own->rank)
		return true;
	diag_error(module->diag, function->location, "\"%s\" does not say which of its rows count",
	        item(list, index, KEY_STREAM_NAME)->text);
	return diag_note(module->diag,
	        "accepted are stream.token_count = \"NAME\", an input of one integer with their "
	        "number, and stream.axis = N : i64, the dimension of the rows");
}

static bool check_results(struct module *module, const struct op *function, const struct type *type)
{
	bool good = true;
	if (type->outputs == 0)
		return diag_error(module->diag, function->location, "the function has no results"),
		       diag_note(module->diag, "accepted is at least one tensor");
	for (int i = 0; i < type->outputs; i++) {
		const struct type *result = type->output[i];
		if (result->kind != TYPE_TENSOR) {
			good = diag_error(module->diag, function->location, "result %d is %s", i,
			        result->text);
			diag_note(module->diag, "accepted are tensors");
		} else if (type_elements(result) == 0) {
			good = diag_error(module->diag, function->location,
			        "result %d, %s, has no elements", i, result->text);
			diag_note(module->diag,
			        "accepted are extents of at least 1 (arguments may be empty)");
		} else {
			good = check_state(module, function, type, i) && good;
		}
	}
	return good;
}

static bool check_arguments(
        struct module *module, const struct op *function, const struct type *type)
{
	bool good = true;
	for (int i = 0; i < type->inputs; i++) {
		if (type->input[i]->kind == TYPE_TENSOR)
			continue;
		good = diag_error(module->diag, function->location, "argument %d is %s", i,
		        type->input[i]->text);
		diag_note(module->diag,
		        "accepted are tensors; a scalar is a tensor without dimensions");
	}
	return good;
}

static struct op *only_function(struct module *module)
{
	struct op *found = NULL;
	struct location top = module->op->location;
	for (struct op *op = module_body(module)->first; op; op = op->next) {
		if (op->code != OP_FUNC) {
			diag_error(module->diag, op->location, "%s outside a function",
			        op_info[op->code].name);
			return NULL;
		}
		if (found) {
			diag_error(module->diag, op->location, "a second function, @%s",
			        attr_text_or(op, KEY_SYM_NAME, ""));
			diag_note(module->diag,
			        "accepted is one function per module; the first is @%s",
			        attr_text_or(found, KEY_SYM_NAME, ""));
			return NULL;
		}
		found = op;
	}
	if (!found) {
		diag_error(module->diag, top, "the module has no public function");
		diag_note(module->diag, "accepted is one func.func, the model");
	}
	return found;
}

bool import_boundary(struct module *module)
{
	struct op *function = only_function(module);
	if (!function)
		return false;
	const struct type *type = attr_get(function, KEY_FUNCTION_TYPE)->type;
	attr_set(module, function, KEY_SYM_VISIBILITY, NULL);
	complete_side(module, function, &arguments, type->inputs);
	complete_side(module, function, &results, type->outputs);
	bool good = check_side(module, function, &arguments, type->inputs);
	good = check_side(module, function, &results, type->outputs) && good;
	good = check_arguments(module, function, type) && good;
	for (int i = 0; good && i < type->inputs; i++)
		good = check_rows(module, function, type, i);
	return good && check_results(module, function, type) && check_next(module, function, type);
}
