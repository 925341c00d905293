/* Banks of partitioned arrays: which bank an access goes to, and how many cycles the ports of one
 * need for all accesses of an iteration. */
#include "hls_model/hls_model_internal.h"
#include <inttypes.h>

struct bank_use {
	int64_t reads, writes;
	int array;
};

struct demand_search {
	struct modeller *modeller;
	const struct cpp_body *body;
	VEC(struct bank_use) uses;
};

static int64_t modulo(int64_t value, int64_t factor)
{
	int64_t rest = value % factor;
	return rest < 0 ? rest + factor : rest;
}

/* Adds what tells banks apart along one dimension. `exact` also tells apart banks that move with
 * a counter but keep their distance. */
static void add_dimension(struct text *key, const struct cpp_array *array, int dim,
        const struct cpp_form *form, bool exact)
{
	int64_t factor = array->factor[dim];
	if (array->partition[dim] == CPP_WHOLE || factor <= 1)
		return;
	bool cyclic = array->partition[dim] == CPP_CYCLIC;
	bool fixed = form->known;
	for (int i = 0; i < CPP_DEPTH; i++)
		fixed &= cyclic ? form->coefficient[i] % factor == 0 : form->coefficient[i] == 0;
	int64_t block = (array->extent[dim] + factor - 1) / factor;
	if (fixed) {
		text_add(key, " %" PRId64,
		        cyclic              ? modulo(form->constant, factor)
		                : block > 0 ? form->constant / block
		                            : 0);
		return;
	}
	text_add(key, " ?");
	for (int i = 0; exact && form->known && i < CPP_DEPTH; i++)
		text_add(key, ",%" PRId64,
		        cyclic ? modulo(form->coefficient[i], factor) : form->coefficient[i]);
	if (exact && form->known)
		text_add(
		        key, "+%" PRId64, cyclic ? modulo(form->constant, factor) : form->constant);
}

static const char *bank_key(
        struct modeller *modeller, const struct cpp_operation *access, bool exact)
{
	const struct cpp_array *array = &modeller->design->arrays.data[access->array];
	struct text key = text_new(modeller->arena);
	if (array->storage == CPP_AXI) {
		text_add(&key, "axi %s %d", array->bundle ? array->bundle : array->name,
		        access->kind == CPP_STORE);
		return key.data;
	}
	text_add(&key, "%d", access->array);
	for (int d = 0; d < array->rank; d++)
		add_dimension(&key, array, d, &access->subscript[d], exact);
	return key.data;
}

int64_t model_bank_ports(const struct cpp_array *array, bool writes)
{
	if (array->storage != CPP_MEMORY)
		return 1;
	return array->shared_ports + (writes ? array->write_ports : array->read_ports);
}

static int64_t cycles_of(const struct cpp_array *array, const struct bank_use *use)
{
	int64_t shared = array->storage == CPP_MEMORY ? array->shared_ports : 1;
	if (shared)
		return (use->reads + use->writes + shared - 1) / shared;
	int64_t reads = array->read_ports < 1 ? 1 : array->read_ports;
	int64_t writes = array->write_ports < 1 ? 1 : array->write_ports;
	int64_t reading = (use->reads + reads - 1) / reads;
	int64_t writing = (use->writes + writes - 1) / writes;
	return reading > writing ? reading : writing;
}

/* Adds an access to those of the bank with that key; returns the bank's number. */
static int count_access(struct demand_search *search, struct map *numbers, const char *key,
        const struct cpp_operation *access)
{
	int *number = map_get(numbers, key);
	if (!number) {
		number = ARENA_NEW(search->modeller->arena, int);
		*number = (int)search->uses.count;
		map_set(numbers, key, number);
		VEC_PUSH(search->modeller->arena, &search->uses,
		        ((struct bank_use){ .array = access->array }));
	}
	struct bank_use *use = &search->uses.data[*number];
	use->reads += access->kind == CPP_LOAD;
	use->writes += access->kind == CPP_STORE;
	return *number;
}

/* An array's accesses by banks; false: two of them may meet in a bank that is not known. */
static bool count_banks(
        struct demand_search *search, int array, bool exact, struct port_demand *demand)
{
	const struct cpp_design *design = search->modeller->design;
	struct map numbers = map_new(search->modeller->arena);
	bool apart = true;
	for (size_t i = 0; i < search->body->items.count; i++) {
		struct cpp_item item = search->body->items.data[i];
		const struct cpp_operation *access = &design->operations.data[item.index];
		if (item.kind != CPP_OPERATION || access->kind == CPP_COMPUTE ||
		        access->kind == CPP_CARRIED || access->array != array)
			continue;
		const char *key = bank_key(search->modeller, access, exact);
		demand->bank[i] = count_access(search, &numbers, key, access);
		const struct bank_use *use = &search->uses.data[demand->bank[i]];
		for (const char *c = key; *c; c++)
			apart &= *c != '?' || (use->reads <= 1 && use->writes <= 1);
	}
	return apart;
}

static void count_array(struct demand_search *search, int array, struct port_demand *demand)
{
	size_t before = search->uses.count;
	if (!count_banks(search, array, true, demand)) {
		search->uses.count = before;
		count_banks(search, array, false, demand);
	}
}

/* External memory: arrays of one bundle share its adapter. */
static void count_bundles(struct demand_search *search, struct port_demand *demand)
{
	const struct cpp_design *design = search->modeller->design;
	struct map numbers = map_new(search->modeller->arena);
	for (size_t i = 0; i < search->body->items.count; i++) {
		struct cpp_item item = search->body->items.data[i];
		const struct cpp_operation *access = &design->operations.data[item.index];
		if (item.kind != CPP_OPERATION || access->kind == CPP_COMPUTE ||
		        access->kind == CPP_CARRIED ||
		        design->arrays.data[access->array].storage != CPP_AXI)
			continue;
		const char *key = bank_key(search->modeller, access, false);
		demand->bank[i] = count_access(search, &numbers, key, access);
	}
}

struct port_demand model_ports(struct modeller *modeller, const struct cpp_body *body)
{
	const struct cpp_design *design = modeller->design;
	struct demand_search search = { .modeller = modeller, .body = body };
	struct port_demand demand = { .interval = 1, .array = CPP_NONE };
	demand.bank = ARENA_ARRAY(modeller->arena, int, body->items.count + 1);
	bool *seen = ARENA_ARRAY(modeller->arena, bool, design->arrays.count + 1);
	for (size_t i = 0; i < body->items.count; i++)
		demand.bank[i] = CPP_NONE;
	for (size_t i = 0; i < body->items.count; i++) {
		struct cpp_item item = body->items.data[i];
		const struct cpp_operation *access = &design->operations.data[item.index];
		if (item.kind != CPP_OPERATION || access->kind == CPP_COMPUTE ||
		        access->kind == CPP_CARRIED || seen[access->array])
			continue;
		const struct cpp_array *array = &design->arrays.data[access->array];
		seen[access->array] = true;
		if (array->storage != CPP_AXI && !model_is_register(array))
			count_array(&search, access->array, &demand);
	}
	count_bundles(&search, &demand);
	demand.banks = (int)search.uses.count;
	for (size_t i = 0; i < search.uses.count; i++) {
		const struct bank_use *use = &search.uses.data[i];
		int64_t cycles = cycles_of(&design->arrays.data[use->array], use);
		if (cycles > demand.interval) {
			demand.interval = cycles;
			demand.array = use->array;
		}
	}
	return demand;
}
