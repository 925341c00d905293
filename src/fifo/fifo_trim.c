/* Trims FIFO depths: finds the depths that a launch needs by running it.
 *
 * Deeper FIFOs never make a launch longer (every time is a maximum of earlier ones, and each
 * additional place removes one of them). So the set of depths that suffice is closed upwards, and a
 * pass that lowers each FIFO as far as possible ends where no single one can be lowered. The words
 * that a FIFO held in a run that suffices are enough as well, because the same run is possible with
 * them: so every run lowers all depths at once. The search starts from the latest schedule of a
 * launch, in which producers wait until their words are needed. Predictions of large designs leave
 * little budget for one FIFO at a time; then multiples of the depths with which a launch just ends
 * are tried as well.
 *
 * A launch that ends once always ends: processes only read and write FIFOs, and how often does
 * not depend on data, so the same words pass in all runs (Kahn). Pipelines hold words too, and how
 * many depends on latencies: so a second run must end in which they hold none, which is also how a
 * design runs on the CPU. Runs use the simulator if it is fast enough, else the token model, which
 * counts words exactly. */
#include "fifo/fifo_trim.h"
#include "streams/on_chip_footprint.h"
#include <stdlib.h>
#include <string.h>

#define TOLERANCE 200           /* cycles may grow by 1/TOLERANCE, */
#define TOLERANCE_PREDICTED 400 /* and predicted ones by less, because they are not exact */
#define TOLERANCE_ROOM 50       /* more where FIFOs take more than the memory otherwise */
#define RUNS_EXPECTED 24        /* runs that the budget must last for if the simulator is used */
/* 1/PROOF_SHARE of the budget is for the proof that a predicted launch ends */
#define PROOF_SHARE 8
#define PROOF_STEPS 4096 /* no FIFO makes the proof take more steps than about this many */
/* a prediction must be able to save 1/WORTH of all bytes */
#define WORTH 256
/* and moving words to another FIFO 1/WORTH_MOVE of them */
#define WORTH_MOVE 32
/* factor on the words that move past a process, since its results come in bursts */
#define DOWNSTREAM_SCALE 2.0
/* a predicted depth is known well enough to within 1/PRECISION */
#define PRECISION 64
/* multiples of minimal depths are tried if so many runs are left; deadlocked FIFOs are raised a lot
 * at once, since a run that suffices lowers them again */
#define LOW_WORTH 8
/* number of times that minimal depths are raised, */
#define LOW_STEPS 3
#define LOW_RAISED 4 /* by this factor */
/* words of every FIFO in the first step, if the latest schedule gave no depths; eight times as many
 * in the next */
#define LOW_WORDS 64
#define NOTHING_KNOWN (-1)
#define PREFETCH_BYTES (INT64_C(1) << 18)
#define PREFETCH_BYTES_MOST (INT64_C(1) << 20)
/* words: the model does not see the cost of fewer, and a shift register holds 16 at the same
 * price */
#define LEAST_PREDICTED 2

static void copy(const struct trimming *t, int64_t *to, const int64_t *from)
{
	memcpy(to, from, sizeof *to * (size_t)t->network->count);
}

/* Runs a launch with these depths in the simulator; sets t->cycles and t->most. false: it does not
 * end. */
static bool simulate(struct trimming *t, const int64_t *depth)
{
	struct fifo_network *n = t->network;
	struct cycle_result simulated;
	enum cycle_outcome outcome =
	        cycle_run(t->simulated, &(struct cycle_options){ .depth = depth }, &simulated);
	n->budget -= cycle_events(t->simulated);
	for (int i = 0; i < n->count && outcome == CYCLE_DONE; i++)
		t->most[i] = simulated.channel[i].most;
	t->cycles[0] = simulated.cycles;
	return outcome == CYCLE_DONE;
}

static bool run(struct trimming *t, const int64_t *depth)
{
	return t->simulated ? simulate(t, depth) : fifo_predict(t, depth, TOKEN_EARLIEST);
}

/* A predicted launch is only tested for this at the end of the search. */
static bool ends_in_order(struct trimming *t, const int64_t *depth)
{
	return !t->simulated || !t->network->tokens || fifo_terminates(t->network, true, depth);
}

