/* How the words of a buffer lie in banks, which are memories with one write and one read a cycle.
 * A side that moves several words in an iteration finds each in another bank. Bank numbers are
 * digits of a word's place: with 8 banks of pitch 1, words 0, 8, 16 … are in bank 0. Where what is
 * read at a time does not fall into different banks, as with sliding windows, each word of a read
 * has a copy of the buffer. Where what is written does not, an iteration takes a cycle a word. */
#ifndef STC_BANKS_H
#define STC_BANKS_H
#include "itensor/box.h"
#include "process/operation_builder.h"

#define BANK_DIGITS_MOST 8

struct bank_digit {
	int64_t pitch, banks; /* bank place / pitch % banks; both in words */
};

struct banks {
	int64_t words;  /* of a copy */
	int64_t copies; /* 1: all reads are of one memory */
	int digits;     /* by rising pitch; each is a multiple of what the digits below it cover */
	struct bank_digit digit[BANK_DIGITS_MOST];
};

/* What banks are chosen for. */
struct bank_sides {
	struct arena *arena;
	int64_t words, word; /* words of the buffer, elements of a word */
	int64_t bits;        /* of a word */
	const struct box_side *fill;
	const struct box_side *const *drain; /* [drains] readers at different times */
	int drains;
	bool whole_loops; /* loops may not be split */
};

struct banks banks_choose(const struct bank_sides *sides);
/* The loops of a side, split where one counts more than one digit; shared ones are not. */
struct box_side banks_split(const struct bank_sides *sides, const struct banks *banks,
        const struct box_side *side, int shared);
/* Cycles of an iteration of a side. */
int banks_interval(const struct bank_sides *sides, const struct banks *banks,
        const struct box_side *side, bool write);
/* The array: a dim for the copies, one a digit, and the words of a bank. */
const struct type *banks_type(
        struct module *module, const struct banks *banks, const struct type *element);
int64_t banks_total(const struct banks *banks);

#define BANK_DIMS_MOST (BANK_DIGITS_MOST + 2)

/* The words that a side moves in an iteration. */
struct bank_access {
	const struct banks *banks;
	const struct box_side *side;
	struct value *const *point; /* [loops] counters; NULL: 0 */
	int64_t word;
	/* of word 0, once they are found: its indices, and its place in the buffer */
	struct value *first[BANK_DIMS_MOST], *place;
};

/* The indices of word `number`, in copy `copy` of the buffer; returns how many they are. */
int banks_indices(struct process *p, struct bank_access *access, int64_t number, int64_t copy,
        struct value *index[BANK_DIMS_MOST]);
#endif
