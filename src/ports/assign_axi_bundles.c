/* Decides which memory ports share an AXI adapter (a bundle), so that more adapters are left for
 * the PEs of the matmul engine, and which memory channel each port uses. The vendor's compiler lets
 * pointers of several processes be one interface, each with a load or store engine of its own, if
 * each is given a channel (UG1399, M_AXI Channels). Pointers of one interface should be equally
 * wide: otherwise no bursts are inferred (UG1448, 200-451). So:
 * Where adapters are short, ports as wide as the engine's words share the adapters of its loaders:
 * a loader prefetches so far that it can wait while keys and values are read, and they can wait
 * while weights are read. A spare adapter takes as many such ports as keep it as busy as the
 * others, and so does that of narrow ports.
 * Other ports share with equally wide ones, as long as those that join have no more words than the
 * first. Ports of few words that are narrow, or append to a buffer that another port reads, or have
 * few words compared with the engine's, share one adapter that reaches all their buffers' channels
 * (a linker takes a range of channels for a port, UG1393); their words are read one by one. Other
 * ports of one adapter share a memory channel, and so do ports of one buffer.
 * Needs: processes, and what serves each port. Guarantees: no more adapters than the platform has.
 * Exact. Ends: each port is placed once. */
#include "ports/balance_channels.h"
#include "ports/lower_ports.h"
#include "ir/workload.h"
#include "ir/contract.h"
#include "predict/bundle.h"
#include "predict/port_run.h"
#include "ports/memory_image.h"
#include "ports/ports_passes.h"

#define NARROW_BITS 64
#define FEW_WORDS 4096 /* words of a launch */
/* outstanding requests for single full words of a port: a word in 3.5 cycles where memory answers
 * each after 100; the engine's words take 1.5 cycles */
#define REQUESTS 32
#define SLOWER 3 /* so at most so many times as long */
/* one part in so many, which delays nothing where another adapter would have a row's words more */
#define LITTLE_MORE 64
/* of a port whose words are at most one in FEW_WAIT of the engine's: they have as much time */
#define REQUESTS_FEW 16
#define FEW_WAIT 6
#define REQUESTS_NARROW 64 /* of narrow words, whose buffers are small */
/* words of a launch for which that is worth its logic: each would take six cycles */
#define MANY_NARROW 256
/* of all ports that moved to the narrow adapter: as many as its channel's bandwidth needs, and half
 * as many more, since they wait for each other */
#define REQUESTS_ALL 192
/* of their words, one part in so many counts twice: a layer's are needed while attention works,
 * those of the engine have the time of a layer */
#define URGENT_SHARE 4
/* operands are seldom read if they have at most one in so many of an engine port's words */
#define SELDOM 4
/* a full-word port joins another one if it has at most one in so many of its words */
#define LITTLE 8

struct bundled {
	int64_t bits, words; /* bits of a word; words of a launch, at most */
	int64_t layered;    /* of these, words in the loops over layers; all where there are none */
	bool write, narrow; /* narrow: its words are read or written one by one */
	bool moved_to_narrow; /* although they are many */
	const char *buffer;
	int other;                /* another port of its buffer; -1: none */
	int bundle;               /* first port of the bundle */
	const struct op *process; /* the call that reads or writes it */
	/* the process reads `parallel_ports` ports at a time: number of this port's group
	 * among them */
	int part;
	int parallel_ports; /* ports that the process reads in the same cycle */
};

/* What the ports serve: from the design under construction, or from main's attributes. */
struct bundling {
	struct module *module;
	const struct platform *platform;
	const struct block *block;     /* of the hardware-level main */
	const struct attr **port_attr; /* [ports] */
	int ports;
	/* with an engine: most tokens of a launch, and PEs per port; run_time_tiles: a launch has
	 * tiles of tokens, whose number is known at run time; piggyback: small operands use the
	 * adapters of weights */
	int64_t tokens;
	int pes_per_port;
	bool run_time_tiles, piggyback;
	struct bundled *port;
	/* the engine's port with more words than any other, where that matters; -1: none */
	int busiest;
};

static int other_port(const struct bundling *b, int number)
{
	int i = 0;
	while (i < b->ports &&
	        (i == number || !text_same(b->port[i].buffer, b->port[number].buffer)))
		i++;
	return i < b->ports ? i : -1;
}

static bool is_loaded_by(const struct bundling *b, int port, const char *loader)
{
	const struct attr *by = attr_item(b->port_attr[port], KEY_STREAM_LOADER);
	return by && text_same(by->text, loader);
}

/* Does the shared loader read the buffer? */
static bool is_shared(const struct bundling *b, const char *buffer)
{
	bool shared = false;
	for (int i = 0; i < b->ports; i++)
		shared = shared ||
		        (text_same(b->port[i].buffer, buffer) && is_loaded_by(b, i, "shared"));
	return shared;
}

/* Full words that are few compared with the engine's, and prefetched: single requests are quick
 * enough, and no PE's adapter has more to do because of them. */
