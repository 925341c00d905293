/* Mutated MLIR must be refused with a diagnostic or read, never crash; what is read must print and read back to the same text.
 * With libFuzzer: clang -fsanitize=fuzzer,address -DFUZZ_LIBFUZZER.  Alone: fuzz_import N SEED FILE …, N mutations of each file. */
#include "frontend/import.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void broken(const char *what, const struct diag *diag, struct arena *arena)
{
	struct text text = text_new(arena);
	diag_print(diag, &text);
	fprintf(stderr, "%s\n%s", what, text.data ? text.data : "");
	abort();
}

static void check_round_trip(struct module *module, struct arena *arena, struct guard *guard, struct diag *diag)
{
	struct text first = text_new(arena), second = text_new(arena);
	ir_print(module, &first);
	struct module *again = import_mlir(arena, guard, diag, "dump.mlir", first.data, first.size);
	if (!again)
		broken("a dump was refused", diag, arena);
	ir_print(again, &second);
	if (strcmp(first.data, second.data) != 0)
		broken("a dump changed when it was read back", diag, arena);
}

static void run(const char *text, size_t size)
{
	struct guard guard = {.reason = GUARD_NONE};
	struct arena *arena = arena_new(&guard);
	if (setjmp(guard.leave)) {
		fprintf(stderr, "left through the guard: %s\n", guard.message);
		abort();
	}
	struct diag *diag = ARENA_NEW(arena, struct diag);
	diag->arena = arena;
	struct module *module = import_mlir(arena, &guard, diag, "input.mlir", text, size);
	if (!module && diag->count == 0)
		broken("refused without a diagnostic", diag, arena);
	if (module)
		check_round_trip(module, arena, &guard, diag);
	arena_free(arena);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	char *text = malloc(size + 1);
	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = 0;
	run(text, size);
	free(text);
	return 0;
}

#ifndef FUZZ_LIBFUZZER
static unsigned long long state;

static size_t below(size_t limit)
{
	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return limit ? (size_t)(state >> 33) % limit : 0;
}

static const char *const words[] = {
	"0", "-1", "9223372036854775807", "tensor<4xf32>", "tensor<?xf32>", "tensor<0xf32>", "f64", "i1", "index", "none", "vector<4xf32>", "affine_map<(d0) -> (d0)>",
	"affine_map<(d0)[s0] -> (d0 mod 2)>", "array<i64: 1, 2>", "dense<1.0>", "dense_resource<x>", "@main", "private", "[]", "{}", "()", "stream.level", "\"hardware\"",
	"unit", "true", "!stream.itensor<f32, [1], [1], affine_map<(d0) -> (d0)>>", "!stream.fifo<f32, 2>", "loc(\"x\":1:1)", "linalg.generic", "tensor.empty", "arith.addf",
};

struct input {
	char *text;
	size_t size, capacity;
};

static void replace(struct input *input, size_t at, size_t removed, const char *with, size_t added)
{
	if (at + removed > input->size || input->size - removed + added > input->capacity)
		return;
	memmove(input->text + at + added, input->text + at + removed, input->size - at - removed);
	memmove(input->text + at, with, added);
	input->size += added - removed;
}

static size_t token(const struct input *input, size_t at)
{
	return strcspn(input->text + at, " ,:()[]{}<>\n") + 1;
}

static void mutate(struct input *input)
{
	size_t at = below(input->size), from = below(input->size);
	const char *word = words[below(sizeof words / sizeof *words)];
	char byte = (char)(32 + below(95)), copy[64];
	size_t span = 1 + below(sizeof copy - 1);
	input->text[input->size] = 0;
	switch (below(5)) {
	case 0: replace(input, at, 1, &byte, 1); break;
	case 1: replace(input, at, token(input, at), word, strlen(word)); break;
	case 2: replace(input, at, span, "", 0); break;
	case 3: replace(input, at, 0, word, strlen(word)); break;
	default:
		if (from + span > input->size)
			return;
		memcpy(copy, input->text + from, span);
		replace(input, at, below(span), copy, span);
	}
}

static bool load(const char *path, struct input *input)
{
	FILE *file = fopen(path, "rb");
	input->capacity = 1 << 20;
	input->text = malloc(input->capacity + 1);
	if (!file || !input->text)
		return false;
	input->size = fread(input->text, 1, input->capacity / 2, file);
	fclose(file);
	return input->size > 0;
}

int main(int count, char **argument)
{
	if (count < 4)
		return fprintf(stderr, "fuzz_import N SEED FILE …\n"), 2;
	for (int i = 3; i < count; i++) {
		struct input original, input;
		if (!load(argument[i], &original) || !load(argument[i], &input))
			return fprintf(stderr, "%s: cannot be read\n", argument[i]), 2;
		for (long n = 0; n < strtol(argument[1], NULL, 10); n++) {
			state = strtoull(argument[2], NULL, 10) * 1000003 + (unsigned long long)n;
			memcpy(input.text, original.text, input.size = original.size);
			for (size_t k = 1 + below(6); k > 0; k--)
				mutate(&input);
			if (getenv("FUZZ_KEEP")) {
				FILE *file = fopen(getenv("FUZZ_KEEP"), "wb");
				if (file && fwrite(input.text, 1, input.size, file) == input.size)
					fclose(file);
			}
			input.text[input.size] = 0;
			LLVMFuzzerTestOneInput((const unsigned char *)input.text, input.size);
		}
		free(original.text);
		free(input.text);
	}
	return 0;
}
#endif
