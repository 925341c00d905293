/* Which arrays a loop, call or operation reads and writes: what must wait for what. */
#include "hls_model/hls_model_internal.h"

static void add_item(const struct cpp_design *design, struct cpp_item item, struct access_set *set);

static void add_body(const struct cpp_design *design, int body, struct access_set *set)
{
	const struct cpp_body *items = &design->bodies.data[body];
	for (size_t i = 0; i < items->items.count; i++)
		add_item(design, items->items.data[i], set);
}

static void add_item(const struct cpp_design *design, struct cpp_item item, struct access_set *set)
{
	if (item.kind == CPP_LOOP)
		add_body(design, design->loops.data[item.index].body, set);
	if (item.kind == CPP_CALL)
		add_body(design, design->calls.data[item.index].body, set);
	if (item.kind != CPP_OPERATION)
		return;
	const struct cpp_operation *operation = &design->operations.data[item.index];
	if (operation->kind == CPP_LOAD)
		set->reads[operation->array] = true;
	if (operation->kind == CPP_STORE)
		set->writes[operation->array] = true;
}

struct access_set model_accesses(struct modeller *modeller, struct cpp_item item)
{
	size_t arrays = modeller->design->arrays.count;
	struct access_set set = { ARENA_ARRAY(modeller->arena, bool, arrays + 1),
		ARENA_ARRAY(modeller->arena, bool, arrays + 1) };
	add_item(modeller->design, item, &set);
	return set;
}

/* External memory is reached through adapters: what shares one waits. */
static bool share_adapter(const struct cpp_array *left, const struct cpp_array *right)
{
	return left->storage == CPP_AXI && right->storage == CPP_AXI && left->bundle &&
	        text_same(left->bundle, right->bundle);
}

bool model_conflict(const struct modeller *modeller, const struct access_set *first,
        const struct access_set *second)
{
	const struct cpp_design *design = modeller->design;
	for (size_t i = 0; i < design->arrays.count; i++) {
		bool both = (first->writes[i] && (second->reads[i] || second->writes[i])) ||
		        (first->reads[i] && second->writes[i]);
		bool ports = first->reads[i] && second->reads[i] &&
		        !model_is_register(&design->arrays.data[i]);
		if (both || ports)
			return true;
		bool used = first->reads[i] || first->writes[i];
		for (size_t j = 0; used && j < design->arrays.count; j++)
			if ((second->reads[j] || second->writes[j]) &&
			        share_adapter(&design->arrays.data[i], &design->arrays.data[j]))
				return true;
	}
	return false;
}
