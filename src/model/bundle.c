#include "model/bundle.h"
#include "base/map.h"

const char *bundle_of(const struct op *main, int argument)
{
	const struct attr *bundle = function_argument_attr(main, argument, "stream.bundle"), *port = function_argument_attr(main, argument, "stream.port");
	return bundle && bundle->text ? bundle->text : port && port->text ? port->text : "";
}

int bundle_count(struct arena *arena, const struct op *main)
{
	struct map bundles = map_new(arena);
	const struct block *body = main->region[0];
	for (int i = 0; i < body->arguments; i++)
		if (body->argument[i]->type->kind == TYPE_MEMREF)
			map_set(&bundles, bundle_of(main, i), body->argument[i]);
	return (int)bundles.entries.count;
}

int bundle_burst(const struct op *main, int argument, int burst)
{
	const struct attr *own = function_argument_attr(main, argument, "stream.burst");
	return own && own->kind == ATTR_INTEGER && own->integer > 0 && own->integer < burst ? (int)own->integer : burst;
}
