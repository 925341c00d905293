/* The accepted word that is the fewest letters away from what was given. */
#ifndef STC_CLOSEST_NAME_H
#define STC_CLOSEST_NAME_H

struct closest_name {
	const char *wanted, *found; /* found NULL: none was considered */
	int distance;
};
void closest_name_consider(struct closest_name *closest_name, const char *name);

#endif
