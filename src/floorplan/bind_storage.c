/* Chooses the kind of memory of every FIFO, block channel and array.
 * Before: depths. After: stream.storage on each memory.
 * Needs: final depths. Guarantees: no more block RAMs and URAMs than the platform has. Exact.
 * The largest memory comes first. Each takes the kind of which it uses the smallest share of what
 * is left, so a kind that runs short is left to memories that gain most from it. Arrays of a
 * process are on one die, so they take at most what the largest die has of each kind, as long as
 * another kind is left. Ends: one decision per memory. */
#include "predict/resource.h"
#include "floorplan/floorplan_passes.h"
#include <stdlib.h>

#define SHIFT_DEPTH 32    /* a FIFO up to this depth is a shift register, one LUT per bit */
#define REGISTERS_DEPTH 4 /* deeper arrays of registers are mostly multiplexers */
#define LUTRAM_DEPTH 256  /* deeper ones are slow */
#define BANK_DEPTH 16     /* of words that are read at a time, and so from banks: at most */
#define MEMORY_LUTS 2     /* 1/MEMORY_LUTS of the LUTs can be memory */
#define MISSING 1e6       /* price of all of a resource that is used up */

struct item {
	struct op *op;
	int64_t bytes;
	int order;
};

/* Memory used by the arrays of a process. */
struct process_memory {
	const struct op *process;
	struct resources memory;
};

struct storage_binding {
	struct pass_context *context;
	struct module *module;
	struct resources left;
	VEC(struct item) items;
	VEC(struct process_memory) process_memory;
};

static struct resources subtract(struct resources left, struct resources right)
{
	return resources_add(left,
	        (struct resources){
	                -right.lut, -right.ff, -right.dsp, -right.bram18, -right.uram });
}

static void collect_memories(struct op *op, void *context)
{
	struct storage_binding *a = context;
	if (op->code == OP_FIFO || op->code == OP_BLOCK_CHANNEL || op->code == OP_ALLOCA)
		VEC_PUSH(a->module->arena, &a->items,
		        ((struct item){ op, memory_bytes(op), (int)a->items.count }));
}

static int larger_first(const void *left, const void *right)
{
	const struct item *l = left;
	const struct item *r = right;
	if (l->bytes != r->bytes)
		return l->bytes < r->bytes ? 1 : -1;
	return l->order - r->order;
}

static const struct attr *name_of(struct storage_binding *a, enum storage storage)
{
	return attr_string(a->module, storage_name[storage]);
}

/* Are words updated in a loop? In registers, each update would wait for the selection of a word
 * among all of them. */
static bool is_accumulator(const struct op *op)
{
	return op->code == OP_ALLOCA && attr_get(op, KEY_STREAM_DISTANCE);
}

static bool accepts(const struct op *op, int64_t depth, enum storage storage)
{
	if (storage == STORAGE_REGISTERS)
		return op->code != OP_FIFO && depth <= REGISTERS_DEPTH && !is_accumulator(op);
	return storage != STORAGE_LUTRAM || depth <= LUTRAM_DEPTH;
}

/* Is the array one of registers, whatever they cost? So are words that are read at a time, but for
 * those whose banks are dims of the array. */
static bool is_register_file(const struct op *op, int64_t depth)
{
	bool banks =
	        attr_integer_or(op, KEY_STREAM_PARTITION, 1) > 1 && op->result[0]->type->rank == 1;
	return depth <= 1 || attr_get(op, KEY_STREAM_ROTATION) ||
	        (op->code == OP_ALLOCA && banks && depth <= BANK_DEPTH);
}

/* Price of a resource: the share of what is left; if that is not enough, very high, and higher the
 * less of it the platform has. */
static double price_of(int64_t need, int64_t left, int64_t whole)
{
	if (need <= 0)
		return 0;
	if (need <= left)
		return (double)need / (double)left;
	return MISSING * (1 + (double)need / (whole > 0 ? (double)whole : 1e-6));
}

static double price(const struct platform *platform, struct resources need, struct resources left,
        bool memory_luts)
{
	struct resources whole = platform_total(platform);
	return price_of(need.lut, memory_luts ? left.lut / MEMORY_LUTS : left.lut, whole.lut) +
	        price_of(need.ff, left.ff, whole.ff) +
	        price_of(need.bram18, left.bram18, whole.bram18) +
	        price_of(need.uram, left.uram, whole.uram);
}

static const struct op *process_of(const struct op *op)
{
	while (op && op->code != OP_FUNC)
		op = op->parent ? op->parent->parent : NULL;
	return op;
}

static struct resources *memory_of_process(struct storage_binding *a, const struct op *process)
{
	for (size_t i = 0; i < a->process_memory.count; i++)
		if (a->process_memory.data[i].process == process)
			return &a->process_memory.data[i].memory;
	VEC_PUSH(a->module->arena, &a->process_memory,
	        ((struct process_memory){ .process = process }));
	return &a->process_memory.data[a->process_memory.count - 1].memory;
}

/* What would crowd a die counts as not available. */
static struct resources uncrowded(const struct platform *platform, struct resources left)
{
	for (int d = 0; d < platform->dies; d++)
		left = subtract(left, subtract(platform->die[d], platform_uncrowded(platform, d)));
	return left;
}