/* next: depths that are tried next if these do not suffice; NULL: unknown. */
static bool suffices(struct trimming *t, const int64_t *depth, const int64_t *next)
{
	bool enough = t->simulated ? simulate(t, depth) && t->cycles[0] <= t->allowed[0]
	                           : fifo_predict_enough(t, depth, next);
	return enough && ends_in_order(t, depth);
}

static bool may_shrink(const struct fifo *fifo)
{
	return fifo->sized && !fifo->full_depth;
}

static bool is_sought(const struct trimming *t, int number)
{
	const struct fifo *fifo = &t->network->fifo[number];
	return may_shrink(fifo) &&
	        (t->simulated || !fifo->fixed_depth || !t->network->keep_fixed_depth);
}

static int64_t least_of(const struct trimming *t, int number)
{
	const struct fifo_network *n = t->network;
	if (t->simulated)
		return FIFO_LEAST;
	int64_t steps = n->tokens->channels.data[number].words / PROOF_STEPS;
	return steps > LEAST_PREDICTED ? steps : LEAST_PREDICTED;
}

/* Lowers each depth to the words that the FIFO held in the last run. */
static void lower(const struct trimming *t, int64_t *depth)
{
	for (int i = 0; i < t->network->count; i++) {
		int64_t least = least_of(t, i);
		int64_t most = t->most[i] > least ? t->most[i] : least;
		if (may_shrink(&t->network->fifo[i]) && most < depth[i])
			depth[i] = most;
	}
}

/* Accepts the trial, lowered to the words held in its run if that ends in order too. */
static void take(struct trimming *t, int64_t *depth)
{
	copy(t, depth, t->trial);
	lower(t, t->trial);
	if (ends_in_order(t, t->trial))
		copy(t, depth, t->trial);
}

/* bytes: of all FIFOs */
static bool worth(const struct trimming *t, int number, const int64_t *depth, int64_t bytes)
{
	int64_t gain = (depth[number] - least_of(t, number)) * t->network->fifo[number].word_bytes;
	return t->simulated || gain > bytes / WORTH;
}

/* Near the geometric mean: most depths that are needed are far below the first ones. */
static int64_t between(int64_t low, int64_t high)
{
	int64_t middle = low;
	while (middle / low < high / middle)
		middle *= 2;
	return middle == low || high / low < 4 ? low + (high - low) / 2 : middle;
}

/* Words by which a depth is still unknown. */
static int64_t unknown(const struct trimming *t, int number, int64_t low, const int64_t *depth)
{
	int64_t words = depth[number] - low - 1;
	int64_t known = t->simulated ? 0 : depth[number] / PRECISION;
	return words > known ? words : 0;
}

/* With nothing known about a FIFO, a prediction first tests whether it can be lowered at all: most
 * cannot, since no depth exceeds the words that were held. */
static int64_t next_trial(const struct trimming *t, int number, int64_t low, int64_t depth)
{
	int64_t least = least_of(t, number);
	int64_t highest = depth - depth / PRECISION - 1;
	if (low == NOTHING_KNOWN)
		return highest > least ? highest : least;
	return low < least ? least : between(low, depth);
}

/* A run that halves the unknown range of one FIFO. low: a depth that does not suffice. */
static void halve(struct trimming *t, int number, int64_t *low, int64_t *depth, const int64_t *next)
{
	int64_t tried = next_trial(t, number, *low, depth[number]);
	copy(t, t->trial, depth);
	t->trial[number] = tried;
	bool enough = suffices(t, t->trial, next);
	if (enough)
		take(t, depth);
	if (!enough || *low == NOTHING_KNOWN)
		*low = enough ? least_of(t, number) - 1 : tried;
}

static int64_t first_low(const struct trimming *t, int number)
{
	return t->simulated ? least_of(t, number) - 1 : NOTHING_KNOWN;
}

/* Lowers the depth of one FIFO as far as possible. */
static void shrink(struct trimming *t, int number, int64_t *depth)
{
	int64_t low = first_low(t, number);
	while (unknown(t, number, low, depth) && t->network->budget > t->reserve)
		halve(t, number, &low, depth, NULL);
}

