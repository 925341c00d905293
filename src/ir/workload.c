/* Decides what kind of work a launch is for the matmul engine, and records it. */
#include "ir/workload.h"
#include "ir/ir.h"

/* Weights are at least this multiple of the f32 operands. One of 30 PEs reads 1/30 of all weights,
 * and the full-width words of small operands, read one by one, may be a quarter of its words at
 * most (ports/assign_axi_bundles.c). */
#define PIGGYBACK_SHARE 120

int64_t engine_tokens(const struct block *block, const char **token_symbol)
{
	int64_t most = 0;
	for (const struct op *op = block->first; op; op = op->next) {
		int64_t own = 0;
		if (op->code == OP_FOR)
			own = engine_tokens(op->region[0], token_symbol);
		if (op->code == OP_CONTRACT)
			own = attr_integer_or(op, KEY_TOKENS, 1);
		most = own > most ? own : most;
		if (op->code == OP_CONTRACT && token_symbol)
			*token_symbol = attr_text_or(op, KEY_TOKEN_COUNT, *token_symbol);
	}
	return most;
}

static const char *const names[] = {
	[WORKLOAD_DECODE] = "decode",
	[WORKLOAD_FEW_TOKENS] = "few_tokens",
	[WORKLOAD_FEW_COUNTED_TOKENS] = "few_counted_tokens",
	[WORKLOAD_TILED_TOKENS] = "tiled_tokens",
	[WORKLOAD_TILED_COUNTED_TOKENS] = "tiled_counted_tokens",
};

const char *workload_name(enum workload workload)
{
	return names[workload];
}

enum workload workload_of_contractions(const struct block *body)
{
	const char *symbol = NULL;
	int64_t tokens = engine_tokens(body, &symbol);
	if (tokens <= 1)
		return tokens ? WORKLOAD_DECODE : WORKLOAD_NONE;
	if (tokens <= FEW_TOKENS)
		return symbol ? WORKLOAD_FEW_COUNTED_TOKENS : WORKLOAD_FEW_TOKENS;
	return symbol ? WORKLOAD_TILED_COUNTED_TOKENS : WORKLOAD_TILED_TOKENS;
}

void workload_record(struct module *module)
{
	const char *name = workload_name(workload_of_contractions(module_main(module)->region[0]));
	attr_set(module, module_main(module), KEY_STREAM_WORKLOAD,
	        name ? attr_string(module, name) : NULL);
}

enum workload workload_of(const struct op *op)
{
	while (op->code != OP_FUNC && op->parent && op->parent->parent)
		op = op->parent->parent;
	const char *text = attr_text_or(op, KEY_STREAM_WORKLOAD, NULL);
	for (int w = WORKLOAD_DECODE; text && w <= WORKLOAD_TILED_COUNTED_TOKENS; w++)
		if (text_same(text, names[w]))
			return (enum workload)w;
	return WORKLOAD_NONE;
}

/* sequences of a launch */
static int64_t batch_of(const struct op *main)
{
	int64_t batch = 1;
	for (int i = 0; i < main->region[0]->last->operands; i++) {
		const struct attr *own = function_result_attr(main, i, KEY_STREAM_BATCH);
		batch = own && own->integer > batch ? own->integer : batch;
	}
	return batch;
}

bool cache_rows_serve_few_tokens(const struct op *main)
{
	enum workload workload = workload_of(main);
	if (workload == WORKLOAD_TILED_TOKENS)
		return engine_tokens(main->region[0], NULL) <= FEW_TOKENS * batch_of(main);
	return workload_has_few_tokens(workload);
}

bool sequences_take_one_token(const struct op *main)
{
	return engine_tokens(main->region[0], NULL) <= batch_of(main);
}

static int64_t bytes_of(const struct type *tensor)
{
	return type_elements(tensor) * type_bits(type_scalar(tensor)) / 8;
}

/* Role and type of an argument of main; from stream level on they are listed in stream.inputs. */
static const char *role_of(const struct op *main, int argument, const struct type **type)
{
	const struct attr *inputs = attr_get(main, KEY_STREAM_INPUTS);
	const struct attr *role = inputs ? attr_item(inputs->items[argument].value, KEY_ROLE)
	                                 : function_argument_attr(main, argument, KEY_STREAM_ROLE);
	*type = inputs ? attr_item(inputs->items[argument].value, KEY_TYPE)->type
	               : main->region[0]->argument[argument]->type;
	return role ? role->text : "input";
}

