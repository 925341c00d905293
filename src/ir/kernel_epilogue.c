/* The epilogue (post body) of a reduction: adds an operand to it, or moves it to a kernel of its
 * own. */
#include "ir/kernel_edit.h"

void kernel_join_sum(struct module *module, struct op *op, enum op_code code, struct value *with,
        struct access access)
{
	struct kernel *kernel = op->kernel;
	const int last = op->operands;
	struct value **operand = ARENA_ARRAY(module->arena, struct value *, last + 1);
	struct access *accesses = ARENA_ARRAY(module->arena, struct access, last + 1);
	for (int j = 0; j < last; j++) {
		operand[j] = op->operand[j];
		accesses[j] = kernel->operand[j];
	}
	operand[last] = with;
	accesses[last] = access;
	op_set_operands(module, op, last + 1, operand);
	kernel->operand = accesses;
	struct body old = kernel->post;
	kernel->post = (struct body){ 0 };
	int sum = body_add(module, &kernel->post,
	        (struct node){ .kind = NODE_ACCUMULATOR, .type = kernel->type });
	int joined = body_op(module, &kernel->post, code, kernel->type, sum,
	        body_operand(module, &kernel->post, kernel->type, last), 0);
	kernel->post.result =
	        old.count ? body_import(module, &kernel->post, &old, NULL, joined) : joined;
}

/* An access restricted to the parallel loops. */
static void copy_access(struct arena *arena, const struct kernel *from, const struct access *access,
        struct access *to)
{
	*to = *access;
	to->stride = ARENA_ARRAY(arena, int64_t, from->loops + 1);
	to->guard = ARENA_ARRAY(arena, struct guard_range, access->guards + 1);
	int *renamed = ARENA_ARRAY(arena, int, from->loops + 1);
	int kept = 0;
	for (int l = 0; l < from->loops; l++) {
		if (from->loop[l].reduction)
			continue;
		to->stride[kept] = access->stride[l];
		renamed[l] = kept++;
	}
	for (int g = 0; g < access->guards; g++) {
		to->guard[g] = access->guard[g];
		to->guard[g].loop = renamed[access->guard[g].loop];
	}
}

void kernel_split_epilogue(struct module *module, struct op *op)
{
	struct kernel *kernel = op->kernel;
	struct arena *arena = module->arena;
	int loops = 0;
	int operands = 1;
	for (int l = 0; l < kernel->loops; l++)
		loops += !kernel->loop[l].reduction;
	struct value **operand = ARENA_ARRAY(arena, struct value *, op->operands + 1);
	int *renamed = ARENA_ARRAY(arena, int, op->operands + 1);
	for (int j = 0; j < op->operands; j++) {
		renamed[j] = operands;
		if (body_uses_operand(&kernel->post, j))
			operand[operands++] = op->operand[j];
	}
	operand[0] = op->result[0];
	struct op *after =
	        kernel_new(module, op->location, text_format(arena, "%s_epilogue", kernel->name),
	                loops, operands, operand, op->result[0]->type);
	struct kernel *to = after->kernel;
	to->type = kernel->type;
	for (int l = 0, at = 0; l < kernel->loops; l++)
		if (!kernel->loop[l].reduction)
			to->loop[at++] = kernel->loop[l];
	copy_access(arena, kernel, &kernel->result, &to->operand[0]);
	copy_access(arena, kernel, &kernel->result, &to->result);
	for (int j = 0; j < op->operands; j++)
		if (body_uses_operand(&kernel->post, j))
			copy_access(arena, kernel, &kernel->operand[j], &to->operand[renamed[j]]);
	int sum = body_add(module, &to->update,
	        (struct node){ .kind = NODE_OPERAND, .type = kernel->type, .integer = 0 });
	to->update.result = body_import(module, &to->update, &kernel->post, renamed, sum);
	kernel->post = (struct body){ 0 };
	/* readers of the sums now read the new kernel's result */
	ir_replace(op->parent, op->result[0], after->result[0]);
	if (op->next)
		op_insert_before(op->next, after);
	else
		op_append(op->parent, after);
	kernel_tidy(module, op); /* removes operands that only the post body read */
}
