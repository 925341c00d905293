/* Hardware level: shape of main and of processes, pipelined loops, both ends of every channel. */
#include "ir/verify.h"

/* Channel operand of an operation that accesses one, else NULL. */
static const struct value *channel_of(const struct op *op)
{
	static const int operand[OP_COUNT] = {[OP_TAKE] = 1 + 1, [OP_PUSH] = 1 + 2, [OP_ACQUIRE] = 1 + 0, [OP_RELEASE] = 1 + 1};
	return operand[op->code] ? op->operand[operand[op->code] - 1] : NULL;
}

static bool is_constant(const struct value *value, int64_t number)
{
	const struct attr *attr = value->def && value->def->code == OP_CONSTANT ? attr_get(value->def, "value") : NULL;
	return attr && attr->kind == ATTR_INTEGER && attr->integer == number;
}

static void check_pipelined(struct verifier *verifier, const struct op *loop)
{
	if (attr_integer_or(loop, "stream.pipeline", 0) < 1)
		verify_fail(verifier, loop, "stream.pipeline is not positive");
	for (const struct op *op = loop->region[0]->first; op; op = op->next) {
		if (op->code == OP_FOR || op->code == OP_ACQUIRE || op->code == OP_RELEASE)
			verify_fail(verifier, op, "does not belong in a pipelined loop");
		for (const struct op *other = loop->region[0]->first; channel_of(op) && other != op; other = other->next)
			if (channel_of(other) == channel_of(op))
				verify_fail(verifier, op, "a pipelined loop accesses a FIFO twice");
	}
}

static void check_process_op(struct op *op, void *context)
{
	struct verifier *verifier = context;
	if (op->code == OP_FIFO || op->code == OP_BLOCKS || op->code == OP_CALL)
		verify_fail(verifier, op, "belongs to main");
	if (op->code == OP_ALLOCA && op->parent->parent->code != OP_FUNC)
		verify_fail(verifier, op, "arrays stand at the top of a process");
	if (op->code != OP_FOR)
		return;
	if (op->results || !is_constant(op->operand[0], 0) || !is_constant(op->operand[2], 1))
		verify_fail(verifier, op, "a loop of a process counts from 0 by 1 and carries no values");
	if (attr_get(op, "stream.pipeline"))
		check_pipelined(verifier, op);
}

static void check_process(struct verifier *verifier, struct op *function)
{
	const char *style = attr_text_or(function, "stream.style", "");
	if (!text_same(attr_text_or(function, "sym_visibility", NULL), "private"))
		verify_fail(verifier, function, "a process is not private");
	if (!text_same(style, "stp") && !text_same(style, "flp"))
		verify_fail(verifier, function, "stream.style is '%s', neither 'stp' nor 'flp'", style);
	if (attr_get(function, "function_type")->type->outputs)
		verify_fail(verifier, function, "a process has results");
	ir_walk(function->region[0], check_process_op, verifier);
}

static void check_main(struct verifier *verifier, const struct op *main)
{
	for (const struct op *op = main->region[0]->first; op; op = op->next) {
		if (op->code != OP_FIFO && op->code != OP_BLOCKS && op->code != OP_CALL && op->code != OP_RETURN)
			verify_fail(verifier, op, "main makes channels and starts processes, nothing else");
		const struct op *callee = op->code == OP_CALL ? module_find(verifier->module, attr_text_or(op, "callee", "")) : NULL;
		if (callee && !attr_get(callee, "stream.process"))
			verify_fail(verifier, op, "the callee is no process");
	}
}

/* How often each process is started. */
static int calls_of(const struct op *main, const char *name)
{
	int calls = 0;
	for (const struct op *op = main->region[0]->first; op; op = op->next)
		calls += op->code == OP_CALL && text_same(attr_text_or(op, "callee", NULL), name);
	return calls;
}

struct ends {
	const struct value *channel;     /* argument of the process at hand */
	bool in, out;                    /* it is written, read */
};

static void find_ends(struct op *op, void *context)
{
	struct ends *ends = context;
	if (op->code == OP_RELEASE || channel_of(op) != ends->channel)
		return;
	bool writes = op->code == OP_PUSH || text_same(attr_text_or(op, "side", NULL), "write");
	ends->in |= writes;
	ends->out |= !writes;
}

static void add_ends(const struct verifier *verifier, const struct op *call, const struct value *channel, int *in, int *out)
{
	const struct op *process = module_find(verifier->module, attr_text_or(call, "callee", ""));
	for (int i = 0; i < call->operands; i++) {
		if (call->operand[i] != channel)
			continue;
		struct ends ends = {.channel = process->region[0]->argument[i]};
		ir_walk(process->region[0], find_ends, &ends);
		*in += ends.in;
		*out += ends.out;
	}
}

static void check_channel(struct verifier *verifier, const struct op *channel, const struct op *main)
{
	int in = 0, out = 0;
	for (const struct op *op = main->region[0]->first; op; op = op->next)
		if (op->code == OP_CALL)
			add_ends(verifier, op, channel->result[0], &in, &out);
	if (in != 1 || out != 1)
		verify_fail(verifier, channel, "'%s' is written by %d processes and read by %d, where one each is expected",
			    attr_text_or(channel, "name", ""), in, out);
}

void verify_hardware(struct verifier *verifier)
{
	const struct op *main = module_main(verifier->module);
	check_main(verifier, main);
	for (struct op *op = module_body(verifier->module)->first; op; op = op->next) {
		if (!attr_get(op, "stream.process"))
			continue;
		check_process(verifier, op);
		int calls = calls_of(main, attr_text_or(op, "sym_name", ""));
		if (calls != 1)
			verify_fail(verifier, op, "is started %d times, not once", calls);
	}
	for (const struct op *op = main->region[0]->first; !verifier->failed && op; op = op->next)
		if (op->code == OP_FIFO || op->code == OP_BLOCKS)
			check_channel(verifier, op, main);
}
