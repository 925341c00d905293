/* Stream level: every stream has one reader and says which tensor flows in it. */
#include "ir/verify.h"

static void check_reader(struct verifier *verifier, const struct op *op, const struct value *value)
{
	bool left = op->code == OP_FOR && value->def == op && !value->uses;      /* what the last layer hands on may be unwanted */
	if (value->type->kind == TYPE_ITENSOR && value->uses != 1 && !left)
		verify_fail(verifier, op, "a stream has %d readers where one is expected", value->uses);
}

static void check_tensor(struct verifier *verifier, const struct op *op, const struct type *stream)
{
	const struct attr *tensor = attr_get(op, "tensor");
	if (!tensor || tensor->kind != ATTR_TYPE || tensor->type->kind != TYPE_TENSOR) {
		verify_fail(verifier, op, "the attribute `tensor` does not say which tensor flows");
		return;
	}
	int results = stream->itensor->map.results;
	if (tensor->type->element != type_scalar(stream) || (results != 1 && results != tensor->type->rank))
		verify_fail(verifier, op, "%s is no stream of %s", stream->text, tensor->type->text);
}

static void check_streams(struct op *op, void *context)
{
	struct verifier *verifier = context;
	for (int i = 0; i < op->results; i++) {
		check_reader(verifier, op, op->result[i]);
		if (op->result[i]->type->kind == TYPE_ITENSOR && op->code != OP_FOR)
			check_tensor(verifier, op, op->result[i]->type);
	}
	for (int r = 0; r < 2; r++)
		for (int i = 0; op->region[r] && i < op->region[r]->arguments; i++)
			check_reader(verifier, op, op->region[r]->argument[i]);
}

void verify_streams(struct verifier *verifier)
{
	struct block *body = module_body(verifier->module);
	ir_count_uses(body);
	ir_walk(body, check_streams, verifier);
}
