/* The accepted word that is the fewest letters away from what was given. */
#ifndef STC_NEAREST_H
#define STC_NEAREST_H

struct nearest {
	const char *wanted, *found;       /* found NULL: none was considered */
	int distance;
};
void nearest_consider(struct nearest *nearest, const char *name);

#endif
