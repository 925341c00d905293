/* Which memory ports share an adapter, so that more are left for the slices of a unit.
 * The vendor's compiler lets pointers of several processes be one interface, each with a load or
 * store unit of its own, if each is given a channel (UG1399, M_AXI Channels).  Pointers of one
 * interface should be equally wide: otherwise no bursts are inferred (UG1448, 200-451).  So:
 *   Where adapters are short, ports as wide as the unit's words ride on those of its loaders: a
 *   loader runs so far ahead that it can wait while keys and values are read, and they while
 *   weights are.  An adapter that
 *   is left takes as many of them as keep it as busy as the others, and so does that of narrow
 *   ports.
 *   Other ports share with equally wide ones, as long as what joins is no more than what is there.
 *   Those through which few words go, and that are narrow or append to what another one reads,
 *   or are few beside the unit's, share one adapter that reaches all their buffers' channels (a
 *   linker takes a range of
 *   channels for a port, UG1393); their words travel one by one.
 * What else shares an adapter shares a memory channel, and so do ports of one buffer. */
#include "ir/workload.h"
#include "ir/contract.h"
#include "predict/bundle.h"
#include "ports/memory_image.h"

#define NARROW_BITS 64
#define FEW_WORDS 4096 /* of a launch */
/* requests for single full words that a port has: a word in three and a half cycles where memory
 * takes 100 to answer each, while the unit's take one and a half, */
#define REQUESTS 32
#define SLOWER 3 /* so at most so many times as long */
/* one part in so many, which nobody waits for where another adapter would have a row's words
 * more */
#define LITTLE_MORE 64
/* of words that are at most one in FEW_WAIT of the unit's: they have as much time */
#define REQUESTS_FEW 16
#define FEW_WAIT 6
#define REQUESTS_NARROW 64 /* of narrow words, which take next to no room on their way */
/* in a launch, from which on that is worth it: each would take six cycles */
#define MANY_NARROW 256
/* that all riders on its adapter have between them, as many as its channel's bandwidth needs and
 * half as many again, since they wait for each other */
#define REQUESTS_ALL 192
/* of their words, one part in so many counts twice: a layer's are wanted while attention works,
 * those of the unit a layer long */
#define WANTED_SOONER 4
/* of a unit's port, the words that small operands have are at most one part in so many */
#define SELDOM 4
/* of full words, what joins is at most one part in so many of the port that it joins */
#define LITTLE 8

struct bundled {
	int64_t bits, words;  /* of the port; in a launch, at the most, */
	int64_t layered;      /* of these, in the loops over layers; all where there are none */
	bool write, narrow;   /* narrow: its words travel one by one, */
	bool moved_to_narrow; /* although they are many */
	const char *buffer;
	int other;                /* another port of its buffer; -1: none */
	int bundle;               /* the first port of the bundle */
	const struct op *process; /* the call that reads or writes it; */
	/* of its ports, which come in as many parts as it reads one after the other, the one
	 * that this is in, */
	int part;
	int parallel_ports; /* of so many that it reads side by side */
};

