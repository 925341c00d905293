/* Joins the second phase's module to the first: buffers with the same contents become one, and
 * ports and AXI adapters are shared where word, direction and memory channel allow it. */
#include "explore/join_phases.h"
#include "ir/print.h"
#include "predict/resource.h"
#include <string.h>

#define DIMS_MOST 32

struct join {
	struct arena *arena;
	const struct phase *first, *second;
	const struct op *main[2];
	bool *taken; /* [ports of the first] used by a port of the second */
	struct joined *joined;
};

/* ---- tensors */

static const struct attr *input_named(const struct op *main, const char *name)
{
	return attr_entry(attr_get(main, KEY_STREAM_INPUTS), name);
}

static bool has_role(const struct attr *item, const char *role)
{
	return text_same(attr_item(item, KEY_ROLE)->text, role);
}

static const char *attr_words(struct arena *arena, const struct attr *attr)
{
	struct text text = text_new(arena);
	if (attr)
		attr_print(attr, &text);
	return text.size ? text.data : "";
}

/* The same tensor of the host: equal role, type and, for a weight, origin. */
static bool same_tensor(struct arena *arena, const struct attr *left, const struct attr *right)
{
	return left && right &&
	        text_same(attr_item(left, KEY_ROLE)->text, attr_item(right, KEY_ROLE)->text) &&
	        text_same(attr_item(left, KEY_TYPE)->type->text,
	                attr_item(right, KEY_TYPE)->type->text) &&
	        text_same(attr_words(arena, attr_item(left, KEY_DERIVED_FROM)),
	                attr_words(arena, attr_item(right, KEY_DERIVED_FROM)));
}

static const char *type_text_of(const struct attr *entry)
{
	return entry ? attr_item(entry, KEY_TYPE)->type->text : "missing";
}

static bool refuse_model(
        const struct join *j, const char *name, const struct attr *left, const struct attr *right)
{
	struct diag *diag = j->second->module->diag;
	const struct attr *entry = left ? left : right;
	diag_error(diag, NOWHERE,
	        "%s and %s are not phases of the same model: the %s \"%s\" is %s in one and %s in "
	        "the other",
	        j->first->name, j->second->name, attr_item(entry, KEY_ROLE)->text, name,
	        type_text_of(left), type_text_of(right));
	return diag_note(diag, "accepted are modules with the same states");
}

/* Every state of one is a state of the other. */
static bool same_states(const struct join *j, const struct op *from, const struct op *other)
{
	const struct attr *inputs = attr_get(from, KEY_STREAM_INPUTS);
	for (int i = 0; i < inputs->count; i++) {
		const struct attr *entry = inputs->items[i].value;
		const struct attr *found = input_named(other, attr_item(entry, KEY_NAME)->text);
		const char *name = attr_item(entry, KEY_NAME)->text;
		if (!has_role(entry, "state") || same_tensor(j->arena, entry, found))
			continue;
		if (from == j->main[0])
			return refuse_model(j, name, entry, found);
		return refuse_model(j, name, found, entry);
	}
	return true;
}

/* ---- images */

struct host_walk { /* loops of a segment over the host's tensor, mergeable loops merged */
	int dims;
	int64_t trip[DIMS_MOST], stride[DIMS_MOST];
};

static bool walk_of(const struct attr *segment, struct host_walk *host_walk)
{
	const struct attr *trips = attr_item(segment, KEY_TRIPS);
	const struct attr *strides = attr_item(segment, KEY_STRIDES);
	host_walk->dims = 0;
	if (trips->count > DIMS_MOST)
		return false;
	for (int d = 0; d < trips->count; d++) {
		int64_t trip = trips->integers[d];
		int64_t stride = strides->integers[d];
		int last = host_walk->dims - 1;
		if (trip == 1)
			continue;
		if (last >= 0 && host_walk->stride[last] == trip * stride) {
			host_walk->trip[last] *= trip;
			host_walk->stride[last] = stride;
			continue;
		}
		host_walk->trip[host_walk->dims] = trip;
		host_walk->stride[host_walk->dims++] = stride;
	}
	return true;
}

