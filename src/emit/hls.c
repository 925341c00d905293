/* Writes the HLS C++ of a hardware-level module: a static function per process, and a dataflow
 * region that starts each once, which is the top function or a function that it calls.  Lists the
 * ports of the kernel and their AXI adapters. */
#include "emit/hls.h"
#include "ir/channel_ends.h"
#include "predict/bundle.h"
#include "predict/feedback.h"
#include "predict/resource.h"
#include "platform/platform.h"
#include <ctype.h>
#include <stdlib.h>

static const char *const head = "#include \"hls_stream.h\"\n"
                                "#include \"hls_vector.h\"\n"
                                "%s%s"
                                "#include \"st_integer.h\"\n"
                                "#include \"st_math.h\"\n"
                                "%s%s"
                                "\n"
                                "#ifndef ST_PROCESS\n"
                                "#define ST_PROCESS(f, ...) f(__VA_ARGS__)\n"
                                "#define ST_REGION_END()\n"
                                "#define ST_NAMED(name)\n"
                                "#endif\n"
                                "\n";

int emit_ports(const struct module *module)
{
	return module_main(module)->region[0]->arguments;
}

int emit_argument(const struct op *function, int argument)
{
	const struct attr *number = function_argument_attr(function, argument, KEY_STREAM_ARGUMENT);
	return number ? (int)number->integer : argument;
}

int64_t emit_bytes(const struct type *type)
{
	int64_t bits = type_bits(type_scalar(type));
	if (hls_is_packed(type))
		return type_elements(type) / 2;
	return type_elements(type) * (bits < 8 ? 1 : bits / 8);
}

struct memory_port emit_port(const struct op *function, int argument)
{
	const struct attr *name = function_argument_attr(function, argument, KEY_STREAM_PORT);
	const struct attr *buffer = function_argument_attr(function, argument, KEY_STREAM_BUFFER);
	const struct attr *channel = function_argument_attr(function, argument, KEY_STREAM_CHANNEL);
	const struct attr *direction =
	        function_argument_attr(function, argument, KEY_STREAM_DIRECTION);
	return (struct memory_port){
		.name = name ? name->text : "",
		.buffer = buffer ? buffer->text : "",
		.bundle = bundle_of(function, argument),
		.word = function->region[0]->argument[argument]->type->element,
		.channel = channel ? channel->integer : 0,
		.write = direction && text_same(direction->text, "write"),
	};
}

static void add_port(struct kernel_port *kernel, const struct op *main, int argument)
{
	struct memory_port port = emit_port(main, argument);
	const struct attr *buffer = attr_entry(attr_get(main, KEY_STREAM_BUFFERS), port.buffer);
	const struct attr *size = attr_item(buffer, KEY_WORDS);
	const struct attr *word = attr_item(buffer, KEY_WORD);
	int64_t words = size ? size->integer : 1;
	int64_t bytes = size && word ? words * emit_bytes(word->type) : 0;
	bool single = bundle_burst(main, argument, BUNDLE_SHORT_BURST) < BUNDLE_SHORT_BURST;
	int outstanding = bundle_outstanding(main, argument, 0);
	kernel->outstanding = outstanding > kernel->outstanding ? outstanding : kernel->outstanding;
	kernel->single = single && (kernel->single || !kernel->port.name);
	if (!kernel->port.name)
		kernel->port = port;
	kernel->words = words > kernel->words ? words : kernel->words;
	kernel->bytes = bytes > kernel->bytes ? bytes : kernel->bytes;
	kernel->both |= feedback_touches(main, port.buffer);
	struct feedback feedback;
	bool text = feedback_read(main, &feedback) && text_same(feedback.buffer, port.buffer);
	if (text && feedback.chunk_tokens > kernel->rows)
		kernel->rows = feedback.chunk_tokens;
}

static const struct op *process_of(const struct op *main, int argument)
{
	const struct value *port = main->region[0]->argument[argument];
	for (const struct op *call = main->region[0]->first; call; call = call->next)
		for (int i = 0; call->code == OP_CALL && i < call->operands; i++)
			if (call->operand[i] == port)
				return call;
	return NULL;
}