static bool is_seldom(const struct bundling *b, const struct bundled *port, int64_t most)
{
	bool once = port->words <= FEW_WORDS && port->other < 0 && !port->write;
	return port->bits == ENGINE_WORD_BITS &&
	        (once || (is_shared(b, port->buffer) && port->words <= most / SELDOM));
}

/* the most tokens of a launch that a limit for one token is multiplied with */
static int64_t tokens_counted(const struct bundling *b)
{
	return b->run_time_tiles ? b->tokens : 1;
}

/* Finds the call of a port and how many of its ports it reads in a cycle: the bits of its widest
 * FIFO / those of the port. */
static void set_process(
        const struct block *block, const struct value *argument, struct bundled *port)
{
	int64_t wide = port->bits;
	int number = 0;
	for (const struct op *call = block->first; call && !port->process; call = call->next)
		for (int i = 0; call->code == OP_CALL && i < call->operands; i++)
			port->process = call->operand[i] == argument ? call : port->process;
	for (int i = 0; port->process && port->process->operand[i] != argument; i++)
		number += port->process->operand[i]->type->kind == TYPE_MEMREF;
	for (int i = 0; port->process && i < port->process->operands; i++) {
		const struct type *type = port->process->operand[i]->type;
		wide = type->kind == TYPE_FIFO && type_bits(type->element) > wide
		        ? type_bits(type->element)
		        : wide;
	}
	port->parallel_ports = port->bits > 0 ? (int)(wide / port->bits) : 1;
	port->part = number / (port->parallel_ports > 0 ? port->parallel_ports : 1);
}

/* Ports of interleaved KV words are read in step as well, though each has a loader. */
static void mark_adjacent_ports(const struct bundling *b, int number)
{
	struct bundled *port = &b->port[number];
	const struct attr *first = attr_item(b->port_attr[number], KEY_STREAM_STATE_BUFFER);
	if (!first || port->write)
		return;
	port->parallel_ports = 0;
	for (int i = 0; i < b->ports; i++) {
		const struct attr *other = attr_item(b->port_attr[i], KEY_STREAM_STATE_BUFFER);
		port->parallel_ports += other && text_same(other->text, first->text);
		if (text_same(b->port[i].buffer, first->text) && !b->port[i].write)
			port->process = b->port[i].process;
	}
}

static void describe_ports(struct bundling *b)
{
	const struct extent_list largest = { 0 };
	b->port = ARENA_ARRAY(b->module->arena, struct bundled, b->ports + 1);
	for (int i = 0; i < b->ports; i++) {
		const struct value *argument = b->block->argument[i];
		struct bundled *port = &b->port[i];
		*port = (struct bundled){ .bits = type_bits(argument->type->element),
			.words = bundle_words(b->module, b->block, argument, false, largest),
			.bundle = i };
		port->layered = bundle_words(b->module, b->block, argument, true, largest);
		port->write =
		        text_same(attr_item(b->port_attr[i], KEY_STREAM_DIRECTION)->text, "write");
		port->buffer = attr_item(b->port_attr[i], KEY_STREAM_BUFFER)->text;
		set_process(b->block, argument, port);
	}
	for (int i = 0; i < b->ports; i++)
		mark_adjacent_ports(b, i);
	int64_t most = 0;
	int64_t few = FEW_WORDS * tokens_counted(b);
	bool narrow = false;
	for (int i = 0; i < b->ports; i++)
		most = b->port[i].words > most ? b->port[i].words : most;
	for (int i = 0; i < b->ports; i++) {
		struct bundled *port = &b->port[i];
		port->other = other_port(b, i);
		port->narrow = port->words <= few &&
		        (port->bits <= NARROW_BITS || (port->other >= 0 && port->write));
		narrow |= port->narrow;
	}
	for (int i = 0; narrow && b->tokens && i < b->ports; i++)
		b->port[i].narrow = b->port[i].narrow || is_seldom(b, &b->port[i], most);
}

/* as wide as the engine's words */
static bool is_full_word_port(const struct bundled *port)
{
	return port->bits == ENGINE_WORD_BITS && !port->narrow;
}

/* KV rows and operands that are read in words as wide as the engine's */
static bool is_full_word_read(const struct bundled *port)
{
	return is_full_word_port(port) && !port->write;
}

static void join_narrow(struct bundling *b)
{
	int first = -1;
	for (int i = 0; i < b->ports; i++) {
		if (!b->port[i].narrow)
			continue;
		first = first < 0 ? i : first;
		b->port[i].bundle = first;
	}
}

/* Words of a bundle in the direction of `port`, without those of its first port. Full words count
 * in both directions, since a channel with weights has no time to spare. */
static int64_t words_through_bundle(
        const struct bundling *b, int bundle, const struct bundled *port)
{
	int64_t words = 0;
	for (int i = 0; i < b->ports; i++)
		words += i != bundle && b->port[i].bundle == bundle &&
		                (b->port[i].write == port->write || is_full_word_port(port))
		        ? b->port[i].words
		        : 0;
	return words;
}

/* Results after the last layer are written while loaders bring the head's weights as fast as memory
 * can, and the slowest loader delays all. */
