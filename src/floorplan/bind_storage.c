/* Chooses what every FIFO, block channel and array is made of.
 * Needs: final depths.  Guarantees: stream.storage on each of them, and block RAMs and URAMs
 * that the platform has.  Exact. Largest first, each takes the kind of memory of which it uses
 * the smallest share of what is left; so a kind that runs short is left to those that gain most
 * by it. Arrays of one process lie on one die, so of each kind they take no more than the
 * largest die has, as long as another kind is left. */
#include "predict/resource.h"
#include "floorplan/floorplan_passes.h"
#include <stdlib.h>

#define SHIFT_DEPTH 32    /* a FIFO up to this depth is a shift register, one LUT a bit */
#define REGISTERS_DEPTH 4 /* deeper arrays of registers are mostly multiplexers */
#define LUTRAM_DEPTH 256  /* deeper ones are slow */
/* an accumulator that comes round in fewer cycles has none left for a memory's read and write */
#define RECURRENCE_DEPTH 16
#define MEMORY_LUTS 2 /* one LUT in so many can be memory */
#define MISSING 1e6   /* price of all of a resource that has run out */

struct item {
	struct op *op;
	int64_t bytes;
	int order;
};

struct process_memory { /* by the arrays of a process */
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

/* Is the array read and written in one pipelined body? */
static void find_recurrence(const struct block *block, const struct value *array, bool *found)
{
	bool reads = false, writes = false;
	for (const struct op *op = block->first; op; op = op->next) {
		reads |= op->code == OP_MEMREF_LOAD && op->operand[0] == array;
		writes |= op_writes(op, array);
		if (op->region[0])
			find_recurrence(op->region[0], array, found);
	}
	*found |= reads && writes;
}

static bool is_accumulator(const struct op *op)
{
	bool found = false;
	if (op->code == OP_ALLOCA)
		find_recurrence(op->parent, op->result[0], &found);
	return found;
}

static bool accepts(const struct op *op, int64_t depth, enum storage storage)
{
	if (storage == STORAGE_REGISTERS)
		return op->code != OP_FIFO && depth <= REGISTERS_DEPTH;
	return storage != STORAGE_LUTRAM || depth <= LUTRAM_DEPTH;
}

/* What is not there is dear, and dearer where the platform has less of it. */
static double share(int64_t need, int64_t left, int64_t whole)
{
	if (need <= 0)
		return 0;
	return need <= left ? (double)need / (double)left
	                    : MISSING * (1 + (double)need / (whole > 0 ? (double)whole : 1e-6));
}

static double price(const struct platform *platform, struct resources need, struct resources left,
        bool memory_luts)
{
	struct resources whole = platform_total(platform);
	return share(need.lut, memory_luts ? left.lut / MEMORY_LUTS : left.lut, whole.lut) +
	        share(need.ff, left.ff, whole.ff) + share(need.bram18, left.bram18, whole.bram18) +
	        share(need.uram, left.uram, whole.uram);
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

/* What makes dies crowded is dear as if it were not there. */
static struct resources uncrowded(const struct platform *platform, struct resources left)
{
	for (int d = 0; d < platform->dies; d++)
		left = subtract(left, subtract(platform->die[d], platform_uncrowded(platform, d)));
	return left;
}

/* What is left for it: of the platform, and on the die of its process. */
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
	else if (memory.depth <= 1 || (memory.depth <= RECURRENCE_DEPTH && is_accumulator(op)))
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

/* The platform's, or less where the user says so. */
static struct resources available(const struct storage_binding *a)
{
	return a->context->limited ? a->context->limit : platform_total(a->context->platform);
}

/* What operators and memory ports leave of the platform. */
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
	int64_t over = a->left.bram18 < 0 ? -a->left.bram18 : -a->left.uram;
	int64_t bytes = 0;
	if (over <= 0)
		return false;
	for (size_t i = 0; i < a->items.count; i++)
		bytes += a->items.data[i].op->code == OP_ALLOCA ? 0
		                                                : memory_bytes(a->items.data[i].op);
	const struct item *largest = &a->items.data[0];
	diag_error(diag, largest->op->location,
	        "on-chip memory: the design needs %lld %s blocks, %lld more than the %lld that %s; "
	        "the largest memory, '%s', has %lld bytes",
	        (long long)(have + over), name, (long long)over, (long long)have,
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