static bool from_memory(const struct fifo *fifo)
{
	return attr_get(fifo->channel->def, KEY_STREAM_PREFETCH) != NULL;
}

/* --- the order of the search */

struct search_item {
	int number;
	/* prefetched words from memory come last: they are no intermediate results */
	bool from_memory;
	int64_t key;
};

static int by_key(const void *left, const void *right)
{
	const struct search_item *l = left;
	const struct search_item *r = right;
	if (l->from_memory != r->from_memory)
		return l->from_memory - r->from_memory;
	if (l->key != r->key)
		return l->key < r->key ? -1 : 1;
	return l->number - r->number;
}

static struct search_item *search_order(const struct trimming *t, const int64_t *depth, int order)
{
	struct fifo_network *n = t->network;
	struct search_item *search_item = ARENA_ARRAY(n->arena, struct search_item, n->count + 1);
	for (int i = 0; i < n->count; i++) {
		int64_t bytes = depth[i] * n->fifo[i].word_bytes;
		const int64_t key[FIFO_ORDERS] = { -bytes, bytes, i, -i,
			(int64_t)((uint64_t)i * 0x9E3779B97F4A7C15u >> 20) };
		search_item[i] = (struct search_item){ i, from_memory(&n->fifo[i]),
			key[order % FIFO_ORDERS] };
	}
	qsort(search_item, (size_t)n->count, sizeof *search_item, by_key);
	return search_item;
}

/* The FIFO with the most unknown bytes; those from memory last. -1: enough is known about all. */
static int least_known(const struct trimming *t, const int64_t *low, const int64_t *depth)
{
	const struct fifo_network *n = t->network;
	int64_t all = fifo_bytes(n, depth);
	int64_t most = 0;
	int best = -1;
	for (int i = 0; i < n->count; i++) {
		bool is_last =
		        best >= 0 && from_memory(&n->fifo[i]) && !from_memory(&n->fifo[best]);
		bool is_first =
		        best >= 0 && from_memory(&n->fifo[best]) && !from_memory(&n->fifo[i]);
		int64_t bytes = is_sought(t, i) && worth(t, i, depth, all)
		        ? unknown(t, i, low[i], depth) * n->fifo[i].word_bytes
		        : 0;
		if (bytes && !is_last && (is_first || bytes > most)) {
			most = bytes;
			best = i;
		}
	}
	return best;
}

/* The depths that are tried next if this FIFO cannot be lowered; NULL: there are none. */
static const int64_t *next_candidate(
        const struct trimming *t, int number, int64_t *low, const int64_t *depth, int64_t *next)
{
	int64_t known = low[number];
	low[number] = next_trial(t, number, known, depth[number]);
	int other = least_known(t, low, depth);
	copy(t, next, depth);
	if (other >= 0)
		next[other] = next_trial(t, other, low[other], depth[other]);
	low[number] = known;
	return other >= 0 ? next : NULL;
}

/* Lowers all depths, always the one about which a run can tell most: few predictions are left for
 * many FIFOs, and the first of them could use all. */
static void shrink_least_known(struct trimming *t, int64_t *depth)
{
	const struct fifo_network *n = t->network;
	int64_t *low = ARENA_ARRAY(n->arena, int64_t, n->count + 1);
	int64_t *next = ARENA_ARRAY(n->arena, int64_t, n->count + 1);
	for (int i = 0; i < n->count; i++)
		low[i] = first_low(t, i);
	for (int i; n->budget > t->reserve && (i = least_known(t, low, depth)) >= 0;)
		halve(t, i, &low[i], depth, next_candidate(t, i, low, depth, next));
}

static void shrink_in_order(struct trimming *t, int order, int64_t *depth)
{
	struct search_item *search_item = search_order(t, depth, order);
	for (int i = 0; i < t->network->count; i++)
		if (is_sought(t, search_item[i].number) &&
		        worth(t, search_item[i].number, depth, fifo_bytes(t->network, depth)))
			shrink(t, search_item[i].number, depth);
}

/* --- trimming */

/* Limits the bytes that are prefetched by each reader of memory; false: no FIFO exceeds the
 * limit. */
