/* Options of the command line, a field for each. */
#ifndef STC_OPTIONS_H
#define STC_OPTIONS_H
#include "options/choices.h"
#include <stdbool.h>
#include <stdint.h>

#define DEFAULT_PLATFORM "u55c"
#define DEFAULT_TRIALS 100

enum limit { LIMIT_DSP, LIMIT_LUT, LIMIT_BRAM, LIMIT_URAM, LIMITS };

struct options {
	const char *file;     /* the command's operand */
	const char *second;   /* its second operand */
	const char *platform; /* NULL: the default */
	const char *weights;
	const char *quant;
	const char *output;
	const char *dump_dir;
	const char *from, *stop_after; /* names of passes */
	const char *to;                /* name of a level */
	struct choices choices;        /* those set by options */
	const char *limit[LIMITS];     /* --max-…; NULL: what the platform has */
	const char *target_ms;
	int64_t effort; /* -O; 0: 2 */
	int64_t trials; /* 0: the default */
	bool resume;
	const char *point; /* --trial STATE.json:ID */
	const char *lp;    /* file for the linear program of FIFO depths */
	int64_t events;    /* --max-iterations of a simulation; 0: the default */
	int64_t images;    /* of a launch that is compiled; 0: as the module has it */
	int64_t launches;  /* launches to simulate; 0: one */
	int64_t tokens;    /* tokens of a launch that is run or simulated; 0: not set */
	int64_t samples;   /* points over time; 0: none */
	const char *trace; /* file for a simulation over time */
	bool progress, help, help_expert, version, json, overlap, dry_run;
	struct option_list {
		const char **data;
		size_t count, capacity;
	} in, out, depth, extent,
	        /* --in, --out NAME=FILE, --channel-depth CHANNEL=COUNT, --extent INPUT=COUNT,
	         * --fix-kernel KERNEL:…, each in the order of the command line */
	        fix,
	        /* of C: -D NAME=VALUE, -I DIR, --define PARAMETER=COUNT */
	        macro, include, define;
	const char *top;    /* of C: the function; NULL: the only one */
	bool reassociate;   /* of C: the order of sums is free */
	const char *clock;  /* of a model: a period in ns; NULL: the platform's */
	const char *device; /* NULL: cpu */
	const char *with;   /* module of a second phase (--second-phase); NULL: none */
	const char *phase;  /* NULL: the first */
};

#endif
