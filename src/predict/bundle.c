/* Reads the AXI bundles of a design's ports and counts the words that a launch moves through
 * them. */
#include "predict/bundle.h"
#include "base/map.h"

#define OUTSTANDING_MOST 256 /* maximum of an adapter (UG1399) */

const char *bundle_of(const struct op *main, int argument)
{
	const struct attr *bundle = function_argument_attr(main, argument, KEY_STREAM_BUNDLE);
	if (bundle && bundle->text)
		return bundle->text;
	const struct attr *port = function_argument_attr(main, argument, KEY_STREAM_PORT);
	return port && port->text ? port->text : "";
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

const bool *bundle_shared(struct arena *arena, const struct op *main)
{
	struct map first = map_new(arena);
	const struct block *body = main->region[0];
	bool *shared = ARENA_ARRAY(arena, bool, body->arguments + 1);
	for (int i = 0; i < body->arguments; i++) {
		if (body->argument[i]->type->kind != TYPE_MEMREF)
			continue;
		bool *other = map_get(&first, bundle_of(main, i));
		shared[i] = other;
		if (other)
			*other = true;
		else
			map_set(&first, bundle_of(main, i), &shared[i]);
	}
	return shared;
}

int bundle_burst(const struct op *main, int argument, int burst)
{
	const struct attr *own = function_argument_attr(main, argument, KEY_STREAM_BURST);
	return own && own->kind == ATTR_INTEGER && own->integer > 0 && own->integer < burst
	        ? (int)own->integer
	        : burst;
}

bool bundle_is_single(const struct op *main, int argument)
{
	const struct block *body = main->region[0];
	for (int i = 0; i < body->arguments; i++)
		if (body->argument[i]->type->kind == TYPE_MEMREF &&
		        text_same(bundle_of(main, i), bundle_of(main, argument)) &&
		        bundle_burst(main, i, BUNDLE_SHORT_BURST) == BUNDLE_SHORT_BURST)
			return false;
	return true;
}

int bundle_outstanding(const struct op *main, int argument, int outstanding)
{
	const struct attr *own = function_argument_attr(main, argument, KEY_STREAM_OUTSTANDING);
	return own && own->kind == ATTR_INTEGER && own->integer > 0 &&
	                own->integer < OUTSTANDING_MOST
	        ? (int)own->integer
	        : outstanding;
}

static int64_t words_in(const struct block *block, const struct value *port, bool layered,
        int extents, const struct extent_value *extent)
{
	int64_t words = 0;
	for (const struct op *op = block->first; op; op = op->next) {
		words += !layered && op_accessed(op) == port;
		if (op->code == OP_FOR)
			words += timing_trips(op, extents, extent) *
			        words_in(op->region[0], port,
			                layered && !attr_get(op, KEY_STREAM_LAYER), extents,
			                extent);
	}
	return words;
}

int64_t bundle_words(const struct module *module, const struct block *main,
        const struct value *port, bool layered, struct extent_list extents)
{
	int64_t words = 0;
	for (const struct op *call = main->first; call; call = call->next)
		for (int i = 0; call->code == OP_CALL && i < call->operands; i++)
			if (call->operand[i] == port) {
				const struct block *body =
				        module_find(module, attr_text_or(call, KEY_CALLEE, ""))
				                ->region[0];
				words += words_in(body, body->argument[i], layered, extents.count,
				        extents.value);
			}
	return words;
}

static double moved_bytes(
        const struct module *module, int argument, int extents, const struct extent_value *extent)
{
	const struct block *body = module_main(module)->region[0];
	const struct value *port = body->argument[argument];
	if (port->type->kind != TYPE_MEMREF)
		return 0;
	const struct extent_list list = { extents, extent };
	return (double)bundle_words(module, body, port, false, list) *
	        (double)type_bits(port->type->element) / 8;
}

struct bundle_channel bundle_busiest_channel(struct arena *arena, const struct platform *platform,
        const struct module *module, int extents, const struct extent_value *extent)
{
	const struct op *main = module_main(module);
	struct map seen = map_new(arena);
	struct bundle_channel *channel =
	        ARENA_ARRAY(arena, struct bundle_channel, platform->channels);
	struct bundle_channel *busiest = channel;
	for (int i = 0; i < main->region[0]->arguments; i++) {
		const struct attr *number = function_argument_attr(main, i, KEY_STREAM_CHANNEL);
		double cycles =
		        moved_bytes(module, i, extents, extent) / platform_channel_rate(platform);
		if (cycles <= 0)
			continue;
		struct bundle_channel *own = &channel[number && number->kind == ATTR_INTEGER &&
		                        number->integer > 0 && number->integer < platform->channels
		                ? number->integer
		                : 0];
		*own = (struct bundle_channel){ .number = (int)(own - channel),
			.adapters = own->adapters + !map_get(&seen, bundle_of(main, i)),
			.cycles = own->cycles + cycles };
		map_set(&seen, bundle_of(main, i), own);
		busiest = own->cycles > busiest->cycles ? own : busiest;
	}
	return *busiest;
}

double bundle_cycles(struct arena *arena, const struct platform *platform,
        const struct module *module, int extents, const struct extent_value *extent)
{
	const struct op *main = module_main(module);
	const struct block *body = main->region[0];
	struct map place = map_new(arena);
	double *bytes = ARENA_ARRAY(arena, double, body->arguments + 1);
	double most = 0;
	for (int i = 0; i < body->arguments; i++) {
		if (body->argument[i]->type->kind != TYPE_MEMREF ||
		        bundle_burst(main, i, platform->burst) < platform->burst)
			continue;
		const char *name = bundle_of(main, i);
		if (!map_get(&place, name))
			map_set(&place, name, &bytes[i]);
		double *own = map_get(&place, name);
		*own += moved_bytes(module, i, extents, extent);
		most = *own > most ? *own : most;
	}
	double adapter = most / (PORT_BITS / 8);
	double channel = bundle_busiest_channel(arena, platform, module, extents, extent).cycles;
	return adapter > channel ? adapter : channel;
}