static bool same_walk(const struct attr *left, const struct attr *right)
{
	struct host_walk l;
	struct host_walk r;
	if (!walk_of(left, &l) || !walk_of(right, &r) || l.dims != r.dims)
		return false;
	size_t bytes = sizeof *l.trip * (size_t)l.dims;
	return !memcmp(l.trip, r.trip, bytes) && !memcmp(l.stride, r.stride, bytes);
}

static bool same_segment(const struct join *j, const struct attr *left, const struct attr *right)
{
	static const enum attr_key exact[] = { KEY_TRIPS, KEY_STRIDES, KEY_CONDITIONS };
	const char *name = attr_item(left, KEY_NAME)->text;
	bool plain =
	        !attr_item(left, KEY_CONDITIONS)->count && !attr_item(right, KEY_CONDITIONS)->count;
	bool same = true;
	if (!text_same(name, attr_item(right, KEY_NAME)->text) ||
	        (!has_role(left, "weight") && !has_role(left, "state")) ||
	        !same_tensor(
	                j->arena, input_named(j->main[0], name), input_named(j->main[1], name)))
		return false;
	if (attr_item(left, KEY_OFFSET)->integer != attr_item(right, KEY_OFFSET)->integer ||
	        attr_item(left, KEY_BASE)->integer != attr_item(right, KEY_BASE)->integer)
		return false;
	for (int i = 0; i < 3 && same; i++)
		same = text_same(attr_words(j->arena, attr_item(left, exact[i])),
		        attr_words(j->arena, attr_item(right, exact[i])));
	return same || (plain && same_walk(left, right));
}

static int64_t buffer_bytes(const struct attr *buffer)
{
	return attr_item(buffer, KEY_WORDS)->integer *
	        emit_bytes(attr_item(buffer, KEY_WORD)->type);
}

static bool same_buffer(const struct join *j, const struct attr *left, const struct attr *right)
{
	const struct attr *segments = attr_item(left, KEY_SEGMENTS);
	const struct attr *others = attr_item(right, KEY_SEGMENTS);
	const struct type *word = attr_item(left, KEY_WORD)->type;
	const struct type *other = attr_item(right, KEY_WORD)->type;
	bool same = segments->count == others->count && segments->count &&
	        buffer_bytes(left) == buffer_bytes(right) &&
	        text_same(type_scalar(word)->text, type_scalar(other)->text) &&
	        emit_bytes(word) * type_elements(other) == emit_bytes(other) * type_elements(word);
	for (int s = 0; same && s < segments->count; s++)
		same = same_segment(j, segments->items[s].value, others->items[s].value);
	return same;
}

static const char *find_same(const struct join *j, const struct attr *buffer)
{
	const struct attr *list = attr_get(j->main[0], KEY_STREAM_BUFFERS);
	for (int b = 0; b < list->count; b++)
		if (same_buffer(j, list->items[b].value, buffer))
			return attr_item(list->items[b].value, KEY_NAME)->text;
	return NULL;
}

static const char *own_name(const struct join *j, const char *name)
{
	return text_format(j->arena, "%s_%s", j->second->name, name);
}

/* Only weights and states, which the host does not write for every launch? */
static bool holds_model_data(const struct attr *buffer)
{
	const struct attr *segments = attr_item(buffer, KEY_SEGMENTS);
	bool model_data = segments->count > 0;
	for (int s = 0; model_data && s < segments->count; s++)
		model_data = has_role(segments->items[s].value, "weight") ||
		        has_role(segments->items[s].value, "state");
	return model_data;
}