static bool delays_last_layer(const struct bundled *port, const struct bundled *first)
{
	return port->write && is_full_word_port(port) && !port->layered && !first->write &&
	        first->layered > 0 && first->layered < first->words;
}

/* The bundle of equally wide ports that has least to do besides its first port, if this port and
 * the others are few compared with the first. -1: none. */
static int bundle_for(const struct bundling *b, const bool *placed, int number)
{
	const struct bundled *port = &b->port[number];
	int64_t least = INT64_MAX;
	int best = -1;
	bool tied =
	        port->other >= 0 && placed[port->other] && b->port[port->other].bits == port->bits;
	for (int i = 0; i < b->ports; i++) {
		const struct bundled *first = &b->port[i];
		if (!placed[i] || first->bundle != i || first->narrow ||
		        first->bits != port->bits || (tied && b->port[port->other].bundle != i) ||
		        delays_last_layer(port, first))
			continue;
		int64_t all = words_through_bundle(b, i, port) + port->words;
		int64_t share = first->write == port->write && is_full_word_port(port) ? LITTLE : 1;
		bool few = !is_full_word_port(port) && port->words <= first->words / LITTLE;
		if ((all > first->words / share && !few) || all >= least)
			continue;
		least = all;
		best = i;
	}
	return best;
}

/* joins ports that are not narrow, those of most words first */
static void join_wide(struct bundling *b)
{
	bool *placed = ARENA_ARRAY(b->module->arena, bool, b->ports + 1);
	for (int count = 0; count < b->ports; count++) {
		int next = -1;
		for (int i = 0; i < b->ports; i++)
			if (!placed[i] && (next < 0 || b->port[i].words > b->port[next].words))
				next = i;
		int place = b->port[next].narrow ? -1 : bundle_for(b, placed, next);
		if (place >= 0)
			b->port[next].bundle = place;
		placed[next] = true;
	}
}

static bool is_shared_bundle(const struct bundling *b, int bundle)
{
	int count = 0;
	for (int i = 0; i < b->ports; i++)
		count += b->port[i].bundle == bundle;
	return count > 1;
}

/* of these, the words of the ports that moved there although they are many */
static int64_t moved_words(const struct bundling *b)
{
	int64_t words = 0;
	for (int i = 0; i < b->ports; i++)
		words += b->port[i].moved_to_narrow ? b->port[i].layered : 0;
	return words;
}

static bool is_same_loader_part(const struct bundled *port, const struct bundled *other)
{
	return port->process == other->process && port->part == other->part;
}

/* Have other ports that are read in step with this one adapters of their own? */
static bool is_split(const struct bundling *b, const struct bundled *port)
{
	bool split = false;
	for (int i = 0; i < b->ports && port->parallel_ports > 1; i++)
		split = split ||
		        (is_same_loader_part(&b->port[i], port) && !b->port[i].moved_to_narrow);
	return split;
}

/* Requests of a port that moved to the narrow adapter: all such ports share what its channel needs.
 * One that is read in step with others, on adapters of their own, gets as large a part as its words
 * are of all words that moved: it then brings them as fast as the others do. */
static int64_t share_of_requests(const struct bundling *b, const struct bundled *port)
{
	int64_t ports = 0;
	int64_t words = moved_words(b);
	for (int i = 0; i < b->ports; i++)
		ports += b->port[i].moved_to_narrow;
	int64_t requests = ports > REQUESTS_ALL ? 1 : REQUESTS_ALL / ports;
	int64_t part = words ? REQUESTS_ALL * port->layered / words : 0;
	requests = requests < REQUESTS ? requests : REQUESTS;
	return part > requests && is_split(b, port) ? part : requests;
}

/* outstanding requests of a port whose words are read one by one; 0: the default */
static int64_t outstanding_requests(const struct bundling *b, int number)
{
	const struct bundled *port = &b->port[number];
	int64_t most = 0;
	if (!port->narrow || (port->write && b->tokens))
		return 0;
	if (port->bits <= NARROW_BITS || port->write)
		return port->words >= MANY_NARROW ? REQUESTS_NARROW : 0;
	if (port->bits != ENGINE_WORD_BITS || port->words <= FEW_WORDS)
		return 0;
	for (int i = 0; i < b->ports; i++)
		most = b->port[i].layered > most && is_full_word_port(&b->port[i])
		        ? b->port[i].layered
		        : most;
	if (b->run_time_tiles && port->layered * FEW_WAIT <= most)
		return REQUESTS_FEW;
	return port->moved_to_narrow ? share_of_requests(b, port) : REQUESTS;
}

static void set_bundles(const struct bundling *b)
{
	struct module *module = b->module;
	for (int i = 0; i < b->ports; i++) {
		const struct attr **attrs = &b->port_attr[i];
		if (!is_shared_bundle(b, b->port[i].bundle))
			continue;
		*attrs = attr_with(module, *attrs, KEY_STREAM_BUNDLE,
		        attr_item(b->port_attr[b->port[i].bundle], KEY_STREAM_PORT));
		if (b->port[i].narrow)
			*attrs = attr_with(
			        module, *attrs, KEY_STREAM_BURST, attr_integer(module, 1));
		int64_t requests = outstanding_requests(b, i);
		if (requests)
			*attrs = attr_with(module, *attrs, KEY_STREAM_OUTSTANDING,
			        attr_integer(module, requests));
	}
}

