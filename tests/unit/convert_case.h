/* Converters of a test: modules with some between random types, lowered to processes and run. */
#ifndef CONVERT_CASE_H
#define CONVERT_CASE_H
#include "random_convert.h"
#include "pipeline/passes.h"
#include "import/import.h"
#include "platform/platform.h"
#include "converter/replay_buffer.h"
#include "lowering/lowering_passes.h"
#include "streams/streams_passes.h"
#include "evaluate/eval.h"
#include "stream_case.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static inline const char *messages(struct fixture *f)
{
	struct text text = text_new(f->arena);
	text_add(&text, "%s", "");
	diag_print(&f->diag, &text);
	return text.data;
}

static inline struct module *read_module(struct fixture *f, const struct text *source)
{
	struct module *module = import_mlir(
	        f->arena, &f->guard, &f->diag, "converters", source->data, source->size);
	if (!module || !ir_verify(module))
		fail_msg("%s\n%s", messages(f), source->data);
	return module;
}

static inline bool lower(struct fixture *f, struct module *module)
{
	struct pass_context context = { .platform = platform_load(f->arena, &f->diag, "u55c") };
	bool good = fold_converters(&context, module) && schedule_reductions(&context, module);
	for (int p = pass_find("make_processes"); good && p <= pass_find("size_fifos"); p++)
		good = passes[p].run(&context, module) && ir_verify(module);
	return good;
}

/* Elements 0, 1, 2 … so that an element says where it comes from. */
static inline struct tensor counted(struct fixture *f, const struct type *type)
{
	struct tensor tensor = { type, arena_alloc(f->arena, tensor_bytes(type)) };
	float *data = tensor.data;
	for (int64_t i = 0; i < type_elements(type); i++)
		data[i] = (float)i;
	return tensor;
}

/* as_replay: converters that only repeat words become replay buffers. */
static inline struct module *marked(struct module *module, bool as_replay)
{
	if (as_replay)
		mark_replay_buffers(module, module_main(module)->region[0], true);
	return module;
}

/* A converter of its own for the pair, lowered; the words that come out before and after that. */
static inline struct module *run_pair(struct fixture *f, uint64_t seed,
        const struct convert_pair *pair, struct tensor *before, struct tensor *after)
{
	struct text text = text_new(f->arena);
	convert_module(f->module, 1, pair, &text);
	struct module *module = marked(read_module(f, &text), seed % 2);
	struct tensor input = counted(f, pair->tensor);
	assert_true(eval_module(module, f->arena, 1, &input, before));
	if (!lower(f, module) || !eval_module(module, f->arena, 1, &input, after))
		fail_msg("seed %d: %s", (int)seed, messages(f));
	return module;
}

/* Elements in the replay buffer; -1: there is none. */
static inline int64_t replay_elements(const struct module *module)
{
	for (const struct op *op = module->op->region[0]->first; op; op = op->next)
		if (strstr(attr_text_or(op, KEY_SYM_NAME, ""), "_replay"))
			for (const struct op *in = op->region[0]->first; in; in = in->next)
				if (in->code == OP_ALLOCA)
					return type_elements(in->result[0]->type) *
					        (in->result[0]->type->element->kind == TYPE_VECTOR
					                        ? type_elements(in->result[0]
					                                          ->type->element)
					                        : 1);
	return -1;
}

#endif
