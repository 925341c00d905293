/* From a C function to kernels at tensor level: main's signature, then a kernel for each live
 * statement. */
#include "frontend/frontend.h"
#include "ir/double_forms.h"
#include "raise/raise_internal.h"

static bool refuse_double(
        struct raising *r, const struct region_statement *statement, enum op_code code)
{
	const char *name = c_function_of(code);
	diag_error(r->module->diag, statement->location,
	        "`%s` computes %s in double precision, which designs do in float only",
	        statement->text, name);
	return diag_note(r->module->diag,
	        "accepted in double are + - * /, comparisons, conversions, sqrt, fabs, fmax, fmin, "
	        "floor, ceil and rint; in float, %sf",
	        name);
}

/* Does the node compute in f64? */
static bool is_wide(const struct body *body, const struct node *node)
{
	bool wide = type_is_double(node->type);
	for (int k = 0; k < body_arguments(node); k++)
		wide = wide || type_is_double(body->node[node->argument[k]].type);
	return wide;
}

/* Not every operation has a form in f64. Sets whether there is any f64. */
static bool check_types(struct raising *r, bool *wide)
{
	for (int i = 0; i < r->instances; i++) {
		const struct region_statement *statement = r->live[i] ? raise_origin(r, i) : NULL;
		const struct body *body = statement ? &statement->body : NULL;
		for (int n = 0; body && n < body->count; n++) {
			const struct node *node = &body->node[n];
			*wide = *wide || is_wide(body, node);
			if (node->kind == NODE_OP && is_wide(body, node) &&
			        !has_double_form(node->code))
				return refuse_double(r, statement, node->code);
		}
	}
	return true;
}

/* --- the signature --- */

static bool reads_initial(const struct raising *r, int array)
{
	for (int i = 0; i < r->instances; i++) {
		const struct poly_statement *statement = raise_statement(r, i);
		for (int j = 0; r->live[i] && j < statement->reads; j++) {
			const struct poly_read_flow *read = &r->flow[i].read[j];
			if (statement->read[j].array != array)
				continue;
			for (int k = 0; k < read->sources; k++)
				if (read->source[k].instance < 0)
					return true;
		}
	}
	return false;
}

static const struct type *tensor_of(struct raising *r, int array)
{
	const struct region_array *of = &r->region->arrays.data[array];
	return type_shaped(r->module, TYPE_TENSOR, of->rank, of->extent, of->type);
}

static const struct attr *named(struct raising *r, int array, const char *role)
{
	struct module *module = r->module;
	struct named items[] = {
		{ key_name(KEY_STREAM_NAME),
		        attr_string(module, r->region->arrays.data[array].name) },
		{ key_name(KEY_STREAM_ROLE), attr_string(module, role) },
	};
	return attr_dictionary(module, 2, items);
}

struct signature_types {
	VEC(const struct type *) types;
	VEC(const struct attr *) attributes;
};

static void add_to_side(
        struct raising *r, struct signature_types *side, int array, const char *role)
{
	VEC_PUSH(r->arena, &side->types, tensor_of(r, array));
	VEC_PUSH(r->arena, &side->attributes, named(r, array, role));
}

static void add_constant(struct raising *r, int array)
{
	const struct type *type = tensor_of(r, array);
	struct op *op = op_new(
	        r->module, OP_CONSTANT, r->region->arrays.data[array].location, 0, NULL, 1, &type);
	attr_set(r->module, op, KEY_VALUE, r->region->arrays.data[array].value);
	op_append(r->block, op);
	r->initial[array] = op->result[0];
}

static struct op *make_main(struct raising *r)
{
	struct module *module = r->module;
	struct op *main = op_new(module, OP_FUNC, r->region->location, 0, NULL, 0, NULL);
	struct signature_types inputs = { 0 };
	struct signature_types outputs = { 0 };
	op_append(module_body(module), main);
	r->block = block_new(module, main, 0);
	for (int i = 0; i < r->program.arrays; i++) {
		if (!r->program.array[i].initial || !reads_initial(r, i))
			continue;
		if (r->region->arrays.data[i].value) {
			add_constant(r, i);
			continue;
		}
		add_to_side(r, &inputs, i, "input");
		r->initial[i] = block_add_argument(module, r->block, tensor_of(r, i));
	}
	for (int o = 0; o < r->outputs; o++)
		add_to_side(r, &outputs, r->output[o], "output");
	attr_set(module, main, KEY_SYM_NAME, attr_string(module, r->region->name));
	attr_set(module, main, KEY_FUNCTION_TYPE,
	        attr_type(module,
	                type_function(module, (int)inputs.types.count, inputs.types.data,
	                        (int)outputs.types.count, outputs.types.data)));
	if (inputs.types.count)
		attr_set(module, main, KEY_ARG_ATTRS,
		        attr_array(module, (int)inputs.attributes.count, inputs.attributes.data));
	attr_set(module, main, KEY_RES_ATTRS,
	        attr_array(module, (int)outputs.attributes.count, outputs.attributes.data));
	return main;
}

static bool check_outputs(struct raising *r)
{
	if (r->outputs)
		return true;
	diag_error(r->module->diag, r->region->location, "'%s' writes none of its arguments",
	        r->region->name);
	return diag_note(
	        r->module->diag, "accepted is a function that assigns elements of an argument");
}

static const struct attr *unrolls(struct module *module, const struct region *region)
{
	int count = (int)region->unrolls.count;
	const struct attr **item = ARENA_ARRAY(module->arena, const struct attr *, count + 1);
	for (int i = 0; i < count; i++)
		item[i] = attr_string(module, region->unrolls.data[i]);
	return attr_array(module, count, item);
}

bool raise_region(
        struct module *module, const struct region *region, const struct raise_options *options)
{
	struct raising r = { .module = module,
		.arena = module->arena,
		.region = region,
		.options = options,
		.names = map_new(module->arena) };
	bool wide = false;
	raise_make_program(&r);
	if (!check_outputs(&r) || !raise_order(&r) || !check_types(&r, &wide))
		return false;
	r.layout = ARENA_ARRAY(r.arena, struct raise_layout, r.instances);
	r.initial = ARENA_ARRAY(r.arena, struct value *, r.program.arrays);
	struct op *main = make_main(&r);
	if (wide)
		attr_set(module, main, KEY_STREAM_DOUBLE, attr_unit(module));
	if (region->unrolls.count)
		attr_set(module, main, KEY_STREAM_UNROLL, unrolls(module, region));
	for (int i = 0; i < r.ordered; i++) {
		int group = raise_group_of(&r, r.order[i]);
		if (group < 0)
			raise_kernel(&r, r.order[i]);
		else if (!raise_sequential(&r, group))
			return false;
	}
	attr_set(module, main, KEY_STREAM_TRANSFORMATIONS, raise_describe(&r));
	struct value **result = ARENA_ARRAY(r.arena, struct value *, r.outputs);
	for (int o = 0; o < r.outputs; o++)
		result[o] = r.layout[r.readers + o].value;
	struct op *end = op_new(module, OP_RETURN, region->location, r.outputs, result, 0, NULL);
	op_append(r.block, end);
	return true;
}