/* The load or store unit of a port: that of an earlier port of the same process in the adapter,
 * else the next free one. */
static int unit_of(const struct kernel_port *list, int number)
{
	int units = 0;
	for (int i = 0; i < number; i++) {
		if (!text_same(list[i].port.bundle, list[number].port.bundle))
			continue;
		if (list[i].process && list[i].process == list[number].process)
			return list[i].unit;
		units = list[i].unit >= units ? list[i].unit + 1 : units;
	}
	return units;
}

static void join_adapter(struct kernel_port *list, int count, int number)
{
	struct kernel_port *port = &list[number];
	int others = 0;
	port->adapter = -1;
	port->adapter_single = true;
	for (int i = 0; i < count; i++) {
		const struct kernel_port *other = &list[i];
		if (!text_same(other->port.bundle, port->port.bundle))
			continue;
		int64_t bits = 8 * emit_bytes(other->port.word);
		bool counted = false; /* a buffer counts once, whatever its ports */
		for (int j = 0; j < i; j++)
			counted |= text_same(list[j].port.bundle, port->port.bundle) &&
			        text_same(list[j].port.buffer, other->port.buffer);
		port->adapter = port->adapter < 0 ? i : port->adapter;
		port->adapter_bytes += counted ? 0 : other->bytes;
		port->adapter_outstanding += other->outstanding;
		port->adapter_bits = bits > port->adapter_bits ? bits : port->adapter_bits;
		port->adapter_words =
		        other->words > port->adapter_words ? other->words : port->adapter_words;
		port->adapter_rows =
		        other->rows > port->adapter_rows ? other->rows : port->adapter_rows;
		port->adapter_single &= other->single;
		port->adapter_reads |= !other->port.write;
		port->adapter_writes |= other->port.write;
		port->adapter_both |= other->both;
		others += i != number;
	}
	port->unit = others ? unit_of(list, number) : -1;
}

int emit_kernel_ports(
        struct arena *arena, const struct phases *phases, const struct kernel_port **port)
{
	int most = 0;
	int count = 0;
	for (int p = 0; p < phases->count; p++)
		most += emit_ports(phases->phase[p].module);
	struct kernel_port *list = ARENA_ARRAY(arena, struct kernel_port, most + 1);
	for (int p = 0; p < phases->count; p++)
		for (int i = 0; i < emit_ports(phases->phase[p].module); i++) {
			const struct op *main = module_main(phases->phase[p].module);
			int number = emit_argument(main, i);
			count = number >= count ? number + 1 : count;
			add_port(&list[number], main, i);
			list[number].process = phases->count == 1 ? process_of(main, i) : NULL;
		}
	for (int k = 0; k < count; k++)
		join_adapter(list, count, k);
	*port = list;
	return count;
}

int emit_adapters(struct arena *arena, const struct phases *phases)
{
	const struct kernel_port *port;
	int ports = emit_kernel_ports(arena, phases, &port);
	int adapters = 0;
	for (int k = 0; k < ports; k++)
		adapters += port[k].adapter == k;
	return adapters;
}

static void bind_ports(struct emitter *e, struct names *names)
{
	struct block *body = e->main->region[0];
	for (int i = 0; i < body->arguments; i++) {
		const char *name = names_add(names, "m_", emit_port(e->main, i).name);
		hls_bind(e, body->argument[i], (struct spelling){ .text = name, .atomic = true });
	}
}

static void bind_channels(struct emitter *e, struct names *names)
{
	for (struct op *op = e->main->region[0]->first; op; op = op->next) {
		if (op->code == OP_CALL) {
			const char *symbol = attr_text_or(op, KEY_CALLEE, "");
			const struct op *process = module_find(e->module, symbol);
			bool numbered = *symbol == 'p' && isdigit((unsigned char)symbol[1]);
			const char *function = names_add(names, numbered ? "" : "p_", symbol);
			map_set(&e->processes, symbol, (void *)(uintptr_t)function);
			if (process && attr_get(process, KEY_STREAM_REWIND))
				map_set(&e->rewinding_of, symbol,
				        hls_rewind_new(e, names, process, function));
		}
		if (op->code != OP_FIFO && op->code != OP_BLOCK_CHANNEL)
			continue;
		const char *base = attr_text_or(op, KEY_STREAM_NAME,
		        attr_text_or(op, KEY_NAME, op->code == OP_FIFO ? "s" : "b"));
		const char *name = names_add(names, op->code == OP_FIFO ? "s_" : "b_", base);
		hls_bind(e, op->result[0], (struct spelling){ .text = name, .atomic = true });
	}
}

