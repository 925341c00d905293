#define _GNU_SOURCE /* mkdtemp */
/* Compares the emitted C++ of a design folder with the evaluator: a launch on random numbers must
 * have the same results bit for bit.
 *     compare_design [--evaluate] DIR [INPUT=INTEGER …]
 * INPUT=INTEGER sets an integer input, which is 0 otherwise.  --evaluate runs only the evaluator,
 * which checks the dependence distances that the design claims.  Weights have random digits; their
 * scales, and those of keys and values, are between 2^-11 and 2^-6. */
#include "emitted_cpp.h"
#include "base/data.h"
#include "base/json.h"
#include "import/import.h"
#include "ir/verify.h"
#include <setjmp.h>

struct launch {
	struct emitted own;
	struct guard guard;
	struct diag diag;
	uint64_t random;
	bool evaluator_only;
	int input_integers;
	char **value;
};

static uint64_t next_number(struct launch *l)
{
	l->random = l->random * 6364136223846793005u + 1442695040888963407u;
	return l->random >> 33;
}

static int64_t input_integer(const struct launch *l, const char *name)
{
	size_t length = strlen(name);
	for (int i = 0; i < l->input_integers; i++)
		if (!strncmp(l->value[i], name, length) && l->value[i][length] == '=')
			return strtoll(l->value[i] + length + 1, NULL, 10);
	return 0;
}

static void fill(struct launch *l, const char *name, const struct tensor *tensor)
{
	const struct type *scalar = type_scalar(tensor->type);
	int64_t count = type_elements(tensor->type);
	int64_t input_integers =
	        scalar->kind == TYPE_INTEGER && scalar->width == 64 ? input_integer(l, name) : 0;
	for (int64_t i = 0; i < count; i++) {
		uint64_t number = next_number(l);
		if (scalar->kind == TYPE_INTEGER && scalar->width == 64)
			((int64_t *)tensor->data)[i] = input_integers;
		else if (scalar->kind == TYPE_INTEGER)
			((int8_t *)tensor->data)[i] =
			        (int8_t)((int)(number % (scalar->width == 4 ? 15 : 239)) -
			                (scalar->width == 4 ? 7 : 119));
		else if (scalar->width == 16)
			((uint16_t *)tensor->data)[i] =
			        (uint16_t)((4 + number % 5) << 10 | (number >> 8 & 1023));
		else
			((float *)tensor->data)[i] = (float)((int)(number % 2001) - 1000) / 1000.0f;
	}
}

static void make_inputs(struct launch *l)
{
	const struct attr *inputs = attr_get(module_main(l->own.module), KEY_STREAM_INPUTS);
	struct tensor *input = ARENA_ARRAY(l->own.arena, struct tensor, inputs->count + 1);
	l->own.inputs = eval_inputs(l->own.module);
	for (int i = 0; i < l->own.inputs; i++) {
		const struct type *type = attr_item(inputs->items[i].value, KEY_TYPE)->type;
		input[i] = (struct tensor){ type, arena_alloc(l->own.arena, tensor_bytes(type)) };
		fill(l, attr_item(inputs->items[i].value, KEY_NAME)->text, &input[i]);
	}
	l->own.input = input;
}

static bool evaluate(struct launch *l)
{
	l->own.results = eval_results(l->own.module);
	struct tensor *result = ARENA_ARRAY(l->own.arena, struct tensor, l->own.results + 1);
	l->own.result = result;
	return eval_module(l->own.module, l->own.arena, l->own.inputs, l->own.input, result);
}

/* The design's source and a function that calls it with an array of pointers, for one step with one
 * token from the host. */
static void *load(struct launch *l, const char *folder, const char *work)
{
	struct text source = text_new(l->own.arena);
	struct text names = text_new(l->own.arena);
	size_t size;
	const char *reason;
	const char *manifest = file_read(l->own.arena,
	        text_format(l->own.arena, "%s/manifest.json", folder), &size, &reason);
	const struct json *json =
	        manifest ? json_parse(l->own.arena, manifest, size, &(size_t){ 0 }) : NULL;
	if (!json_text(json, "top"))
		return NULL;
	const char *top = json_text(json, "top");
	text_add(&names, "%s/hls/%s.cpp", folder, top);
	text_add(&source, "#include \"%s\"\n#include <cstddef>\n#include <utility>\n", names.data);
	text_add(&source,
	        "struct argument {\n\tvoid *port;\n\ttemplate<typename T> operator T *() const { "
	        "return static_cast<T *>(port); }\n\toperator int() const { return 1; }\n};\n");
	text_add(&source,
	        "template<typename... T, std::size_t... I> static void call(void (*f)(T...), void "
	        "**p, std::index_sequence<I...>)\n{\n\tf(argument{p[I]}...);\n}\n");
	text_add(&source,
	        "template<typename... T> static void call_all(void (*f)(T...), void "
	        "**p)\n{\n\tcall(f, p, std::index_sequence_for<T...>());\n}\n");
	text_add(&source, "extern \"C\" void call_ports(void **p)\n{\n\tcall_all(&%s, p);\n}\n",
	        top);
	return emitted_load(l->own.arena, work, "beside", &source, "-O1");
}

static const char *compare(struct launch *l, const char *folder, const char *work)
{
	size_t size;
	const char *reason;
	const char *path = text_format(l->own.arena, "%s/design.mlir", folder);
	const char *text = file_read(l->own.arena, path, &size, &reason);
	if (!text)
		return reason;
	l->own.module = import_mlir(l->own.arena, &l->guard, &l->diag, path, text, size);
	if (!l->own.module || !ir_verify(l->own.module))
		return l->diag.count ? l->diag.entry[0].message : "it cannot be read";
	make_inputs(l);
	if (!evaluate(l))
		return l->diag.count ? l->diag.entry[0].message : "it cannot be evaluated";
	if (l->evaluator_only)
		return NULL;
	void *library = load(l, folder, work);
	return library ? emitted_run(&l->own, library, NULL) : "the C++ is not accepted";
}

int main(int count, char **word)
{
	bool evaluator_only = count > 1 && !strcmp(word[1], "--evaluate");
	count -= evaluator_only;
	word += evaluator_only;
	struct launch l = { .random = 1,
		.evaluator_only = evaluator_only,
		.input_integers = count > 2 ? count - 2 : 0,
		.value = word + 2 };
	char work[] = "/tmp/stc-beside-XXXXXX";
	char command[sizeof work + 16];
	l.own.arena = arena_new(&l.guard);
	l.diag.arena = l.own.arena;
	if (count < 2 || !mkdtemp(work))
		return 2;
	/* the text that includes the design's lies elsewhere */
	char *folder = realpath(word[1], NULL);
	const char *volatile wrong = NULL;
	if (setjmp(l.guard.leave))
		wrong = l.guard.message;
	else
		wrong = folder ? compare(&l, folder, work) : "there is no such folder";
	snprintf(command, sizeof command, "rm -rf %s", work);
	bool removed = !system(command);
	printf("%s: %s\n", word[1], wrong ? wrong : evaluator_only ? "evaluated" : "the same");
	free(folder);
	arena_free(l.own.arena);
	return wrong || !removed;
}