struct bundling {
	struct design *design;
	int ports;
	struct bundled *port;
	/* the port of the unit's through which more words come than through any other, where
	 * that matters; -1: none */
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

/* Full words that are few beside the unit's, and are read ahead: a request for each is quick
 * enough, and no slice's adapter has more to do than the others because of them. */
static bool is_seldom(const struct bundling *b, const struct bundled *port, int64_t most)
{
	bool once = port->words <= FEW_WORDS && port->other < 0 && !port->write;
	return port->bits == ENGINE_WORD_BITS &&
	        (once ||
	                (map_get(&b->design->shared, port->buffer) &&
	                        port->words <= most / SELDOM));
}

/* One token of many that a launch may have waits for memory. */
static bool counts_tiles(const struct bundling *b)
{
	return engine_has_run_time_tiles(b->design->source->region[0]);
}

/* What is few for one token is so for as many as a launch may have. */
static int64_t tokens_counted(const struct bundling *b)
{
	return counts_tiles(b) ? engine_tokens(b->design->source->region[0], NULL) : 1;
}

/* A loader's words are as wide as the ports that it reads side by side. */
static void find_process(
        const struct design *design, const struct value *argument, struct bundled *port)
{
	int64_t wide = port->bits;
	int number = 0;
	for (const struct op *call = design->block->first; call && !port->process;
	        call = call->next)
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

/* Ports that words are dealt out to one by one stand side by side as well, though each has a
 * loader. */
static void mark_adjacent_ports(const struct bundling *b, struct bundled *port)
{
	const struct state *state = map_get(&b->design->interleaved_states, port->buffer);
	if (!state || port->write)
		return;
	port->parallel_ports = state->parts * state->ports;
	for (int i = 0; i < b->ports; i++)
		if (text_same(b->port[i].buffer, state->buffer[0]) && !b->port[i].write)
			port->process = b->port[i].process;
}

static void survey(struct bundling *b)
{
	struct design *design = b->design;
	b->ports = design->block->arguments;
	b->port = ARENA_ARRAY(design->module->arena, struct bundled, b->ports + 1);
	for (int i = 0; i < b->ports; i++) {
		struct value *argument = design->block->argument[i];
		struct bundled *port = &b->port[i];
		*port = (struct bundled){ .bits = type_bits(argument->type->element),
			.words = bundle_words(
			        design->module, design->block, argument, false, 0, NULL),
			.bundle = i };
		port->layered =
		        bundle_words(design->module, design->block, argument, true, 0, NULL);
		port->write = text_same(
		        attr_item(design->port_attrs.data[i], KEY_STREAM_DIRECTION)->text, "write");
		port->buffer = attr_item(design->port_attrs.data[i], KEY_STREAM_BUFFER)->text;
		find_process(design, argument, port);
	}
	for (int i = 0; i < b->ports; i++)
		mark_adjacent_ports(b, &b->port[i]);
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
	for (int i = 0; narrow && i < b->ports; i++)
		b->port[i].narrow = b->port[i].narrow || is_seldom(b, &b->port[i], most);
}

/* As wide as the unit's words. */
static bool is_full_word_port(const struct bundled *port)
{
	return port->bits == ENGINE_WORD_BITS && !port->narrow;
}

/* What is read beside the unit's words, in words as wide. */
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

/* Words that go the way of `port` through a bundle, beside those of its first; of the unit's
 * words, whichever way, since its channel has no time to spare. */
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

/* Results behind the layers come while loaders bring the head's words as fast as memory can, and
 * the slowest of these holds up all. */
static bool delays_last_layer(const struct bundled *port, const struct bundled *first)
{
	return port->write && is_full_word_port(port) && !port->layered && !first->write &&
	        first->layered > 0 && first->layered < first->words;
}

/* The bundle of equally wide ports that has least to do beside its first, whose words all beside
 * it, or at least the port's, are little against.  -1: there is none. */
static int place_for(const struct bundling *b, const bool *placed, int number)
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

/* The ports of most words first. */
static void join_wide(struct bundling *b)
{
	bool *placed = ARENA_ARRAY(b->design->module->arena, bool, b->ports + 1);
	for (int count = 0; count < b->ports; count++) {
		int next = -1;
		for (int i = 0; i < b->ports; i++)
			if (!placed[i] && (next < 0 || b->port[i].words > b->port[next].words))
				next = i;
		int place = b->port[next].narrow ? -1 : place_for(b, placed, next);
		if (place >= 0)
			b->port[next].bundle = place;
		placed[next] = true;
	}
}

static bool is_shared(const struct bundling *b, int bundle)
{
	int count = 0;
	for (int i = 0; i < b->ports; i++)
		count += b->port[i].bundle == bundle;
	return count > 1;
}

/* Requests under way of a port whose words travel one by one; 0: as many as of any. */
static int64_t outstanding_requests(const struct bundling *b, int number)
{
	const struct bundled *port = &b->port[number];
	int64_t moved_ports = 0;
	int64_t most = 0;
	if (!port->narrow || port->write)
		return 0;
	if (port->bits <= NARROW_BITS)
		return port->words >= MANY_NARROW ? REQUESTS_NARROW : 0;
	if (port->bits != ENGINE_WORD_BITS || port->words <= FEW_WORDS)
		return 0;
	for (int i = 0; i < b->ports; i++) {
		moved_ports += b->port[i].moved_to_narrow;
		most = b->port[i].layered > most && is_full_word_port(&b->port[i])
		        ? b->port[i].layered
		        : most;
	}
	if (counts_tiles(b) && port->layered * FEW_WAIT <= most)
		return REQUESTS_FEW;
	return !port->moved_to_narrow || moved_ports * REQUESTS <= REQUESTS_ALL ? REQUESTS
	        : moved_ports < REQUESTS_ALL ? REQUESTS_ALL / moved_ports
	                                     : 1;
}

static void set_bundles(const struct bundling *b)
{
	struct design *design = b->design;
	for (int i = 0; i < b->ports; i++) {
		const struct attr **attrs = &design->port_attrs.data[i];
		if (!is_shared(b, b->port[i].bundle))
			continue;
		*attrs = attr_with(design->module, *attrs, KEY_STREAM_BUNDLE,
		        attr_item(design->port_attrs.data[b->port[i].bundle], KEY_STREAM_PORT));
		if (b->port[i].narrow)
			*attrs = attr_with(design->module, *attrs, KEY_STREAM_BURST,
			        attr_integer(design->module, 1));
		int64_t requests = outstanding_requests(b, i);
		if (requests)
			*attrs = attr_with(design->module, *attrs, KEY_STREAM_OUTSTANDING,
			        attr_integer(design->module, requests));
	}
}

int adapters_outside_engine(struct design *design)
{
	struct bundling b = { .design = design };
	int adapters = 0;
	survey(&b);
	join_narrow(&b);
	join_wide(&b);
	for (int i = 0; i < b.ports; i++)
		adapters += b.port[i].bundle == i && !is_full_word_port(&b.port[i]);
	return adapters;
}

int state_adapters(struct design *design, int64_t words)
{
	struct bundling b = { .design = design };
	int adapters = 0;
	survey(&b);
	for (int i = 0; i < b.ports; i++)
		adapters += is_full_word_read(&b.port[i]) && b.port[i].parallel_ports == 1 &&
		        b.port[i].words > words;
	return counts_tiles(&b) ? adapters : 0;
}

int wide_state_ports(struct design *design, int *parallel_ports)
{
	struct bundling b = { .design = design };
	int ports = 0;
	survey(&b);
	*parallel_ports = 1;
	for (int i = 0; i < b.ports; i++) {
		bool words_through_bundle =
		        is_full_word_read(&b.port[i]) && b.port[i].parallel_ports > 1;
		ports += words_through_bundle;
		*parallel_ports = words_through_bundle ? b.port[i].parallel_ports : *parallel_ports;
	}
	return ports;
}

/* What an adapter has to do while layers are worked on: keys and values come then alone, weights
 * behind the last layer as well. */
static int64_t load_of(const struct bundling *b, int bundle)
{
	int64_t words = 0;
	for (int i = 0; i < b->ports; i++)
		words += b->port[i].bundle == bundle ? b->port[i].layered : 0;
	return words;
}

/* That are read one by one while layers are worked on, through all ports: what is written goes
 * another way. */
static int64_t slow_words(const struct bundling *b)
{
	int64_t words = 0;
	for (int i = 0; i < b->ports; i++)
		words += b->port[i].narrow && !b->port[i].write ? b->port[i].layered : 0;
	return words;
}

/* The adapter of narrow ports.  -1: there is none. */
static int narrow_adapter(const struct bundling *b)
{
	int i = 0;
	while (i < b->ports && !b->port[i].narrow)
		i++;
	return i < b->ports ? i : -1;
}

static bool is_same_loader_part(const struct bundled *port, const struct bundled *other)
{
	return port->process == other->process && port->part == other->part;
}

/* For how many words the loader of a unit's port would have to wait if `port`'s part came
 * through its adapters too: its ports go on in step, so what comes side by side holds it up
 * once. */
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

/* Can the adapter of narrow ports bring what is read, word by word, while another one would have
 * so much to do? */
static bool narrow_has_time(const struct bundling *b, const struct bundled *port, int64_t least)
{
	return !port->write && narrow_adapter(b) >= 0 &&
	        SLOWER * port->layered < least + port->layered &&
	        slow_words(b) + port->layered <= least + least / LITTLE_MORE;
}

/* Scales are whole rows of all slices.  It matters where slices are two for each port, and a
 * token waits for memory. */
static int busiest_port(const struct bundling *b)
{
	int busiest = engine_shape(b->design->source->region[0]).pes_per_port > 1 ? 0 : -1;
	for (int i = 1; busiest >= 0 && i < b->ports; i++)
		busiest = b->port[i].layered > b->port[busiest].layered ? i : busiest;
	for (int i = 0; busiest >= 0 && i < b->ports; i++)
		if (i != busiest && b->port[i].layered == b->port[busiest].layered)
			return -1;
	return busiest;
}

/* Has the adapter as much beside the unit's words already as it would get, or is it the one that
 * all would wait for, while another has time? */
static bool is_laden(const struct bundling *b, int adapter, const struct bundled *port)
{
	int64_t own = b->port[adapter].layered;
	return 2 * (load_of(b, adapter) - own) > port->layered ||
	        (adapter == b->busiest && narrow_has_time(b, port, own));
}

/* Of a loader's adapters the one that has least to do, without those that are laden. */
static int adapter_of(
        const struct bundling *b, int loader, int engine_port, const struct bundled *port)
{
	int best = -1;
	for (int i = engine_port; i < b->ports; i++)
		if (b->port[i].process == b->port[loader].process && !is_laden(b, i, port) &&
		        (best < 0 || load_of(b, i) < load_of(b, best)))
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

/* The loader that has least to wait for, of those that have room for all that stands side by
 * side, if there is one.  -1: all adapters are laden. */
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

/* Of the loader that brings what stands side by side with this port already, or of another.  -1:
 * all adapters are laden. */
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

/* Where the other port of its buffer is, else on the adapter that has least to do: a loader's,
 * that of an earlier one, or, of what is read, that of narrow ports. */
static int adapter_for(const struct bundling *b, const bool *placed, int number, int engine_port)
{
	int other = b->port[number].other;
	int best = engine_port;
	if (other >= 0 && placed[other])
		return b->port[other].bundle;
	int in_step = counts_tiles(b) ? adapter_in_step(b, placed, number, engine_port) : -1;
	if (in_step >= 0)
		return in_step;
	for (int i = engine_port + 1; i < b->ports; i++)
		if (load_of(b, i) < load_of(b, best))
			best = i;
	for (int i = 0; i < engine_port; i++)
		if (placed[i] && is_full_word_port(&b->port[i]) && b->port[i].bundle == i &&
		        load_of(b, i) < load_of(b, best))
			best = i;
	return narrow_has_time(b, &b->port[number], load_of(b, best)) ? narrow_adapter(b) : best;
}

/* Adapters that are left where each loader of the unit has one. */
static int spare_adapters(const struct bundling *b, int engine_port)
{
	int spare = b->design->context->platform->ports;
	for (int i = 0; i < b->ports; i++)
		spare -= b->port[i].bundle == i &&
		        (i >= engine_port || !is_full_word_port(&b->port[i]));
	return spare;
}

/* unit: the first port of the unit's loaders, which are the last ports.  Those of most words
 * first; they found an adapter while there are any left. Of alike ones the last comes first, and
 * has the adapters that have least to do: a past of a power of two ends with its words, and what
 * a token appends goes there as well. */
static void place_full_word_ports(struct bundling *b, int engine_port)
{
	bool *placed = ARENA_ARRAY(b->design->module->arena, bool, b->ports + 1);
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

bool channel_has_time(int64_t engine_port, int64_t words_through_bundle, int64_t words)
{
	return words_through_bundle + words + words / WANTED_SOONER <= engine_port;
}

/* The channel of narrow ports has next to nothing to do.  Where all that is read beside the
 * unit's words can come through it, it takes all of that, else the first half where that can,
 * which is the keys: a rider on one loader's adapter holds up the whole unit.  Of launches of
 * one token, which wait for memory. */
static void move_to_narrow_adapter(struct bundling *b, int engine_port)
{
	int narrow = narrow_adapter(b);
	int64_t all = 0;
	int64_t words = 0;
	for (int i = 0; i < engine_port; i++)
		all += is_full_word_read(&b->port[i]) ? b->port[i].layered : 0;
	if (!operands_share_weight_port(b->design->source) || engine_port >= b->ports ||
	        narrow < 0 || !all)
		return;
	int64_t layered = b->port[engine_port].layered;
	int64_t words_through_bundle = slow_words(b);
	int64_t most = channel_has_time(layered, words_through_bundle, all) ? all : all / 2;
	for (int i = 0; i < engine_port && channel_has_time(layered, words_through_bundle, most);
	        i++) {
		struct bundled *port = &b->port[i];
		words += is_full_word_read(port) ? port->layered : 0;
		if (!is_full_word_read(port) || words > most)
			continue;
		port->moved_to_narrow = port->narrow = true;
		port->bundle = narrow;
	}
}

void bundle_ports(struct design *design, int engine_port)
{
	struct bundling b = { .design = design };
	survey(&b);
	join_narrow(&b);
	move_to_narrow_adapter(&b, engine_port);
	join_wide(&b);
	if (engine_port < b.ports &&
	        (count_adapters(&b) > design->context->platform->ports || counts_tiles(&b)))
		place_full_word_ports(&b, engine_port);
	set_bundles(&b);
}

int design_adapters(const struct design *design)
{
	struct map adapters = map_new(design->module->arena);
	for (size_t i = 0; i < design->port_attrs.count; i++) {
		const struct attr *bundle =
		        attr_item(design->port_attrs.data[i], KEY_STREAM_BUNDLE);
		const struct attr *port = attr_item(design->port_attrs.data[i], KEY_STREAM_PORT);
		map_set(&adapters, bundle ? bundle->text : port->text, design->block);
	}
	return (int)adapters.entries.count;
}