/* Options of one direction of an adapter. uses: does a port move words this way in a launch? If
 * not, this way is used between steps only, for a word or for rows. */
static void write_direction(const struct platform *platform, struct text *out, const char *way,
        const struct kernel_port *port, bool uses)
{
	int64_t outstanding = platform->outstanding;
	int64_t burst = port->adapter_single ? BUNDLE_SHORT_BURST : platform->burst;
	if (!uses && !port->adapter_both)
		return;
	if (text_same(way, "read") && port->adapter_outstanding > outstanding)
		outstanding = port->adapter_outstanding;
	if (!uses) {
		outstanding = 1;
		for (burst = BUNDLE_SHORT_BURST;
		        burst < port->adapter_rows && burst < platform->burst;)
			burst *= 2;
	}
	text_add(out, " num_%s_outstanding=%lld max_%s_burst_length=%lld", way,
	        (long long)outstanding, way, (long long)burst);
}

/* The interface pragma of a port; ports of one adapter have the same options, and different
 * channels in it. */
static void write_interface(const struct platform *platform, struct text *out,
        const char *const *name, const struct kernel_port *all, int number)
{
	const struct kernel_port *port = &all[number];
	text_add(out, "#pragma HLS interface m_axi port=%s bundle=%s", name[number],
	        name[port->adapter]);
	if (port->unit >= 0)
		text_add(out, " channel=%d", port->unit);
	text_add(out, " offset=slave depth=%lld latency=%d", (long long)port->adapter_words,
	        platform->memory_latency);
	write_direction(platform, out, "read", port, port->adapter_reads);
	write_direction(platform, out, "write", port, port->adapter_writes);
	text_add(out, " max_widen_bitwidth=%lld\n", (long long)port->adapter_bits);
}

static void write_control(struct text *out, const char *name)
{
	text_add(out, "#pragma HLS interface s_axilite port=%s bundle=control\n", name);
}

static void write_block_memory(
        const struct type *block, const char *name, const char *storage, struct text *out)
{
	if (text_same(storage, storage_name[STORAGE_REGISTERS]))
		text_add(
		        out, "#pragma HLS array_partition variable=%s type=complete dim=0\n", name);
	else
		hls_banks(out, name, block);
	if (storage && !text_same(storage, storage_name[STORAGE_REGISTERS]))
		text_add(out, "#pragma HLS bind_storage variable=%s type=ram_s2p impl=%s\n", name,
		        storage);
}

/* hls::stream_of_blocks takes no name: ST_NAMED passes one to the C simulation's headers only. */
static void write_channel(struct emitter *e, const struct op *op, struct text *out)
{
	const struct type *type = op->result[0]->type;
	const char *name = hls_spelling(e, op->result[0])->text;
	const char *storage = attr_text_or(op, KEY_STREAM_STORAGE, NULL);
	const char *form = op->code == OP_FIFO
	        ? "\thls::stream<%s, %lld> %s(\"%s\");\n"
	        : "\thls::stream_of_blocks<%s, %lld> %s ST_NAMED(\"%s\");\n";
	const char *own;
	for (int i = 0; (own = hls_channel_part(e, type, name, i)); i++) {
		text_add(out, form, hls_channel_type(e, type), (long long)type->depth, own, own);
		if (op->code == OP_FIFO && storage)
			text_add(out, "#pragma HLS bind_storage variable=%s type=fifo impl=%s\n",
			        own, storage);
		if (op->code == OP_BLOCK_CHANNEL)
			write_block_memory(type->element, own, storage, out);
	}
}