/* What is left for a memory: of the platform, and for arrays on the die of their process. */
static struct resources available_for(struct storage_binding *a, const struct op *op)
{
	const struct platform *platform = a->context->platform;
	struct resources left = uncrowded(platform, a->left);
	struct resources most = { 0 };
	if (op->code != OP_ALLOCA)
		return left;
	for (int i = 0; i < platform->dies; i++) {
		most.bram18 = platform->die[i].bram18 > most.bram18 ? platform->die[i].bram18
		                                                    : most.bram18;
		most.uram = platform->die[i].uram > most.uram ? platform->die[i].uram : most.uram;
	}
	most = subtract(most, *memory_of_process(a, process_of(op)));
	left.bram18 = most.bram18 < left.bram18 ? most.bram18 : left.bram18;
	left.uram = most.uram < left.uram ? most.uram : left.uram;
	return left;
}

static void choose_storage(struct storage_binding *a, struct op *op)
{
	const struct platform *platform = a->context->platform;
	struct memory memory = memory_of(platform, op);
	struct resources left = available_for(a, op);
	enum storage best = STORAGE_AUTO;
	double lowest = 0;
	for (enum storage storage = STORAGE_REGISTERS; storage <= STORAGE_URAM; storage++) {
		if (!accepts(op, memory.depth, storage))
			continue;
		double now = price(platform, memory_cost_as(platform, op, storage), left,
		        storage == STORAGE_LUTRAM);
		if (best == STORAGE_AUTO || now < lowest) {
			best = storage;
			lowest = now;
		}
	}
	attr_set(a->module, op, KEY_STREAM_STORAGE, name_of(a, best));
}

static void bind_memory(struct storage_binding *a, struct op *op)
{
	struct memory memory = memory_of(a->context->platform, op);
	if (op->code == OP_FIFO && memory.depth <= SHIFT_DEPTH)
		attr_set(a->module, op, KEY_STREAM_STORAGE, attr_string(a->module, "srl"));
	else if (is_register_file(op, memory.depth))
		attr_set(a->module, op, KEY_STREAM_STORAGE, name_of(a, STORAGE_REGISTERS));
	else
		choose_storage(a, op);
	struct resources cost = memory_cost(a->context->platform, op);
	a->left = subtract(a->left, cost);
	if (op->code == OP_ALLOCA) {
		struct resources *process_memory = memory_of_process(a, process_of(op));
		*process_memory = resources_add(*process_memory, cost);
	}
}

/* The platform's resources, or the user's limit. */
static struct resources available(const struct storage_binding *a)
{
	return a->context->limited ? a->context->limit : platform_total(a->context->platform);
}

/* Subtracts what operators and memory ports take. */
static void subtract_processes(struct storage_binding *a)
{
	const struct platform *platform = a->context->platform;
	a->left = available(a);
	for (const struct op *op = module_body(a->module)->first; op; op = op->next)
		if (attr_get(op, KEY_STREAM_PROCESS))
			a->left = subtract(a->left, process_resources(platform, op));
	for (size_t i = 0; i < a->items.count; i++)
		if (a->items.data[i].op->code == OP_ALLOCA)
			a->left =
			        resources_add(a->left, memory_cost(platform, a->items.data[i].op));
}

static bool exceeded(struct storage_binding *a)
{
	const struct platform *platform = a->context->platform;
	struct diag *diag = a->module->diag;
	const char *name = a->left.bram18 < 0 ? "BRAM18" : "URAM";
	int64_t have = a->left.bram18 < 0 ? available(a).bram18 : available(a).uram;
	int64_t excess = a->left.bram18 < 0 ? -a->left.bram18 : -a->left.uram;
	int64_t bytes = 0;
	if (excess <= 0)
		return false;
	for (size_t i = 0; i < a->items.count; i++)
		bytes += a->items.data[i].op->code == OP_ALLOCA ? 0
		                                                : memory_bytes(a->items.data[i].op);
	const struct item *largest = &a->items.data[0];
	diag_error(diag, largest->op->location,
	        "on-chip memory: the design needs %lld %s blocks, %lld more than the %lld that %s; "
	        "the largest memory, '%s', has %lld bytes",
	        (long long)(have + excess), name, (long long)excess, (long long)have,
	        a->context->limited ? "are allowed"
	                            : text_format(a->module->arena, "%s has", platform->name),
	        attr_text_or(
	                largest->op, KEY_NAME, attr_text_or(largest->op, KEY_STREAM_NAME, "array")),
	        (long long)largest->bytes);
	diag_note(diag,
	        "converters and FIFOs take %lld bytes: a smaller --on-chip-memory spills more to "
	        "external memory; or another --platform",
	        (long long)bytes);
	return true;
}

bool bind_storage(struct pass_context *context, struct module *module)
{
	struct storage_binding a = { .context = context, .module = module };
	ir_walk(module_body(module), collect_memories, &a);
	for (size_t i = 0; i < a.items.count; i++)
		attr_set(module, a.items.data[i].op, KEY_STREAM_STORAGE, NULL);
	subtract_processes(&a);
	if (a.items.count)
		qsort(a.items.data, a.items.count, sizeof *a.items.data, larger_first);
	for (size_t i = 0; i < a.items.count; i++)
		bind_memory(&a, a.items.data[i].op);
	context->taken = subtract(available(&a), a.left);
	return !exceeded(&a);
}