static struct bundling of_design(struct design *design)
{
	const struct op *source = design->source;
	return (struct bundling){ .module = design->module,
		.platform = design->context->platform,
		.block = design->block,
		.port_attr = design->port_attrs.data,
		.ports = design->block->arguments,
		.tokens = engine_tokens(source->region[0], NULL),
		.pes_per_port = engine_shape(source->region[0]).pes_per_port,
		.run_time_tiles = workload_of(source) == WORKLOAD_TILED_COUNTED_TOKENS,
		.piggyback = operands_share_weight_port(source) };
}

int adapters_outside_engine(struct design *design)
{
	struct bundling b = of_design(design);
	int adapters = 0;
	describe_ports(&b);
	join_narrow(&b);
	join_wide(&b);
	for (int i = 0; i < b.ports; i++)
		adapters += b.port[i].bundle == i && !is_full_word_port(&b.port[i]);
	return adapters;
}

int state_adapters(struct design *design, int64_t words)
{
	struct bundling b = of_design(design);
	int adapters = 0;
	describe_ports(&b);
	for (int i = 0; i < b.ports; i++)
		adapters += is_full_word_read(&b.port[i]) && b.port[i].parallel_ports == 1 &&
		        b.port[i].words > words;
	return b.run_time_tiles ? adapters : 0;
}

int wide_state_ports(struct design *design, int *parallel_ports)
{
	struct bundling b = of_design(design);
	int ports = 0;
	describe_ports(&b);
	*parallel_ports = 1;
	for (int i = 0; i < b.ports; i++) {
		bool parallel = is_full_word_read(&b.port[i]) && b.port[i].parallel_ports > 1;
		ports += parallel;
		*parallel_ports = parallel ? b.port[i].parallel_ports : *parallel_ports;
	}
	return ports;
}

/* Words of an adapter inside of the layers: keys and values are read only there, weights after the
 * last layer as well. */
static int64_t adapter_words(const struct bundling *b, int bundle)
{
	int64_t words = 0;
	for (int i = 0; i < b->ports; i++)
		words += b->port[i].bundle == bundle ? b->port[i].layered : 0;
	return words;
}

/* words that narrow ports read one by one inside of the layers; writes have their own
 * AXI channel */
static int64_t slow_words(const struct bundling *b)
{
	int64_t words = 0;
	for (int i = 0; i < b->ports; i++)
		words += b->port[i].narrow && !b->port[i].write ? b->port[i].layered : 0;
	return words;
}

/* first port of the narrow adapter; -1: there is none */
static int narrow_adapter(const struct bundling *b)
{
	int i = 0;
	while (i < b->ports && !b->port[i].narrow)
		i++;
	return i < b->ports ? i : -1;
}

/* Words that the ports of an engine loader would wait for if `port` and its neighbours used their
 * adapters too. Ports of a loader advance in step, so ports that are read in the same cycle delay
 * it once. */
static double stalled_words(
        const struct bundling *b, int engine_port, int loader, const struct bundled *port)
{
	double words = (double)(b->port[loader].layered + port->layered);
	for (int i = 0; i < engine_port; i++)
		if (b->port[i].bundle >= engine_port &&
		        b->port[b->port[i].bundle].process == b->port[loader].process)
			words += (double)b->port[i].layered / b->port[i].parallel_ports;
	return words;
}

/* Has the narrow adapter read the port's words, one by one, no later than another adapter, with
 * `least` words besides, would have? In a launch without tiles what moved there is urgent. */
static bool narrow_has_time(const struct bundling *b, const struct bundled *port, int64_t least)
{
	int64_t slow = slow_words(b);
	int64_t moved = moved_words(b);
	if (port->write || narrow_adapter(b) < 0 || SLOWER * port->layered >= least + port->layered)
		return false;
	if (b->run_time_tiles)
		return slow + port->layered <= least + least / LITTLE_MORE;
	return channel_has_time(least + port->layered, slow - moved, moved + port->layered);
}

/* The port of scales, which are padded to whole rows of all PEs, has the most words. This matters
 * with two PEs per port, where a token waits for memory. */
static int busiest_port(const struct bundling *b)
{
	int busiest = b->pes_per_port > 1 ? 0 : -1;
	for (int i = 1; busiest >= 0 && i < b->ports; i++)
		busiest = b->port[i].layered > b->port[busiest].layered ? i : busiest;
	for (int i = 0; busiest >= 0 && i < b->ports; i++)
		if (i != busiest && b->port[i].layered == b->port[busiest].layered)
			return -1;
	return busiest;
}

/* Has the adapter already as much besides weights as the port would bring, or is it the busiest one
 * while the narrow adapter has time? */
static bool is_laden(const struct bundling *b, int adapter, const struct bundled *port)
{
	int64_t own = b->port[adapter].layered;
	return 2 * (adapter_words(b, adapter) - own) > port->layered ||
	        (adapter == b->busiest && narrow_has_time(b, port, own));
}

