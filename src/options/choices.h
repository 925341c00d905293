/* A point of the design space: values of the design parameters listed in choices.def, and kernels
 * whose parallelism is fixed. */
#ifndef STC_CHOICES_H
#define STC_CHOICES_H
#include "base/diag.h"
#include <stdint.h>

struct platform;

enum matmul_form { MATMUL_ENGINE, MATMUL_SPATIAL, MATMUL_FORMS };
extern const char *const matmul_form_name[MATMUL_FORMS];

enum softmax_form { SOFTMAX_AUTO, SOFTMAX_ONLINE, SOFTMAX_TWO_PASS, SOFTMAX_FORMS };
extern const char *const softmax_form_name[SOFTMAX_FORMS];
enum register_tiles_form { REGISTER_TILES_SEARCHED, REGISTER_TILES_NONE, REGISTER_TILES_FORMS };
extern const char *const register_tiles_name[REGISTER_TILES_FORMS];
enum prologue_pace { PROLOGUE_SEARCHED, PROLOGUE_PACED, PROLOGUE_PACES };
extern const char *const prologue_pace_name[PROLOGUE_PACES];

enum fifo_strategy {
	FIFO_STRATEGY_TRIM,
	FIFO_STRATEGY_MINIMAL,
	FIFO_STRATEGY_LP,
	FIFO_STRATEGY_NORMAL,
	FIFO_STRATEGY_CONSERVATIVE,
	FIFO_STRATEGY_SAFE,
	FIFO_STRATEGIES
};
extern const char *const fifo_strategy_name[FIFO_STRATEGIES];

enum parallelism_search {
	PARALLELISM_JOINT,
	PARALLELISM_INTENSITY,
	PARALLELISM_NEIGHBOR,
	PARALLELISM_UNIFORM,
	PARALLELISM_SEARCHES
};
extern const char *const parallelism_search_name[PARALLELISM_SEARCHES];

enum choice {
#define COUNT(code, ...) CHOICE_##code,
#define WORD(code, ...) CHOICE_##code,
#include "options/choices.def"
#undef COUNT
#undef WORD
	CHOICES
};

/* all but UNIT_ONE: thousandths of what the platform has */
enum choice_unit { UNIT_ONE, UNIT_DSP, UNIT_LUT, UNIT_MEMORY, UNIT_CLOCK };

#define CHOICE_CANDIDATES 8

struct choice_info {
	const char *name;
	const char *const *word; /* NULL: a count */
	int words;
	int64_t least, most, default_value;
	enum choice_unit unit;
	int64_t candidates[CHOICE_CANDIDATES]; /* tried by an exploration; ends at the first 0 */
};
extern const struct choice_info choice_info[CHOICES];

struct fixed_parallelism { /* parallelism of one kernel, set by --fix-kernel */
	const char *kernel;
	int64_t lanes, row_unroll, ports; /* 0: free */
};

struct choices {
	int64_t value[CHOICES]; /* 0: the default; a word: 1 + its number */
	int fixed;
	const struct fixed_parallelism *fix;
};

/* value of a parameter of UNIT_ONE */
int64_t choice_count(const struct choices *choices, enum choice choice);
/* value of a parameter of any unit, on this platform */
int64_t choice_resolve(
        const struct choices *choices, const struct platform *platform, enum choice choice);
/* number of the selected word */
int choice_word(const struct choices *choices, enum choice choice);
int choice_word_named(enum choice choice, const char *word); /* -1: no such word */
/* prints a value of struct choices, as its option takes it or as JSON */
void choice_print(struct text *out, enum choice choice, int64_t value, bool json);
/* number of values that an exploration tries; of words all */
int choice_candidates(enum choice choice);
/* The n-th of them, as a value of struct choices. */
int64_t choice_candidate(const struct platform *platform, enum choice choice, int n);
/* parses KERNEL:lanes=8,row-unroll=2,ports=4; false after a diagnostic */
bool fixed_parallelism_parse(struct diag *diag, const char *text, struct fixed_parallelism *fixed);
/* the fixed parallelism of a kernel; NULL: it is free */
const struct fixed_parallelism *fixed_parallelism_of(
        const struct choices *choices, const char *kernel);
#endif