static const struct rewinding *rewinding_of(const struct emitter *e, const struct op *call)
{
	return map_get(&e->rewinding_of, attr_text_or(call, KEY_CALLEE, ""));
}

static void write_call(struct emitter *e, const struct op *op, struct text *out)
{
	if (rewinding_of(e, op)) {
		hls_rewind_call(e, rewinding_of(e, op), op, out);
		return;
	}
	text_add(out, "\tST_PROCESS(%s",
	        (const char *)map_get(&e->processes, attr_text_or(op, KEY_CALLEE, "")));
	for (int i = 0; i < op->operands; i++)
		text_add(out, ", %s",
		        hls_channel_names(
		                e, op->operand[i]->type, hls_spelling(e, op->operand[i])->text));
	text_add(out, ");\n");
}

static void write_parameter(
        struct emitter *e, const struct type *word, bool writes, const char *name, struct text *out)
{
	text_add(out, "%s%s *%s", writes ? "" : "const ", hls_port_type(e, word), name);
}

static void write_region(struct emitter *e, struct text *out)
{
	const struct block *body = e->main->region[0];
	for (const struct op *op = body->first; op; op = op->next)
		if (op->code == OP_FIFO || op->code == OP_BLOCK_CHANNEL)
			write_channel(e, op, out);
	for (const struct op *op = body->first; op; op = op->next)
		if (op->code == OP_CALL && rewinding_of(e, op))
			hls_rewind_queue(rewinding_of(e, op), out);
	for (const struct op *op = body->first; op; op = op->next)
		if (op->code == OP_CALL)
			write_call(e, op, out);
	text_add(out, "\tST_REGION_END();\n}\n");
}

/* The processes of one phase are a dataflow region of their own. */
static void write_phase(struct emitter *e, const char *region, struct text *out)
{
	const struct block *body = e->main->region[0];
	text_add(out, "static void %s(", region);
	for (int i = 0; i < body->arguments; i++) {
		struct memory_port port = emit_port(e->main, i);
		text_add(out, "%s", i ? ", " : "");
		write_parameter(
		        e, port.word, port.write, hls_spelling(e, body->argument[i])->text, out);
	}
	text_add(out, ")\n{\n#pragma HLS inline off\n#pragma HLS dataflow\n");
	write_region(e, out);
}

struct top {
	const struct phases *phases;
	const char **port; /* [ports] names of the kernel's pointers */
	/* [phases] names of functions: the dataflow region; the feedback between steps, NULL: a
	 * launch is one step */
	const char **region, **next;
};

static const char **name_ports(struct arena *arena, const struct phases *phases)
{
	const struct kernel_port *kernel;
	struct names names = names_new(arena);
	int ports = emit_kernel_ports(arena, phases, &kernel);
	const char **port = ARENA_ARRAY(arena, const char *, ports + 1);
	for (int k = 0; k < ports; k++)
		port[k] = names_add(&names, "m_", kernel[k].port.name);
	return port;
}

static void write_launch(const struct top *top, int phase, const char *indent, struct text *out)
{
	const struct op *main = module_main(top->phases->phase[phase].module);
	text_add(out, "%s%s(", indent, top->region[phase]);
	for (int i = 0; i < main->region[0]->arguments; i++)
		text_add(out, "%s%s", i ? ", " : "", top->port[emit_argument(main, i)]);
	text_add(out, ");\n");
}

/* A launch of this phase: its dataflow region, once or in a loop over the steps. */
static void write_tokens(const struct top *top, int phase, const char *indent, struct text *out)
{
	const struct op *main = module_main(top->phases->phase[phase].module);
	if (!top->next[phase]) {
		write_launch(top, phase, indent, out);
		return;
	}
	const char *inner = text_format(out->arena, "%s\t", indent);
	text_add(out,
	        "%sfor (int token = 0; token < tokens; token++) {\n#pragma HLS pipeline off\n",
	        indent);
	write_launch(top, phase, inner, out);
	text_add(out, "%s", inner);
	hls_feedback_call(main, top->next[phase], top->port, out);
	text_add(out, "%s}\n", indent);
}