/* of a loader's adapters that are not laden, the one with the least to do */
static int adapter_of(
        const struct bundling *b, int loader, int engine_port, const struct bundled *port)
{
	int best = -1;
	for (int i = engine_port; i < b->ports; i++)
		if (b->port[i].process == b->port[loader].process && !is_laden(b, i, port) &&
		        (best < 0 || adapter_words(b, i) < adapter_words(b, best)))
			best = i;
	return best;
}

static int unladen_of(
        const struct bundling *b, int loader, int engine_port, const struct bundled *port)
{
	int count = 0;
	for (int i = engine_port; i < b->ports; i++)
		count += b->port[i].process == b->port[loader].process && !is_laden(b, i, port);
	return count;
}

/* The loader with the shortest wait among those with most room for ports that are read in the same
 * cycle. -1: all adapters are laden. */
static int loader_for(const struct bundling *b, int engine_port, const struct bundled *port)
{
	int best = -1;
	int most = 0;
	for (int i = engine_port; i < b->ports; i++) {
		int room = unladen_of(b, i, engine_port, port);
		room = room < port->parallel_ports ? room : port->parallel_ports;
		if (!room || room < most ||
		        (room == most &&
		                stalled_words(b, engine_port, i, port) >=
		                        stalled_words(b, engine_port, best, port)))
			continue;
		best = i;
		most = room;
	}
	return best;
}

/* An adapter of the loader that already has ports of the same cycle, or else of the best loader.
 * -1: all adapters are laden. */
static int adapter_in_step(
        const struct bundling *b, const bool *placed, int number, int engine_port)
{
	const struct bundled *port = &b->port[number];
	int best = -1;
	for (int i = 0; i < engine_port; i++)
		if (placed[i] && b->port[i].bundle >= engine_port &&
		        is_same_loader_part(&b->port[i], port) &&
		        unladen_of(b, b->port[i].bundle, engine_port, port))
			best = b->port[i].bundle;
	best = best < 0 ? loader_for(b, engine_port, port) : best;
	return best < 0 ? best : adapter_of(b, best, engine_port, port);
}

/* Has a port that is read in step with others no more words than each adapter of the loaders would
 * have if all full words were spread evenly over these? Nothing waits for it there. */
static bool is_even_share(const struct bundling *b, int engine_port, const struct bundled *port)
{
	int64_t all = 0;
	for (int i = 0; i < engine_port; i++)
		all += is_full_word_read(&b->port[i]) ? b->port[i].layered : 0;
	return !b->run_time_tiles && port->parallel_ports > 1 &&
	        port->layered * (b->ports - engine_port) <= all;
}

/* The adapter of the other port of its buffer, else the one with least to do: a loader's, that of
 * an earlier full-word port, or for reads the narrow one. A port that has no more words than
 * an even share of all leaves the narrow one while a loader's adapter brings nothing else. */
static int adapter_for(const struct bundling *b, const bool *placed, int number, int engine_port)
{
	int other = b->port[number].other;
	int best = engine_port;
	if (other >= 0 && placed[other])
		return b->port[other].bundle;
	int in_step = b->run_time_tiles ? adapter_in_step(b, placed, number, engine_port) : -1;
	if (in_step >= 0)
		return in_step;
	for (int i = engine_port + 1; i < b->ports; i++)
		if (adapter_words(b, i) < adapter_words(b, best))
			best = i;
	for (int i = 0; i < engine_port; i++)
		if (placed[i] && is_full_word_port(&b->port[i]) && b->port[i].bundle == i &&
		        adapter_words(b, i) < adapter_words(b, best))
			best = i;
	if (!is_shared_bundle(b, best) && is_even_share(b, engine_port, &b->port[number]))
		return best;
	return narrow_has_time(b, &b->port[number], adapter_words(b, best)) ? narrow_adapter(b)
	                                                                    : best;
}

/* adapters that are left when each engine port has one */
static int spare_adapters(const struct bundling *b, int engine_port)
{
	int spare = b->platform->ports;
	for (int i = 0; i < b->ports; i++)
		spare -= b->port[i].bundle == i &&
		        (i >= engine_port || !is_full_word_port(&b->port[i]));
	return spare;
}

/* Places full-word ports, those of most words first; each gets an adapter of its own while some are
 * left. engine_port: the first port of the engine's loaders, which are the last ports. Among equals
 * the last comes first and gets the adapters with least to do: words of a KV cache with a power of
 * two of rows end with its last port, and rows are appended there as well. */
