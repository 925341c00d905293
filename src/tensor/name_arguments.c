/* Names the arguments and results of main (stream.name, stream.role), and checks those that are
 * named.
 * Before: arguments and results without attributes     After: argN, input; resultN, output
 * A default name that is taken gets a number.  A result of role `state` names the state argument
 * that its row is written to, and needs stream.axis and stream.position (the input that holds the
 * position).
 * Needs: a module as imported.
 * Guarantees: names are unique, roles are known, each state result has its argument.
 * Exact.
 * Ends: each argument and result is visited twice. */
#include "tensor/tensor_passes.h"
#include <string.h>

/* An argument or a result. */
struct signature_entry {
	const char *name, *role;
	const struct attr *attributes; /* dictionary; may be NULL */
};

struct ports {
	struct module *module;
	struct op *main;
	int count;
	struct signature_entry *port;
};

static const char *text_of(const struct attr *dictionary, enum attr_key key)
{
	const struct attr *value = attr_item(dictionary, key);
	return value && value->kind == ATTR_STRING ? value->text : NULL;
}

static bool known_role(const char *role, bool result)
{
	static const char *const arguments[] = { "weight", "input", "state", NULL };
	static const char *const results[] = { "output", "state", NULL };
	for (const char *const *known = result ? results : arguments; *known; known++)
		if (!strcmp(*known, role))
			return true;
	return false;
}

static bool read_ports(struct ports *ports, enum attr_key list, int count, bool result)
{
	struct module *module = ports->module;
	const struct attr *all = attr_get(ports->main, list);
	ports->count = count;
	ports->port = ARENA_ARRAY(module->arena, struct signature_entry, count);
	for (int i = 0; i < count; i++) {
		const struct attr *attributes = all && i < all->count ? all->items[i].value : NULL;
		const char *standard = result ? "output" : "input";
		const char *role = text_of(attributes, KEY_STREAM_ROLE);
		ports->port[i] = (struct signature_entry){ text_of(attributes, KEY_STREAM_NAME),
			role ? role : standard, attributes };
		if (known_role(ports->port[i].role, result))
			continue;
		diag_error(module->diag, ports->main->location,
		        "%s %d of main has stream.role \"%s\"", result ? "result" : "argument", i,
		        role);
		return diag_note(module->diag,
		        result ? "known roles: output, state"
		               : "known roles: weight, input, state");
	}
	return true;
}

static const char *free_name(struct module *module, const struct map *taken, const char *name)
{
	const char *candidate = name;
	for (int n = 1; map_get(taken, candidate); n++)
		candidate = text_format(module->arena, "%s_%d", name, n);
	return candidate;
}

/* Names of the module first, so that a default never takes one of them. */
static void make_unique(struct ports *ports, const char *prefix, bool result)
{
	struct module *module = ports->module;
	struct map taken = map_new(module->arena);
	for (int pass = 0; pass < 2; pass++)
		for (int i = 0; i < ports->count; i++) {
			struct signature_entry *port = &ports->port[i];
			bool named = text_of(port->attributes, KEY_STREAM_NAME) != NULL;
			if (named != (pass == 0) || (result && !strcmp(port->role, "state")))
				continue;
			port->name = free_name(module, &taken,
			        named ? port->name : text_format(module->arena, "%s%d", prefix, i));
			map_set(&taken, port->name, port);
		}
}

static const struct attr *port_attr(struct module *module, const struct signature_entry *port)
{
	const struct attr *attr = attr_with(
	        module, port->attributes, KEY_STREAM_NAME, attr_string(module, port->name));
	return attr_with(module, attr, KEY_STREAM_ROLE, attr_string(module, port->role));
}

static void write_ports(const struct ports *ports, enum attr_key list)
{
	const struct attr **items =
	        ARENA_ARRAY(ports->module->arena, const struct attr *, ports->count);
	for (int i = 0; i < ports->count; i++)
		items[i] = port_attr(ports->module, &ports->port[i]);
	attr_set(ports->module, ports->main, list,
	        ports->count ? attr_array(ports->module, ports->count, items) : NULL);
}

static const struct signature_entry *find_port(
        const struct ports *ports, const char *name, const char *role)
{
	for (int i = 0; name && i < ports->count; i++)
		if (!strcmp(ports->port[i].name, name) && !strcmp(ports->port[i].role, role))
			return &ports->port[i];
	return NULL;
}

static bool check_state(const struct ports *arguments, const struct ports *results, int index)
{
	const struct signature_entry *result = &results->port[index];
	struct diag *diag = results->module->diag;
	if (!find_port(arguments, result->name, "state")) {
		diag_error(diag, results->main->location,
		        "result %d of main has role state, but no argument of role state is named "
		        "\"%s\"",
		        index, result->name ? result->name : "");
		return diag_note(
		        diag, "give the result the stream.name of the state that it continues");
	}
	if (!attr_item(result->attributes, KEY_STREAM_AXIS) ||
	        !find_port(arguments, text_of(result->attributes, KEY_STREAM_POSITION), "input")) {
		diag_error(diag, results->main->location,
		        "result %d of main (state \"%s\") lacks stream.axis or stream.position",
		        index, result->name);
		return diag_note(diag,
		        "stream.axis is the dim that grows, stream.position the stream.name of the "
		        "input that holds the position");
	}
	return true;
}

bool name_arguments(struct pass_context *context, struct module *module)
{
	(void)context;
	struct ports arguments = { .module = module, .main = module_main(module) };
	struct ports results = arguments;
	const struct type *type = attr_get(arguments.main, KEY_FUNCTION_TYPE)->type;
	if (!read_ports(&arguments, KEY_ARG_ATTRS, type->inputs, false) ||
	        !read_ports(&results, KEY_RES_ATTRS, type->outputs, true))
		return false;
	make_unique(&arguments, "arg", false);
	make_unique(&results, "result", true);
	for (int i = 0; i < results.count; i++)
		if (!strcmp(results.port[i].role, "state") && !check_state(&arguments, &results, i))
			return false;
	write_ports(&arguments, KEY_ARG_ATTRS);
	write_ports(&results, KEY_RES_ATTRS);
	return true;
}
