/* Makes a network take several images a launch (--images), and records how many it takes.
 * Before: k: loops (c, y, x), image[c * a + y * b + x]
 * After:  k: loops (n, c, y, x), image[n * e + c * a + y * b + x], e elements of an image
 * Every kernel that depends on an input computes all images, each as before: so no image mixes with
 * another, and the leading extents of inputs and results are the images. What depends on weights
 * only is computed once.
 * Needs: kernels over root tensors.
 * Guarantees: a network of windows over images, or one of --images, has stream.images.
 * Exact.
 * Ends: each operand is visited once. */
#include "tensor/tensor_passes.h"
#include "ir/kernel_edit.h"

enum {
	IMAGE_RANK = 4, /* images, channels, rows, columns */
	IMAGES_MOST = 65536
};

static const char *role_of(const struct op *main, int argument)
{
	return function_argument_attr(main, argument, KEY_STREAM_ROLE)->text;
}

static const struct type *main_type(const struct op *main)
{
	return attr_get(main, KEY_FUNCTION_TYPE)->type;
}

/* --- several images a launch */

static bool refuse_images(struct module *module, int64_t images, const char *what, const char *why)
{
	diag_error(module->diag, module_main(module)->location, "--images %lld: %s %s",
	        (long long)images, what, why);
	return diag_note(module->diag,
	        "accepted is a module of one image: all inputs and results have a leading extent "
	        "of 1, and nothing is kept from launch to launch");
}

static bool is_one_image(const struct type *type)
{
	return type->kind == TYPE_TENSOR && type->rank > 0 && type->shape[0] == 1;
}

/* Nothing but weights and inputs of one image. */
static bool check_inputs(struct module *module, int64_t images)
{
	const struct op *main = module_main(module);
	const struct type *type = main_type(main);
	for (int i = 0; i < type->inputs; i++) {
		const char *name = text_format(module->arena, "input '%s'",
		        function_argument_attr(main, i, KEY_STREAM_NAME)->text);
		if (text_same(role_of(main, i), "state"))
			return refuse_images(module, images, name, "is a state");
		if (function_argument_attr(main, i, KEY_STREAM_DIMS))
			return refuse_images(module, images, name, "has an extent of run time");
		if (text_same(role_of(main, i), "input") && !is_one_image(type->input[i]))
			return refuse_images(module, images, name,
			        text_format(module->arena, "is %s", type->input[i]->text));
	}
	return true;
}

static const char *result_name(struct module *module, int result)
{
	return text_format(module->arena, "result '%s'",
	        function_result_attr(module_main(module), result, KEY_STREAM_NAME)->text);
}

static bool check_results(struct module *module, int64_t images)
{
	const struct type *type = main_type(module_main(module));
	for (int i = 0; i < type->outputs; i++)
		if (!is_one_image(type->output[i]))
			return refuse_images(module, images, result_name(module, i),
			        text_format(module->arena, "is %s", type->output[i]->text));
	return true;
}

static const struct type *type_of_images(
        struct module *module, const struct type *type, int64_t images)
{
	int rank = type->rank > 0 ? type->rank : 1;
	int64_t *shape = ARENA_ARRAY(module->arena, int64_t, rank);
	shape[0] = 1;
	for (int r = 0; r < type->rank; r++)
		shape[r] = type->shape[r];
	shape[0] *= images;
	return type_shaped(module, TYPE_TENSOR, rank, shape, type->element);
}

/* A loop in front of the others, over images of so many elements; 0: all share them. */
static void lead_access(struct module *module, struct access *access, int loops, int64_t elements)
{
	int64_t *stride = ARENA_ARRAY(module->arena, int64_t, loops + 1);
	stride[0] = elements;
	for (int l = 0; l < loops; l++)
		stride[l + 1] = access->stride[l];
	access->stride = stride;
	for (int g = 0; g < access->guards; g++)
		access->guard[g].loop++;
}

static void lead_body(struct body *body)
{
	for (int i = 0; i < body->count; i++)
		if (body->node[i].kind == NODE_OP && body->node[i].code == OP_INDEX)
			body->node[i].integer++;
}