static void place_full_word_ports(struct bundling *b, int engine_port)
{
	bool *placed = ARENA_ARRAY(b->module->arena, bool, b->ports + 1);
	for (int i = 0; i < b->ports; i++)
		b->port[i].bundle =
		        i >= engine_port || is_full_word_port(&b->port[i]) ? i : b->port[i].bundle;
	b->busiest = busiest_port(b);
	for (int spare = spare_adapters(b, engine_port);;) {
		int next = -1;
		for (int i = 0; i < engine_port; i++)
			if (!placed[i] && is_full_word_port(&b->port[i]) &&
			        (next < 0 || b->port[i].words >= b->port[next].words))
				next = i;
		if (next < 0)
			return;
		bool founds =
		        spare > 0 && (b->port[next].other < 0 || !placed[b->port[next].other]);
		b->port[next].bundle = founds ? next : adapter_for(b, placed, next, engine_port);
		b->port[next].narrow = b->port[b->port[next].bundle].narrow;
		b->port[next].moved_to_narrow = b->port[next].narrow && !b->run_time_tiles;
		spare -= founds;
		placed[next] = true;
	}
}

static int count_adapters(const struct bundling *b)
{
	int adapters = 0;
	for (int i = 0; i < b->ports; i++)
		adapters += b->port[i].bundle == i;
	return adapters;
}

bool channel_has_time(int64_t engine_words, int64_t operand_words, int64_t extra_words)
{
	return operand_words + extra_words + extra_words / URGENT_SHARE <= engine_words;
}

/* Words of zero points are a quarter as many as the engine's words or half as many, and come at an
 * even pace: the channel of narrow ports brings them, where it has time. */
static void move_zeros(struct bundling *b, int engine_port, int narrow)
{
	for (int i = 0; i < engine_port; i++) {
		struct bundled *port = &b->port[i];
		if (!is_loaded_by(b, i, "zeros") || !is_full_word_port(port) ||
		        !channel_has_time(
		                b->port[engine_port].layered, slow_words(b), port->layered))
			continue;
		port->moved_to_narrow = port->narrow = true;
		port->bundle = narrow;
	}
}

/* The channel of narrow ports has next to nothing to do. Where it has time for all full words that
 * are read besides weights, it takes these, else the first half if it has time for that: the keys.
 * On a loader's adapter they would delay the whole engine. Only for launches of one token, which
 * wait for memory. */
static void move_to_narrow_adapter(struct bundling *b, int engine_port)
{
	int narrow = narrow_adapter(b);
	int64_t all = 0;
	int64_t words = 0;
	if (b->piggyback && engine_port < b->ports && narrow >= 0)
		move_zeros(b, engine_port, narrow);
	for (int i = 0; i < engine_port; i++)
		all += is_full_word_read(&b->port[i]) ? b->port[i].layered : 0;
	if (!b->piggyback || engine_port >= b->ports || narrow < 0 || !all)
		return;
	int64_t layered = b->port[engine_port].layered;
	int64_t narrow_words = slow_words(b);
	int64_t most = channel_has_time(layered, narrow_words, all) ? all : all / 2;
	for (int i = 0; i < engine_port && channel_has_time(layered, narrow_words, most); i++) {
		struct bundled *port = &b->port[i];
		words += is_full_word_read(port) ? port->layered : 0;
		if (!is_full_word_read(port) || words > most)
			continue;
		port->moved_to_narrow = port->narrow = true;
		port->bundle = narrow;
	}
}

static int64_t words_of_adapter(const struct bundling *b, int bundle)
{
	int64_t words = 0;
	for (int i = 0; i < b->ports; i++)
		words += b->port[i].bundle == bundle ? b->port[i].words : 0;
	return words;
}

static void move_bundle(struct bundling *b, int from, int to)
{
	for (int i = 0; i < b->ports; i++) {
		if (b->port[i].bundle != from)
			continue;
		b->port[i].bundle = to;
		b->port[i].narrow = b->port[to].narrow;
	}
}

/* Two adapters, and the words of both. */
struct adapter_pair {
	int from, to; /* -1: there are none */
	int64_t words;
};

/* The two adapters of equally wide words that have least to do together. */
static struct adapter_pair least_pair(const struct bundling *b)
{
	struct adapter_pair best = { -1, -1, INT64_MAX };
	for (int i = 0; i < b->ports; i++)
		for (int j = 0; j < i && b->port[i].bundle == i; j++) {
			int64_t words = words_of_adapter(b, i) + words_of_adapter(b, j);
			if (b->port[j].bundle == j && b->port[i].bits == b->port[j].bits &&
			        b->port[i].narrow == b->port[j].narrow && words < best.words)
				best = (struct adapter_pair){ i, j, words };
		}
	return best;
}

/* The adapter of wide words with least to do, but for one; -1: there is none. */
static int least_adapter(const struct bundling *b, int except)
{
	int least = -1;
	for (int i = 0; i < b->ports; i++)
		if (b->port[i].bundle == i && !b->port[i].narrow && i != except &&
		        (least < 0 || words_of_adapter(b, i) < words_of_adapter(b, least)))
			least = i;
	return least;
}

/* Words that are read one by one if one adapter less is left by that: those of the adapter with
 * least to do, and of the narrow one or else the next one. */
static int64_t words_read_singly(const struct bundling *b)
{
	int narrow = narrow_adapter(b);
	int least = least_adapter(b, -1);
	int with = narrow < 0 ? least_adapter(b, least) : narrow;
	return words_of_adapter(b, least) + words_of_adapter(b, with);
}