static void join_buffers(struct join *j)
{
	struct module *module = j->second->module;
	const struct attr *list = attr_get(j->main[1], KEY_STREAM_BUFFERS);
	const struct attr **items = ARENA_ARRAY(j->arena, const struct attr *, list->count + 1);
	for (int b = 0; b < list->count; b++) {
		const struct attr *buffer = list->items[b].value;
		const char *same = find_same(j, buffer);
		items[b] = attr_with(module, buffer, KEY_NAME,
		        attr_string(module, own_name(j, attr_item(buffer, KEY_NAME)->text)));
		if (same)
			items[b] =
			        attr_with(module, items[b], KEY_SAME_AS, attr_string(module, same));
		if (holds_model_data(buffer))
			*(same ? &j->joined->shared_bytes : &j->joined->own_bytes) +=
			        buffer_bytes(buffer);
	}
	attr_set(module, module_main(module), KEY_STREAM_BUFFERS,
	        attr_array(module, list->count, items));
	const struct attr *feedback = attr_get(module_main(module), KEY_STREAM_FEEDBACK);
	if (feedback)
		attr_set(module, module_main(module), KEY_STREAM_FEEDBACK,
		        attr_with(module, feedback, KEY_BUFFER,
		                attr_string(module,
		                        own_name(j, attr_item_text(feedback, KEY_BUFFER)))));
}

/* A state must lie in a buffer of the first phase, or each phase would update a copy of its own. */
static bool states_are_shared(const struct join *j)
{
	const struct attr *list = attr_get(j->main[1], KEY_STREAM_BUFFERS);
	for (int b = 0; b < list->count; b++) {
		const struct attr *buffer = list->items[b].value;
		const struct attr *segments = attr_item(buffer, KEY_SEGMENTS);
		for (int s = 0; s < segments->count && !attr_item(buffer, KEY_SAME_AS); s++)
			if (has_role(segments->items[s].value, "state"))
				return diag_error(j->second->module->diag, NOWHERE,
				        "%s stores the state \"%s\" in another memory layout than "
				        "%s",
				        j->second->name,
				        attr_item(segments->items[s].value, KEY_NAME)->text,
				        j->first->name);
	}
	return true;
}

/* ---- ports */

static const char *buffer_of(const struct join *j, const char *own)
{
	const struct attr *same =
	        attr_item(attr_entry(attr_get(j->main[1], KEY_STREAM_BUFFERS), own), KEY_SAME_AS);
	return same ? same->text : NULL;
}

/* A free port of the first phase that this one can use: equal word and direction, on `channel`
 * (-1: any), if possible of the buffer `same`.  -1: none. */
static int shared_port(
        const struct join *j, struct memory_port port, const char *same, int64_t channel)
{
	int best = -1;
	for (int i = 0; i < emit_ports(j->first->module); i++) {
		struct memory_port other = emit_port(j->main[0], i);
		bool fits = !j->taken[i] && other.write == port.write &&
		        text_same(other.word->text, port.word->text) &&
		        (channel < 0 || other.channel == channel);
		if (fits && text_same(other.buffer, same))
			return i;
		best = fits && best < 0 && !same ? i : best;
	}
	return best;
}

/* All ports of a buffer are on one memory channel: that of the first phase's buffer, or of the port
 * of this buffer that was joined before.  -1: not known yet. */
static int64_t channel_of(
        const struct join *j, const char *same, const struct map *channels, const char *own)
{
	const int64_t *known = map_get(channels, own);
	for (int i = 0; same && i < emit_ports(j->first->module); i++)
		if (text_same(emit_port(j->main[0], i).buffer, same))
			return emit_port(j->main[0], i).channel;
	return known ? *known : -1;
}

/* A port of the first phase whose AXI adapter this one can share, since phases never run at the
 * same time: of equal word width, on `channel` (-1: any).  -1: none. */
static int adapter_of(const struct join *j, struct memory_port port, int64_t channel)
{
	int i = 0;
	for (; i < emit_ports(j->first->module); i++) {
		struct memory_port other = emit_port(j->main[0], i);
		if (type_bits(other.word) == type_bits(port.word) &&
		        (channel < 0 || other.channel == channel))
			return i;
	}
	return -1;
}

/* m_NAME becomes m_PHASE_NAME. */
static const char *own_port_name(const struct join *j, const char *name)
{
	const char *plain = strncmp(name, "m_", 2) ? name : name + 2;
	return text_format(j->arena, "m_%s_%s", j->second->name, plain);
}