static bool cap_prefetch(struct trimming *t, int64_t most, const int64_t *depth)
{
	const struct fifo_network *n = t->network;
	bool far = false;
	copy(t, t->trial, depth);
	for (int i = 0; i < n->count; i++) {
		int64_t bytes = n->fifo[i].word_bytes;
		if (!is_sought(t, i) || !from_memory(&n->fifo[i]) || depth[i] * bytes <= most)
			continue;
		t->trial[i] = most / bytes;
		far = true;
	}
	return far;
}

/* Tries a prefetch of 256 KiB for each reader of memory, then of twice and of four times as much.
 * false: the last prediction was of other depths. */
static bool begin_capped_prefetch(struct trimming *t, int64_t *depth)
{
	bool enough = false;
	for (int64_t most = PREFETCH_BYTES; most <= PREFETCH_BYTES_MOST && !enough; most *= 2) {
		if (!cap_prefetch(t, most, depth))
			return most == PREFETCH_BYTES;
		enough = suffices(t, t->trial, NULL);
	}
	if (enough)
		take(t, depth);
	return enough;
}

/* Lowers depths to the words held in the latest schedule that takes as long as the one with these
 * depths. known: theirs was the last prediction. latest: those words, or the given depths. */
static void begin_latest_schedule(struct trimming *t, bool known, int64_t *depth, int64_t *latest)
{
	copy(t, latest, depth);
	if (!t->network->tokens || (!known && !fifo_predict_ends(t, depth)))
		return;
	copy(t, t->trial, depth);
	if (!fifo_predict(t, depth, TOKEN_LATEST))
		return;
	lower(t, t->trial);
	copy(t, latest, t->trial);
	if (suffices(t, t->trial, NULL))
		take(t, depth);
}

/* If no depths were found that the memory has room for, those of the latest schedule may make a
 * launch somewhat longer: safe depths cost more. */
static void end_with_room(struct trimming *t, const int64_t *latest, int64_t *depth)
{
	const struct fifo_network *n = t->network;
	int64_t room = on_chip_budget(n->context);
	int64_t allowed[TRIM_EXTENTS];
	if (t->simulated || fifo_bytes(n, depth) <= room || fifo_bytes(n, latest) > room)
		return;
	memcpy(allowed, t->allowed, sizeof allowed);
	for (int e = 0; e < TRIM_EXTENTS; e++)
		t->allowed[e] += t->allowed[e] / TOLERANCE_ROOM;
	copy(t, t->trial, latest);
	if (suffices(t, t->trial, NULL))
		take(t, depth);
	else
		memcpy(t->allowed, allowed, sizeof allowed);
}

/* Multiplies the depths, and raises them to `words`, but not beyond those that suffice. */
static void raise_within(
        const struct trimming *t, int64_t times, int64_t words, const int64_t *depth, int64_t *low)
{
	for (int i = 0; i < t->network->count; i++) {
		int64_t more = times * low[i] > words ? times * low[i] : words;
		low[i] = more < depth[i] ? more : depth[i];
	}
}

/* Tries the fewest words between kernels with which the launch ends, then four times as many, and
 * so on, until they suffice. words: that each FIFO has in the first step. */
static void begin_minimal(struct trimming *t, int64_t words, int64_t *depth)
{
	struct fifo_network *n = t->network;
	int64_t *low = ARENA_ARRAY(n->arena, int64_t, n->count + 1);
	int64_t *next = ARENA_ARRAY(n->arena, int64_t, n->count + 1);
	copy(t, low, depth);
	for (int i = 0; i < n->count; i++)
		if (may_shrink(&n->fifo[i]) && !from_memory(&n->fifo[i]) && least_of(t, i) < low[i])
			low[i] = least_of(t, i);
	bool ends = fifo_repair(n, FIFO_RAISED_MOST, low);
	bool good = false;
	for (int step = 0; ends && !good && step < LOW_STEPS && n->budget > t->reserve; step++) {
		raise_within(t, step ? LOW_RAISED : 1, words, depth, low);
		copy(t, next, low);
		words *= 2 * LOW_RAISED;
		raise_within(t, LOW_RAISED, words, depth, next);
		copy(t, t->trial, low);
		good = suffices(t, t->trial, step + 1 < LOW_STEPS ? next : NULL);
	}
	if (good)
		take(t, depth);
}