/* Words of the adapter with least to do are read one by one, with those of other widths. */
static bool make_narrow(struct bundling *b)
{
	int narrow = narrow_adapter(b);
	int least = least_adapter(b, -1);
	if (least < 0)
		return false;
	b->port[least].narrow = true;
	move_bundle(b, least, narrow < 0 ? least : narrow);
	return true;
}

/* Makes one adapter less of two, or words narrow: what takes less time. */
static bool join_some(struct bundling *b)
{
	struct adapter_pair pair = least_pair(b);
	if (pair.from < 0 || pair.words > words_read_singly(b) * b->platform->memory_latency)
		return make_narrow(b);
	move_bundle(b, pair.from, pair.to);
	return true;
}

/* A board with few adapters: theirs are joined until they suffice. */
static void join_least(struct bundling *b)
{
	while (count_adapters(b) > b->platform->ports && join_some(b))
		;
}

static bool is_last_result(const struct bundled *port)
{
	return port->write && is_full_word_port(port) && !port->layered;
}

static int least_loader(const struct bundling *b, int engine_port)
{
	int least = engine_port;
	for (int i = engine_port; i < b->ports; i++)
		if (words_of_adapter(b, i) < words_of_adapter(b, least))
			least = i;
	return least;
}

/* Where nothing else is short of adapters, results that are written after the last layer use those
 * of the loaders with least to do, and all other ports stay where they have joined. */
static void join_last_results(struct bundling *b, int engine_port)
{
	int excess = count_adapters(b) - b->platform->ports;
	int results = 0;
	for (int i = 0; i < engine_port; i++)
		results += b->port[i].bundle == i && is_last_result(&b->port[i]);
	if (b->run_time_tiles || excess > results)
		return;
	for (int i = 0; i < engine_port && excess > 0; i++)
		if (b->port[i].bundle == i && is_last_result(&b->port[i])) {
			move_bundle(b, i, least_loader(b, engine_port));
			excess--;
		}
}

/* engine_port: the first port of the engine's loaders, which are the last ports; the number of
 * ports: there is no engine. */
static void bundle_ports(struct bundling *b, int engine_port)
{
	describe_ports(b);
	join_narrow(b);
	move_to_narrow_adapter(b, engine_port);
	if (engine_port < b->ports) {
		join_wide(b);
		join_last_results(b, engine_port);
	}
	if (engine_port < b->ports && (count_adapters(b) > b->platform->ports || b->run_time_tiles))
		place_full_word_ports(b, engine_port);
	if (engine_port >= b->ports)
		join_least(b);
	set_bundles(b);
}

static int bundles_of(const struct bundling *b)
{
	struct map adapters = map_new(b->module->arena);
	for (int i = 0; i < b->ports; i++) {
		const struct attr *bundle = attr_item(b->port_attr[i], KEY_STREAM_BUNDLE);
		const struct attr *port = attr_item(b->port_attr[i], KEY_STREAM_PORT);
		map_set(&adapters, bundle ? bundle->text : port->text, b->module);
	}
	return (int)adapters.entries.count;
}

static bool has_same(const struct attr *left, const struct attr *right, enum attr_key key)
{
	const struct attr *l = attr_item(left, key);
	const struct attr *r = attr_item(right, key);
	return l && r && text_same(l->text, r->text);
}

/* Does another port read what this one writes word by word? */
static bool is_scattered(const struct bundling *b, int number)
{
	const struct attr *port = b->port_attr[number];
	bool other = false;
	for (int i = 0; i < b->ports; i++)
		other |= i != number && has_same(b->port_attr[i], port, KEY_STREAM_BUFFER);
	return other && attr_item(port, KEY_STREAM_BURST) &&
	        text_same(attr_item(port, KEY_STREAM_DIRECTION)->text, "write");
}

/* Must both ports reach one memory channel? What an adapter writes word by word goes to its
 * buffer's channel. */
static bool share_channel(const struct attr *left, const struct attr *right, bool scattered)
{
	return has_same(left, right, KEY_STREAM_BUFFER) ||
	        (has_same(left, right, KEY_STREAM_BUNDLE) && !scattered);
}

/* Assigns memory channels: each buffer the next one, so that bulk streams share none while there
 * are channels left; but ports of one adapter, and those of one buffer, share a channel. */
static void assign_channels(const struct bundling *b)
{
	struct module *module = b->module;
	int ports = b->ports;
	int channels = 0;
	int *channel = ARENA_ARRAY(module->arena, int, ports + 1);
	int *group = ARENA_ARRAY(module->arena, int, ports + 1);
	const struct attr **port = b->port_attr;
	bool *scattered = ARENA_ARRAY(module->arena, bool, ports + 1);
	for (int i = 0; i < ports; i++) {
		group[i] = i;
		scattered[i] = is_scattered(b, i);
		for (int j = 0; j < i; j++)
			if (share_channel(port[i], port[j], scattered[i] || scattered[j]))
				for (int k = 0, from = group[i], to = group[j]; k <= i; k++)
					group[k] = group[k] == from ? to : group[k];
	}
	for (int i = 0; i < ports; i++)
		channel[i] = -1;
	for (int i = 0; i < ports; i++) {
		if (channel[group[i]] < 0)
			channel[group[i]] = channels++ % b->platform->channels;
		port[i] = attr_with(module, port[i], KEY_STREAM_CHANNEL,
		        attr_integer(module, channel[group[i]]));
	}
}

