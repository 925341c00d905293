/* Inside raise/: the body of a sequential nest while it is filled. */
#ifndef STC_RAISE_LOOPS_H
#define STC_RAISE_LOOPS_H
#include "raise/raise_internal.h"

enum { FORM_TERMS = 24 };

/* Σ factor · value + constant */
struct nest_form {
	int terms;
	struct value *value[FORM_TERMS];
	int64_t factor[FORM_TERMS];
	int64_t constant;
};

struct nest_builder {
	struct raising *r;
	struct block *head, *block; /* of the nest; of the innermost open loop */
	struct map constants;
	struct nest_form *counter; /* [loops] */
	struct location location;
	struct value *when;   /* condition of the branches and lanes around; NULL: always */
	struct value *branch; /* of the branches alone */
	void *context;
	/* makes an iteration of a statement */
	bool (*statement)(struct nest_builder *b, const struct poly_step *step,
	        const struct nest_form *counter);
};

/* Makes loops and statements; false after a diagnostic. */
bool nest_step(struct nest_builder *b, const struct poly_step *step);

struct value *nest_op(struct nest_builder *b, enum op_code code, const struct type *type,
        int operands, struct value *const *operand);
struct value *nest_index(struct nest_builder *b, int64_t number);
struct value *nest_compare(struct nest_builder *b, enum integer_predicate predicate,
        struct value *left, struct value *right);
/* NULL operands are true */
struct value *nest_both(struct nest_builder *b, struct value *left, struct value *right);
/* the form of a statement's counters in terms of the nest's values */
struct nest_form nest_compose(struct nest_builder *b, const struct poly_form *form,
        const struct nest_form *counter, int dims);
struct value *nest_value(struct nest_builder *b, const struct nest_form *form);
struct value *nest_select(
        struct nest_builder *b, struct value *when, struct value *yes, struct value *no);
/* Is the value the counter of a loop whose iterations run at once? */
bool nest_is_lane(const struct value *value);
/* a condition of the source on counters; NULL: always */
struct value *nest_condition(struct nest_builder *b, const struct poly_condition *condition,
        const struct nest_form *counter, int dims);
/* the value of a body; operand j is operand[j], INDEX of loop d is counter d */
struct value *nest_body(struct nest_builder *b, const struct body *body,
        struct value *const *operand, const struct nest_form *counter);

#endif
