/* Takes a costly post body (division, elementary functions) out of a contraction, into an elementwise kernel of its own.
 * The contraction is as wide as its weights need; its post body runs once per result and would be built just as wide, to be idle nearly always.
 * Needs: fused kernels.  Guarantees: a reduction of many points to many results has no costly operation in its post body.  Exact. */
#include "model/platform.h"
#include "pass/kernel_edit.h"
#include "pass/pass.h"

#define MANY_POINTS 16
#define MANY_RESULTS 64
#define COSTLY_LATENCY 12     /* cycles: division and everything beyond it */

static bool costly(const struct platform *platform, const struct body *body)
{
	for (int n = 0; n < body->count; n++)
		if (body->node[n].kind == NODE_OP && platform_operator(platform, body->node[n].code, body->node[n].type).latency >= COSTLY_LATENCY)
			return true;
	return false;
}

static int64_t points(const struct kernel *kernel, bool reduction)
{
	int64_t product = 1;
	for (int l = 0; l < kernel->loops; l++)
		product *= kernel->loop[l].reduction == reduction ? kernel->loop[l].extent : 1;
	return product;
}

/* An access of the contraction, over its parallel loops alone. */
static void copy_access(struct arena *arena, const struct kernel *from, const struct access *access, struct access *to)
{
	*to = *access;
	to->stride = ARENA_ARRAY(arena, int64_t, from->loops + 1);
	to->guard = ARENA_ARRAY(arena, struct guard_range, access->guards + 1);
	int *renamed = ARENA_ARRAY(arena, int, from->loops + 1), kept = 0;
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

static void split(struct module *module, struct op *op)
{
	struct kernel *kernel = op->kernel;
	struct arena *arena = module->arena;
	int loops = 0, operands = 1;
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
	struct op *after = kernel_new(module, op->location, text_format(arena, "%s_post", kernel->name), loops, operands, operand, op->result[0]->type);
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
	int sum = body_add(module, &to->update, (struct node){.kind = NODE_OPERAND, .type = kernel->type, .integer = 0});
	to->update.result = body_import(module, &to->update, &kernel->post, renamed, sum);
	kernel->post = (struct body){0};
	for (struct op *later = op->next; later; later = later->next) {      /* readers of the result now read what comes after */
		for (int j = 0; j < later->operands; j++)
			if (later->operand[j] == op->result[0])
				later->operand[j] = after->result[0];
		if (later->region[0])
			ir_replace(later->region[0], op->result[0], after->result[0]);
	}
	if (op->next)
		op_insert_before(op->next, after);
	else
		op_append(op->parent, after);
	kernel_tidy(module, op);              /* what only the post body read */
}

static void split_block(struct pass_context *context, struct module *module, struct block *block)
{
	for (struct op *op = block->first; op; op = op->next) {
		if (op->code == OP_FOR)
			split_block(context, module, op->region[0]);
		if (op->code != OP_KERNEL || !op->kernel->post.count || !costly(context->platform, &op->kernel->post))
			continue;
		if (body_has(&op->kernel->post, OP_INDEX) || body_has(&op->kernel->post, OP_ACTIVE))
			continue;
		if (points(op->kernel, true) >= MANY_POINTS && points(op->kernel, false) >= MANY_RESULTS)
			split(module, op);
	}
}

bool split_posts(struct pass_context *context, struct module *module)
{
	split_block(context, module, module_main(module)->region[0]);
	return true;
}