/* the first port of the same buffer */
static int first_of_buffer(const struct bundling *b, int number)
{
	int first = 0;
	while (!text_same(b->port[first].buffer, b->port[number].buffer))
		first++;
	return first;
}

/* Do all words of the port's adapter travel one by one? It may then reach any channel. */
static bool is_single_adapter(const struct bundling *b, int number)
{
	const struct attr *port = b->port_attr[number];
	bool single = attr_item(port, KEY_STREAM_BURST);
	for (int i = 0; i < b->ports; i++)
		single &= !has_same(b->port_attr[i], port, KEY_STREAM_BUNDLE) ||
		        attr_item(b->port_attr[i], KEY_STREAM_BURST);
	return single;
}

static void balance(const struct bundling *b)
{
	struct arena *arena = b->module->arena;
	struct channel_port *port = ARENA_ARRAY(arena, struct channel_port, b->ports + 1);
	for (int i = 0; i < b->ports; i++)
		port[i] = (struct channel_port){ .buffer = first_of_buffer(b, i),
			.channel = (int)attr_item_integer(b->port_attr[i], KEY_STREAM_CHANNEL, 0),
			.bytes = b->port[i].words * b->port[i].bits / 8,
			.engine = is_loaded_by(b, i, "engine"),
			.far = is_single_adapter(b, i) };
	balance_channels(arena, port, b->ports, b->platform->channels);
	for (int i = 0; i < b->ports; i++)
		b->port_attr[i] = attr_with(b->module, b->port_attr[i], KEY_STREAM_CHANNEL,
		        attr_integer(b->module, port[i].channel));
}

static bool too_many_ports(struct pass_context *context, const struct bundling *b)
{
	int ports = bundles_of(b);
	int most = b->platform->ports;
	if (ports <= most)
		return false;
	context->excess_ports = ports - most;
	diag_error(b->module->diag, NOWHERE,
	        "the design needs %d memory ports, %d more than the %d that %s has", ports,
	        ports - most, most, b->platform->name);
	diag_note(b->module->diag,
	        "words equally wide share ports where they can, and results smaller than 1024 "
	        "elements one; `stc platforms` says how many ports other platforms have");
	return true;
}

/* What make_processes recorded of the ports and the engine. */
static struct bundling of_main(const struct pass_context *context, struct module *module)
{
	const struct op *main = module_main(module);
	const struct attr *engine = attr_get(main, KEY_STREAM_ENGINE);
	struct bundling b = { .module = module,
		.platform = context->platform,
		.block = main->region[0],
		.ports = main->region[0]->arguments,
		.pes_per_port = (int)attr_item_integer(engine, KEY_PES_PER_PORT, 1),
		.tokens = attr_item_integer(engine, KEY_TOKENS, 0),
		.run_time_tiles = workload_of(main) == WORKLOAD_TILED_COUNTED_TOKENS,
		.piggyback = operands_share_weight_port(main) };
	const struct attr *list = attr_get(main, KEY_ARG_ATTRS);
	b.port_attr = ARENA_ARRAY(module->arena, const struct attr *, b.ports + 1);
	for (int i = 0; i < b.ports; i++)
		b.port_attr[i] = list->items[i].value;
	return b;
}

static int first_engine_port(const struct bundling *b)
{
	int i = 0;
	while (i < b->ports && !is_loaded_by(b, i, "engine"))
		i++;
	return i;
}

/* Does the HLS compiler find bursts in what the port's process does? */
static bool has_bursts(const struct bundling *b, int number)
{
	for (const struct op *call = b->block->first; call; call = call->next)
		for (int i = 0; call->code == OP_CALL && i < call->operands; i++)
			if (call->operand[i] == b->block->argument[number])
				return port_run_bursts(
				        module_find(b->module, attr_text_or(call, KEY_CALLEE, "")),
				        i);
	return true;
}

static void mark_single_words(const struct bundling *b)
{
	for (int i = 0; i < b->ports; i++)
		if (!has_bursts(b, i))
			b->port_attr[i] = attr_with(b->module, b->port_attr[i], KEY_STREAM_BURST,
			        attr_integer(b->module, 1));
}

bool assign_axi_bundles(struct pass_context *context, struct module *module)
{
	struct bundling b = of_main(context, module);
	int engine_port = first_engine_port(&b);
	if (engine_port < b.ports)
		bundle_ports(&b, engine_port);
	if (bundles_of(&b) > b.platform->ports)
		bundle_ports(&b, b.ports);
	if (too_many_ports(context, &b))
		return false;
	mark_single_words(&b);
	assign_channels(&b);
	if (!b.port)
		describe_ports(&b);
	balance(&b);
	attr_set(module, module_main(module), KEY_ARG_ATTRS,
	        attr_array(module, b.ports, b.port_attr));
	return true;
}
