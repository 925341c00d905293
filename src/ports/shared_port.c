/* One process and one memory port for many small loads, or many small stores, in program order. */
#include "ports/memory_image.h"

void shared_port_cast(
        struct shared_port *shared, struct value *from, struct value *to, const struct type *stream)
{
	struct design *design = shared->process.design;
	struct arena *arena = design->module->arena;
	VEC_PUSH(arena, &shared->from, from);
	VEC_PUSH(arena, &shared->to, to);
	VEC_PUSH(arena, &shared->stream, stream);
	VEC_PUSH(arena, &shared->layers, design->layers);
	VEC_PUSH(arena, &shared->last_chunk, design->last_chunk);
}

static bool has_access(const struct shared_port *shared, const struct block *block)
{
	for (const struct op *op = block->first; op; op = op->next)
		if (shared->accepts(shared, op))
			return true;
	return false;
}

static void lower_accesses(struct shared_port *shared, const struct block *body)
{
	struct process *p = &shared->process;
	for (const struct op *op = body->first; op; op = op->next) {
		design_begin(p->design, op);
		if (shared->accepts(shared, op)) {
			int opened = process_last_chunk(p);
			shared->lower_access(shared, op);
			process_close(p, opened);
		}
		if (op->code != OP_FOR || !has_access(shared, op->region[0]))
			continue;
		p->design->layers = attr_get(op->operand[1]->def, KEY_VALUE)->integer;
		attr_set(p->module, p->function, KEY_STREAM_STYLE, attr_string(p->module, "flp"));
		process_layers(p);
		lower_accesses(shared, op->region[0]);
		process_close(p, 1);
		p->layer = NULL;
		p->design->layers = 0;
	}
	design_begin(p->design, NULL);
}

void shared_port_lower(struct design *design, const struct block *body, const char *name,
        struct shared_port *shared)
{
	shared->process = process_new(design,
	        text_format(
	                design->module->arena, "%s_%s", shared->writes ? "store" : "load", name));
	const struct type *word = shared->lanes > 1
	        ? type_shaped(design->module, TYPE_VECTOR, 1, &shared->lanes, shared->scalar)
	        : shared->scalar;
	shared->port = process_argument(
	        &shared->process, design_port(design, name, word, name, shared->writes), "m");
	if (!shared->writes)
		design_mark_port(design, name, KEY_STREAM_LOADER, "shared");
	lower_accesses(shared, body);
	process_finish(&shared->process);
	design_buffer(design, name, word, shared->elements / type_elements(word),
	        attr_array(design->module, (int)shared->segments.count, shared->segments.data));
	for (size_t i = 0; i < shared->from.count; i++) {
		design->layers = shared->layers.data[i];
		design->last_chunk = shared->last_chunk.data[i];
		add_cast(design, "cast", shared->from.data[i], shared->to.data[i],
		        shared->stream.data[i]);
	}
	design->layers = 0;
	design->last_chunk = NULL;
}