static void write_switch(const struct top *top, const char *phase, struct text *out)
{
	int last = top->phases->count - 1;
	for (int p = 0; p < last; p++) {
		text_add(out, "\t%sif (%s == %d)\n", p ? "else " : "", phase, p);
		write_tokens(top, p, "\t\t", out);
	}
	if (phase)
		text_add(out, "\telse\n");
	write_tokens(top, last, phase ? "\t\t" : "\t", out);
	text_add(out, "}\n");
}

static bool has_feedback(const struct phases *phases)
{
	bool found = false;
	for (int p = 0; p < phases->count; p++)
		found |=
		        attr_get(module_main(phases->phase[p].module), KEY_STREAM_FEEDBACK) != NULL;
	return found;
}

/* A single phase of one step is a dataflow region in the top function.  With several phases or
 * steps the regions are functions that the top function calls; its last arguments say which phase
 * runs, how many steps it has, and how many tokens of the text come from the host. */
static void write_top(struct emitter *e, struct top *top, const char *function, struct text *out)
{
	const struct kernel_port *kernel;
	const struct phases *phases = top->phases;
	struct names names = names_new(e->arena);
	int ports = emit_kernel_ports(e->arena, phases, &kernel);
	const char *phase = phases->count > 1 ? names_add(&names, "", "phase") : NULL;
	const char *const counts[] = { "tokens", "given" };
	const char **scalar = ARENA_ARRAY(e->arena, const char *, 3);
	int scalars = 0;
	if (phase)
		scalar[scalars++] = phase;
	for (int i = 0; i < 2 && has_feedback(phases); i++)
		scalar[scalars++] = names_add(&names, "", counts[i]);
	text_add(out, "extern \"C\" void %s(", function);
	for (int k = 0; k < ports; k++) {
		text_add(out, "%s", k ? ", " : "");
		write_parameter(e, kernel[k].port.word, kernel[k].port.write || kernel[k].both,
		        top->port[k], out);
	}
	for (int i = 0; i < scalars; i++)
		text_add(out, "%sint %s", ports || i ? ", " : "", scalar[i]);
	text_add(out, ")\n{\n");
	for (int k = 0; k < ports; k++)
		write_interface(e->platform, out, top->port, kernel, k);
	for (int k = 0; k < ports; k++)
		write_control(out, top->port[k]);
	for (int i = 0; i < scalars; i++)
		write_control(out, scalar[i]);
	write_control(out, "return");
	if (scalars) {
		write_switch(top, phase, out);
		return;
	}
	text_add(out, "#pragma HLS dataflow\n");
	write_region(e, out);
}

static bool has_blocks(const struct op *main)
{
	for (const struct op *op = main->region[0]->first; op; op = op->next)
		if (op->code == OP_BLOCK_CHANNEL)
			return true;
	return false;
}

static void emit_phase(struct emitter *e, struct module *module, struct names *names)
{
	e->module = module;
	e->main = module_main(module);
	e->processes = map_new(e->arena);
	e->rewinding_of = map_new(e->arena);
	ir_count_uses(module_body(module));
	ir_clear_data(module_body(module));
	bind_ports(e, names);
	bind_channels(e, names);
	for (struct op *op = module_body(module)->first; op; op = op->next)
		if (op->code == OP_FUNC && attr_get(op, KEY_STREAM_PROCESS))
			hls_process(e, op);
	e->process = NULL;
}

static void place(struct emitter *e, const char *name, int64_t die)
{
	VEC_PUSH(e->arena, &e->placement->cells, ((struct placed_cell){ name, die }));
}

static int64_t die_of(const struct op *process)
{
	return process ? attr_integer_or(process, KEY_STREAM_DIE, 0) : 0;
}

/* Of one FIFO or block channel of the emitted text. */
static void place_channel(struct emitter *e, const char *name, int64_t from, int64_t to)
{
	int64_t crossings = llabs(to - from);
	place(e, text_format(e->arena, "%s_U", name), to);
	for (int64_t i = 0; crossings && i <= crossings; i++)
		place(e, text_format(e->arena, "%s_cross_%lld", name, (long long)i),
		        from < to ? from + i : from - i);
}