/* The FIFO in front of a process that forwards all its words to several readers; -1: the process
 * does something else. */
static int fork_input(const struct trimming *t, int process)
{
	const struct fifo_network *n = t->network;
	int front = -1;
	int outputs = 0;
	for (int i = 0; i < n->count; i++) {
		const struct fifo *fifo = &n->fifo[i];
		if (fifo->reader == process && front >= 0)
			return -1;
		front = fifo->reader == process ? i : front;
		outputs += fifo->writer == process;
	}
	if (front < 0 || outputs < 2 || !is_sought(t, front))
		return -1;
	for (int i = 0; i < n->count; i++) {
		const struct fifo *fifo = &n->fifo[i];
		if (fifo->writer == process &&
		        (!is_sought(t, i) || fifo->word_bytes != n->fifo[front].word_bytes ||
		                fifo->whole != n->fifo[front].whole))
			return -1;
	}
	return front;
}

/* Moves the words that all outputs of a fork hold to the FIFO in front of it, where they are held
 * once; lowering one FIFO at a time cannot find this. */
static void buffer_before_fork(struct trimming *t, int process, int64_t *depth)
{
	const struct fifo_network *n = t->network;
	int front = fork_input(t, process);
	int outputs = 0;
	int64_t least = INT64_MAX;
	for (int i = 0; front >= 0 && i < n->count; i++)
		if (n->fifo[i].writer == process) {
			int64_t more = depth[i] - least_of(t, i);
			least = more < least ? more : least;
			outputs++;
		}
	if (front < 0 || least <= 0 ||
	        least * (outputs - 1) * n->fifo[front].word_bytes <= fifo_bytes(n, depth) / WORTH)
		return;
	copy(t, t->trial, depth);
	for (int i = 0; i < n->count; i++)
		t->trial[i] -= i != front && n->fifo[i].writer == process ? least : 0;
	t->trial[front] += least;
	if (suffices(t, t->trial, NULL))
		take(t, depth);
}

static void buffer_before_forks(struct trimming *t, int64_t *depth)
{
	for (int process = 0; process < t->network->processes && t->network->budget > t->reserve;
	        process++)
		buffer_before_fork(t, process, depth);
}

/* Moves words from in front of a process to behind it, where they are fewer: sums instead of the
 * elements that a matmul replays. The latest schedule starts late, so it holds the elements. */
static void buffer_after_process(struct trimming *t, int number, int64_t *depth)
{
	const struct fifo_network *n = t->network;
	const struct fifo *fifo = &n->fifo[number];
	int64_t remaining = depth[number] / PRECISION;
	int64_t gain = (depth[number] - remaining) * fifo->word_bytes;
	int outputs = 0;
	copy(t, t->trial, depth);
	t->trial[number] = remaining > least_of(t, number) ? remaining : least_of(t, number);
	for (int i = 0; i < n->count; i++) {
		const struct fifo *other = &n->fifo[i];
		if (other->writer != fifo->reader)
			continue;
		if (!is_sought(t, i))
			return;
		t->trial[i] += (int64_t)(DOWNSTREAM_SCALE * (double)depth[number] /
		                       (double)fifo->whole * (double)other->whole) +
		        1;
		gain -= (t->trial[i] - depth[i]) * other->word_bytes;
		outputs++;
	}
	if (outputs && gain > fifo_bytes(n, depth) / WORTH_MOVE && suffices(t, t->trial, NULL))
		take(t, depth);
}

static void buffer_after_processes(struct trimming *t, int64_t *depth)
{
	const struct fifo_network *n = t->network;
	for (int i = 0; i < n->count && n->budget > t->reserve; i++)
		if (is_sought(t, i) && !from_memory(&n->fifo[i]) && n->fifo[i].whole > 0)
			buffer_after_process(t, i, depth);
}

/* Bytes of FIFOs between kernels. */
static int64_t inter_kernel_bytes(const struct fifo_network *n, const int64_t *depth)
{
	int64_t bytes = 0;
	for (int i = 0; i < n->count; i++)
		bytes += from_memory(&n->fifo[i]) ? 0 : depth[i] * n->fifo[i].word_bytes;
	return bytes;
}

