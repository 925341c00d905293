/* Builds the operations inside the loops of a process: numbers, conditions, addresses, accesses to
 * channels, arrays and memory ports. */
#ifndef STC_OPERATION_BUILDER_H
#define STC_OPERATION_BUILDER_H
#include "ir/predicate.h"
#include "itensor/element_sequence.h"
#include "process/process_builder.h"

struct value *make_op(struct process *p, enum op_code code, const struct type *type, int operands,
        struct value *const *operand);
struct value *make_index(struct process *p, int64_t number);
struct value *make_bool(struct process *p, bool value);
/* a constant, scalar or word */
struct value *make_number(struct process *p, double number, const struct type *type);
/* Of an integer type; a double has not all numbers of 64 bits. */
struct value *make_integer(struct process *p, int64_t number, const struct type *type);
struct value *make_equal(struct process *p, struct value *index, int64_t number);
/* a constant of its own: other loops of the datapath may have another number in its place */
struct value *make_unshared_index(struct process *p, int64_t number);
struct value *make_equal_values(struct process *p, struct value *index, struct value *other);
/* left != right */
struct value *make_not_equal(struct process *p, struct value *index, struct value *other);
struct value *make_below(struct process *p, struct value *index, struct value *other);
struct value *make_compare(
        struct process *p, enum integer_predicate predicate, struct value *index, int64_t number);
/* NULL operands are true */
struct value *make_and(struct process *p, struct value *left, struct value *right);
/* NULL: the constant true */
struct value *make_condition(struct process *p, struct value *condition);
struct value *make_select(
        struct process *p, struct value *when, struct value *yes, struct value *no);
/* offset + Σ stride[i] counter[i]; NULL counters count 0 */
struct value *make_address(struct process *p, int dims, struct value *const *counter,
        const int64_t *stride, int64_t offset);
/* OP_DIVSI or OP_REMSI */
struct value *make_divided(struct process *p, enum op_code code, struct value *number, int64_t by);
/* an index in 0 … limit - 1: numbers from the host never address beyond a buffer */
struct value *make_clamped(struct process *p, struct value *number, int64_t limit);
/* when NULL: always */
struct value *make_pop(struct process *p, struct value *when, struct value *fifo);
void make_push(struct process *p, struct value *when, struct value *word, struct value *fifo);
struct value *make_array(struct process *p, const char *name, int64_t size,
        const struct type *element, int64_t partition);
/* Of several dims: all but the last are banks. */
struct value *make_shaped_array(
        struct process *p, const char *name, const struct type *type, int64_t partition);
struct value *make_load(struct process *p, struct value *array, struct value *index);
void make_store(struct process *p, struct value *word, struct value *array, struct value *index);
void make_write(struct process *p, struct value *when, struct value *word, struct value *port,
        struct value *address);

#endif
