/* What choose_parallelism and choose_loop_orders record in the kernels of tensor level, for the
 * passes after them. */
#ifndef STC_RECORDED_CHOICES_H
#define STC_RECORDED_CHOICES_H
#include "options/choices.h"
#include "schedule/kernel_schedule.h"

/* The parallelism of a kernel, chosen for all kernels jointly before any is scheduled. */
struct parallelism {
	int64_t lanes; /* most lanes */
	int bulk;      /* operand with memory ports of its own, or -1 */
	int ports;     /* number of these ports */
	/* bit j: operand j, nearly as large, has as many ports of its own */
	uint32_t peers;
};

/* Has the operand memory ports of its own? */
static inline bool parallelism_has_ports(const struct parallelism *parallelism, int operand)
{
	return operand == parallelism->bulk || parallelism->peers >> operand & 1;
}
/* The number of operands with memory ports of their own. */
int operands_with_ports(int bulk, uint32_t peers);
void record_parallelism(
        struct module *module, struct op *op, const struct parallelism *parallelism);
struct parallelism recorded_parallelism(const struct op *op);
void record_schedule(struct module *module, struct op *op, const struct schedule *schedule);
struct schedule recorded_schedule(struct arena *arena, const struct op *op);
/* The schedule that choose_register_tiles has chosen: it is taken as it is. */
void record_register_tile(struct module *module, struct op *op, const struct schedule *schedule);
struct schedule recorded_register_tile(struct arena *arena, const struct op *op);
bool has_register_tile(const struct op *op);
/* The schedule that fold_convolutions has chosen: it is taken as it is. */
void record_folding(struct module *module, struct op *op, const struct schedule *schedule);
struct schedule recorded_folding(struct arena *arena, const struct op *op);
bool has_folding(const struct op *op);
/* The lanes that a pragma of C asks for; false: none does. */
bool unroll_of_kernel(
        const struct module *module, const char *kernel, struct fixed_parallelism *wish);
/* Has every kernel but gathers the attribute? false after a diagnostic: it names the pass that
 * sets it. */
bool kernels_have_parallelism(struct module *module);
/* and does the schedule give every port a type? */
bool kernels_have_schedules(struct module *module);
/* Removes these attributes from all kernels: passes before may change what they are about. */
void forget_recorded_choices(struct module *module);
#endif