static void join_port(struct join *j, int number, struct map *channels, const struct attr **item)
{
	struct module *module = j->second->module;
	struct memory_port port = emit_port(j->main[1], number);
	const char *own = own_name(j, port.buffer);
	const char *same = buffer_of(j, own);
	int64_t channel = channel_of(j, same, channels, own);
	int place = shared_port(j, port, same, channel);
	int host = place < 0 ? adapter_of(j, port, channel) : place;
	struct memory_port first = host < 0 ? port : emit_port(j->main[0], host);
	static const enum attr_key of_adapter[] = { KEY_STREAM_BURST, KEY_STREAM_OUTSTANDING };
	int64_t *used = ARENA_NEW(j->arena, int64_t);
	*used = channel < 0 ? first.channel : channel;
	map_set(channels, own, used);
	if (place >= 0)
		j->taken[place] = true;
	*item = attr_with(module, *item, KEY_STREAM_BUFFER, attr_string(module, own));
	*item = attr_with(module, *item, KEY_STREAM_CHANNEL, attr_integer(module, *used));
	*item = attr_with(module, *item, KEY_STREAM_PORT,
	        attr_string(module, place < 0 ? own_port_name(j, port.name) : first.name));
	*item = attr_with(module, *item, KEY_STREAM_BUNDLE,
	        attr_string(module, host < 0 ? own_name(j, port.name) : first.bundle));
	for (size_t i = 0; host >= 0 && i < sizeof of_adapter / sizeof *of_adapter; i++) {
		const struct attr *attr = function_argument_attr(j->main[0], host, of_adapter[i]);
		*item = attr ? attr_with(module, *item, of_adapter[i], attr) : *item;
	}
	*item = attr_with(module, *item, KEY_STREAM_ARGUMENT,
	        attr_integer(module, place < 0 ? j->joined->ports : place));
	j->joined->ports += place < 0;
}

/* Ports of shared buffers choose first: only one port of the first phase suits them. */
static void join_ports(struct join *j)
{
	struct module *module = j->second->module;
	const struct attr *list = attr_get(j->main[1], KEY_ARG_ATTRS);
	int ports = emit_ports(module);
	const struct attr **items = ARENA_ARRAY(j->arena, const struct attr *, ports + 1);
	struct map channels = map_new(j->arena);
	for (int i = 0; i < ports; i++)
		items[i] = list->items[i].value;
	for (int shared = 1; shared >= 0; shared--)
		for (int i = 0; i < ports; i++)
			if ((buffer_of(j, own_name(j, emit_port(j->main[1], i).buffer)) != NULL) ==
			        shared)
				join_port(j, i, &channels, &items[i]);
	attr_set(module, module_main(module), KEY_ARG_ATTRS, attr_array(module, ports, items));
}

bool join_phases(const struct platform *platform, const struct phase *first,
        const struct phase *second, struct joined *joined)
{
	struct join j = { .arena = second->module->arena,
		.first = first,
		.second = second,
		.main = { module_main(first->module), module_main(second->module) },
		.joined = joined };
	*joined = (struct joined){ .ports = emit_ports(first->module) };
	j.taken = ARENA_ARRAY(j.arena, bool, joined->ports + 1);
	if (!same_states(&j, j.main[0], j.main[1]) || !same_states(&j, j.main[1], j.main[0]))
		return false;
	join_buffers(&j);
	if (!states_are_shared(&j))
		return false;
	join_ports(&j);
	for (int i = 0; i < emit_ports(second->module); i++)
		if (emit_argument(j.main[1], i) < emit_ports(first->module))
			joined->shared_ports = resources_add(joined->shared_ports,
			        port_resources(platform, emit_port(j.main[1], i).word,
			                emit_port(j.main[1], i).write));
	joined->adapters =
	        emit_adapters(j.arena, &(struct phases){ 2, (struct phase[]){ *first, *second } });
	return true;
}