/* value->data of operands that differ by image is set; their types are those of one image. */
static void batch_kernel(struct module *module, struct op *op, int64_t images)
{
	struct kernel *kernel = op->kernel;
	struct loop *loop = ARENA_ARRAY(module->arena, struct loop, kernel->loops + 1);
	loop[0] = (struct loop){ .extent = images };
	for (int l = 0; l < kernel->loops; l++)
		loop[l + 1] = kernel->loop[l];
	for (int j = 0; j < op->operands; j++)
		lead_access(module, &kernel->operand[j], kernel->loops,
		        op->operand[j]->data ? type_elements(op->operand[j]->type) / images : 0);
	lead_access(module, &kernel->result, kernel->loops, type_elements(op->result[0]->type));
	lead_body(&kernel->update);
	lead_body(&kernel->post);
	kernel->loop = loop;
	kernel->loops++;
	op->result[0]->type = type_of_images(module, op->result[0]->type, images);
	op->result[0]->data = op;
}

static bool batch_op(struct module *module, struct op *op, int64_t images)
{
	bool differs = false;
	for (int i = 0; i < op->operands; i++)
		differs |= op->operand[i]->data != NULL;
	if (op->code == OP_FOR) {
		diag_error(module->diag, op->location,
		        "--images %lld: a loop passes what it computes on from step to step",
		        (long long)images);
		return diag_note(module->diag, "accepted are networks without recurrences");
	}
	if (differs && op->code == OP_KERNEL)
		batch_kernel(module, op, images);
	return true;
}

static void batch_signature(struct module *module)
{
	struct op *main = module_main(module);
	const struct block *body = main->region[0];
	const struct type *old = main_type(main);
	const struct type **input = ARENA_ARRAY(module->arena, const struct type *, old->inputs);
	const struct type **output = ARENA_ARRAY(module->arena, const struct type *, old->outputs);
	for (int i = 0; i < old->inputs; i++)
		input[i] = body->argument[i]->type;
	for (int i = 0; i < old->outputs; i++)
		output[i] = body->last->operand[i]->type;
	attr_set(module, main, KEY_FUNCTION_TYPE,
	        attr_type(module, type_function(module, old->inputs, input, old->outputs, output)));
}

static bool take_images(struct module *module, int64_t images)
{
	struct op *main = module_main(module);
	struct block *body = main->region[0];
	ir_clear_data(module_body(module));
	if (images > IMAGES_MOST) {
		diag_error(module->diag, NOWHERE, "--images %lld", (long long)images);
		return diag_note(module->diag, "accepted are 1 to %d", IMAGES_MOST);
	}
	if (!check_inputs(module, images) || !check_results(module, images))
		return false;
	for (int i = 0; i < body->arguments; i++) {
		struct value *argument = body->argument[i];
		if (!text_same(role_of(main, i), "input"))
			continue;
		argument->type = type_of_images(module, argument->type, images);
		argument->data = main;
	}
	for (struct op *op = body->first; op; op = op->next)
		if (!batch_op(module, op, images))
			return false;
	for (int i = 0; i < body->last->operands; i++)
		if (!body->last->operand[i]->data)
			return refuse_images(module, images, result_name(module, i),
			        "is the same for every image");
	batch_signature(module);
	return true;
}

/* --- how many a launch takes */

static bool has_window(const struct block *body)
{
	for (const struct op *op = body->first; op; op = op->next)
		if (op->code == OP_KERNEL && kernel_has_window(op->kernel, op->operands))
			return true;
	return false;
}

/* The leading extent of all inputs; 0: some input is no image. */
static int64_t leading_extent(const struct op *main)
{
	const struct type *type = main_type(main);
	int64_t images = 0;
	for (int i = 0; i < type->inputs; i++) {
		const struct type *input = type->input[i];
		if (text_same(role_of(main, i), "weight"))
			continue;
		if (!text_same(role_of(main, i), "input") ||
		        function_argument_attr(main, i, KEY_STREAM_DIMS) ||
		        input->rank < IMAGE_RANK || (images && images != input->shape[0]))
			return 0;
		images = input->shape[0];
	}
	return images;
}

/* Images of a network of windows; 0: it is none, or its results are not by image. */
static int64_t images_taken(const struct module *module)
{
	const struct op *main = module_main(module);
	const struct type *type = main_type(main);
	int64_t images = leading_extent(main);
	for (int i = 0; images > 1 && i < type->outputs; i++)
		if (!type->output[i]->rank || type->output[i]->shape[0] != images)
			return 0;
	return has_window(main->region[0]) ? images : 0;
}

bool batch_images(struct pass_context *context, struct module *module)
{
	int64_t images = context->images;
	if (images > 1 && !take_images(module, images))
		return false;
	if (!images)
		images = images_taken(module);
	if (images)
		attr_set(module, module_main(module), KEY_STREAM_IMAGES,
		        attr_integer(module, images));
	return true;
}
