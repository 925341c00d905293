/* Fuzzes the MLIR import: mutated text must be refused with a diagnostic or read, never crash, and
 * a module that was read must print and read back to the same text.  With libFuzzer: clang
 * -fsanitize=fuzzer,address -DFUZZ_LIBFUZZER.  Without: fuzz_import N SEED FILE …, N mutations of
 * each file. */
#include "import/import.h"
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

static void check_round_trip(
        struct module *module, struct arena *arena, struct guard *guard, struct diag *diag)
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
	struct guard guard = { .reason = GUARD_NONE };
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
	if (module) {
		check_round_trip(module, arena, &guard, diag);
		if (!ir_verify(module) && diag->count == 0)
			broken("invalid without a diagnostic", diag, arena);
	}
	arena_free(arena);
}

static const char *const words[] = {
	"0",
	"-1",
	"9223372036854775807",
	"tensor<4xf32>",
	"tensor<?xf32>",
	"tensor<0xf32>",
	"f64",
	"i1",
	"index",
	"none",
	"vector<4xf32>",
	"affine_map<(d0) -> (d0)>",
	"affine_map<(d0)[s0] -> (d0 mod 2)>",
	"array<i64: 1, 2>",
	"dense<1.0>",
	"dense_resource<x>",
	"@main",
	"private",
	"[]",
	"{}",
	"()",
	"stream.level",
	"\"hardware\"",
	"unit",
	"true",
	"!stream.itensor<f32, [1], [1], affine_map<(d0) -> (d0)>>",
	"!stream.fifo<f32, 2>",
	"loc(\"x\":1:1)",
	"linalg.generic",
	"tensor.empty",
	"arith.addf",
};

#define FUZZ_NAME "fuzz_import"
#include "driver.h"