static void place_process(struct emitter *e, const struct op *call, const struct op *process)
{
	int64_t die = die_of(process);
	const struct rewinding *two = rewinding_of(e, call);
	const char *symbol = attr_text_or(call, KEY_CALLEE, "");
	const char *function = two ? two->function : map_get(&e->processes, symbol);
	place(e, text_format(e->arena, "%s_U0", function), die);
	if (!two)
		return;
	int64_t from = nests_are_apart(process) ? 0 : die;
	place(e, text_format(e->arena, "%s_U0", two->counts), from);
	place_channel(e, two->queue, from, die);
}

static void place_ends(struct emitter *e, const struct op *channel, const struct channel_ends *ends)
{
	int64_t from = die_of(ends->writing);
	int64_t to = die_of(ends->reading);
	const char *name = hls_spelling(e, channel->result[0])->text;
	const char *part;
	for (int i = 0; (part = hls_channel_part(e, channel->result[0]->type, name, i)); i++)
		place_channel(e, part, from, to);
}

static void place_cells(struct emitter *e)
{
	const struct channel_ends *ends = channel_ends_of(e->arena, e->module);
	const struct op *process = e->main;
	for (const struct op *op = e->main->region[0]->first; op; op = op->next) {
		const char *callee = attr_text_or(op, KEY_CALLEE, "");
		process = op->code == OP_CALL ? module_find_after(e->module, process, callee)
		                              : process;
		if (op->code == OP_CALL)
			place_process(e, op, process);
		if (op->code == OP_FIFO || op->code == OP_BLOCK_CHANNEL)
			place_ends(e, op, ends++);
	}
}

bool emit_hls(
        struct module *module, const struct platform *platform, const char *top, struct text *out)
{
	return emit_hls_phases(&(struct phases){ 1, &(struct phase){ NULL, module } }, platform,
	        top, out, &(struct placed_cells){ .cells = { 0 } });
}

bool emit_hls_phases(const struct phases *phases, const struct platform *platform, const char *top,
        struct text *out, struct placed_cells *placement)
{
	struct arena *arena = phases->phase[0].module->arena;
	struct text processes = text_new(arena);
	struct text region = text_new(arena);
	struct emitter e = { .platform = platform,
		.arena = arena,
		.out = &processes,
		.types = map_new(arena),
		.typedefs = text_new(arena),
		.helpers = text_new(arena),
		.placement = placement,
		.made = map_new(arena) };
	struct names names = names_new(arena);
	struct top all = { .phases = phases,
		.region = ARENA_ARRAY(arena, const char *, phases->count),
		.next = ARENA_ARRAY(arena, const char *, phases->count) };
	bool blocks = false;
	bool own_regions = phases->count > 1 || has_feedback(phases);
	all.port = name_ports(arena, phases);
	for (int p = 0; p < phases->count; p++) {
		const char *own = phases->count > 1 ? phases->phase[p].name : "token";
		emit_phase(&e, phases->phase[p].module, &names);
		place_cells(&e);
		blocks = blocks || has_blocks(e.main);
		if (own_regions)
			write_phase(&e, all.region[p] = names_add(&names, "region_", own), &region);
		if (attr_get(e.main, KEY_STREAM_FEEDBACK))
			hls_feedback(&e, all.next[p] = names_add(&names, "next_", own), all.port,
			        &region);
	}
	write_top(&e, &all, top, &region);
	const char *integers = e.narrow || e.counts ? "#include \"ap_int.h\"\n" : "";
	const char *narrow = e.narrow ? "#include \"st_narrow.h\"\n" : "";
	const char *doubles = e.doubles ? "#include \"st_double.h\"\n" : "";
	const char *block_streams = blocks ? "#include \"hls_streamofblocks.h\"\n" : "";
	text_add(out, head, integers, block_streams, narrow, doubles);
	const struct text *parts[] = { &e.typedefs, &e.helpers, &processes, &region };
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		text_add_bytes(out, parts[i]->data ? parts[i]->data : "", parts[i]->size);
		text_add(out, "%s", i == 0 && parts[i]->size ? "\n" : "");
	}
	return !e.failed;
}