/* Takes the depths that the wait-for graph proves, if they are less and as fast; but not if only
 * prefetched words are less. */
static void end_safe(struct trimming *t, int64_t *depth)
{
	struct fifo_network *n = t->network;
	int64_t *safe = ARENA_ARRAY(n->arena, int64_t, n->count + 1);
	for (int i = 0; i < n->count; i++)
		safe[i] = n->fifo[i].safe;
	if (fifo_bytes(n, safe) >= fifo_bytes(n, depth) ||
	        inter_kernel_bytes(n, safe) > inter_kernel_bytes(n, depth))
		return;
	copy(t, t->trial, safe);
	if (suffices(t, t->trial, NULL))
		take(t, depth);
}

static struct trimming trimming_of(struct fifo_network *n, struct cycle_network *simulated)
{
	struct trimming t = { .network = n, .simulated = simulated };
	t.trial = ARENA_ARRAY(n->arena, int64_t, n->count + 1);
	fifo_predict_begin(&t);
	return t;
}

bool fifo_simulates(const struct fifo_network *n)
{
	return n->simulated && cycle_events(n->simulated) <= n->budget / RUNS_EXPECTED;
}

bool fifo_trim(struct fifo_network *n, const int64_t *limit, int order, int64_t *depth)
{
	bool quick = fifo_simulates(n);
	struct trimming t = trimming_of(n, quick ? n->simulated : NULL);
	if (!quick && !n->tokens)
		return false;
	int64_t before = n->budget;
	if (!run(&t, limit))
		return false;
	int64_t work = before - n->budget;
	if (!quick)
		fifo_predict_set_limit(&t, limit, work);
	int64_t wanted = n->predictions * work;
	n->granted = !quick && !n->context->fifo_events && before < wanted ? wanted - before : 0;
	n->budget += n->granted;
	t.reserve = quick ? 0 : (n->budget + work) / PROOF_SHARE;
	for (int e = 0; e < TRIM_EXTENTS; e++)
		t.allowed[e] =
		        t.cycles[e] + t.cycles[e] / (quick ? TOLERANCE : TOLERANCE_PREDICTED);
	bool enough = (!quick && !memcmp(depth, limit, sizeof *depth * (size_t)n->count)) ||
	        suffices(&t, depth, NULL);
	if (!enough)
		copy(&t, depth, limit);
	bool known = begin_capped_prefetch(&t, depth) && enough && !quick;
	int64_t *latest = ARENA_ARRAY(n->arena, int64_t, n->count + 1);
	begin_latest_schedule(&t, known, depth, latest);
	bool lowered = memcmp(depth, limit, sizeof *depth * (size_t)n->count) != 0;
	if (!quick && n->budget - t.reserve > LOW_WORTH * work)
		begin_minimal(&t, lowered ? 0 : LOW_WORDS, depth);
	end_with_room(&t, latest, depth);
	buffer_after_processes(&t, depth);
	buffer_before_forks(&t, depth);
	if (quick || order)
		shrink_in_order(&t, order, depth);
	else
		shrink_least_known(&t, depth);
	end_safe(&t, depth);
	return quick && n->tokens ? true : fifo_repair(n, FIFO_RAISED, depth);
}

void fifo_settle(struct fifo_network *n, const int64_t *limit, int64_t *depth)
{
	struct trimming t = trimming_of(n, fifo_simulates(n) ? n->simulated : NULL);
	int number = 0;
	if (!t.simulated || !run(&t, limit))
		return;
	t.allowed[0] = t.cycles[0] + t.cycles[0] / TOLERANCE;
	for (int same = 0; same < n->count && n->budget > 0; number = (number + 1) % n->count) {
		copy(&t, t.trial, depth);
		t.trial[number]--;
		bool lower = is_sought(&t, number) && depth[number] > least_of(&t, number) &&
		        suffices(&t, t.trial, NULL);
		same = lower ? 0 : same + 1;
		if (lower) {
			take(&t, depth);
			shrink(&t, number, depth);
		}
	}
}