/* Are the f32 operands small compared with the weights of the engine? */
static bool floats_are_small(const struct op *main)
{
	const struct block *body = main->region[0];
	const struct attr *inputs = attr_get(main, KEY_STREAM_INPUTS);
	int64_t reals = 0;
	int64_t weights = 0;
	for (int i = 0; i < (inputs ? inputs->count : body->arguments); i++) {
		const struct type *type;
		const char *role = role_of(main, i, &type);
		const struct type *scalar = type_scalar(type);
		if (!text_same(role, "weight"))
			continue;
		reals += scalar->kind == TYPE_FLOAT && scalar->width == 32 ? bytes_of(type) : 0;
		weights += scalar->kind == TYPE_INTEGER ? bytes_of(type) : 0;
	}
	return reals * PIGGYBACK_SHARE < weights;
}

bool operands_share_weight_port(const struct op *main)
{
	return workload_of(main) == WORKLOAD_DECODE && floats_are_small(main);
}

bool operands_use_full_words(const struct op *main)
{
	enum workload workload = workload_of(main);
	return (workload == WORKLOAD_DECODE || workload == WORKLOAD_TILED_COUNTED_TOKENS) &&
	        floats_are_small(main);
}

int engine_word_uses(struct engine_shape shape)
{
	return shape.tokens_per_cycle * shape.pes_per_port;
}

struct engine_shape engine_shape(const struct block *body)
{
	struct engine_shape shape = { 1, 1 };
	for (const struct op *op = body->first; op; op = op->next) {
		struct engine_shape own = { 1, 1 };
		if (op->code == OP_FOR)
			own = engine_shape(op->region[0]);
		if (op->code == OP_CONTRACT) {
			own.tokens_per_cycle = (int)attr_integer_or(op, KEY_TOKENS_PER_CYCLE, 1);
			own.pes_per_port = (int)attr_integer_or(op, KEY_PES_PER_PORT, 1);
		}
		shape = engine_word_uses(own) > engine_word_uses(shape) ? own : shape;
	}
	return shape;
}

int64_t run_time_tokens_least(const struct op *main)
{
	int64_t least = 0;
	for (int i = 0; i < main->region[0]->arguments; i++) {
		const struct attr *counted =
		        function_argument_attr(main, i, KEY_STREAM_TOKEN_COUNT);
		const struct attr *axis = function_argument_attr(main, i, KEY_STREAM_AXIS);
		int64_t rows = counted && axis
		        ? main->region[0]->argument[i]->type->shape[axis->integer]
		        : 0;
		least = rows && (!least || rows < least) ? rows : least;
	}
	return least;
}

bool counts_few_tokens(const struct op *main)
{
	int64_t rows = run_time_tokens_least(main);
	return rows && rows <= FEW_TOKENS;
}

void mark_engine_shape(struct module *module, struct block *block, struct engine_shape shape)
{
	for (struct op *op = block->first; op; op = op->next) {
		if (op->code == OP_FOR)
			mark_engine_shape(module, op->region[0], shape);
		if (op->code != OP_CONTRACT)
			continue;
		attr_set(module, op, KEY_TOKENS_PER_CYCLE,
		        attr_integer(module, shape.tokens_per_cycle));
		if (shape.pes_per_port > 1 || attr_get(op, KEY_PES_PER_PORT))
			attr_set(module, op, KEY_PES_PER_PORT,
			        attr_integer(module, shape.pes_per_port));
	}
}

void mark_result_lanes(struct module *module, struct block *block, int64_t pes)
{
	int64_t lanes = 1;
	while (2 * lanes <= pes)
		lanes *= 2;
	for (struct op *op = block->first; op; op = op->next) {
		if (op->code == OP_FOR)
			mark_result_lanes(module, op->region[0], pes);
		if (op->code == OP_CONTRACT &&
		        (lanes < 4 * ENGINE_BASE_LANES || attr_get(op, KEY_LANES)))
			attr_set(module, op, KEY_LANES, attr_integer(module, lanes));
	}
}
