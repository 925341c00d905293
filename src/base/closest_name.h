/* Finds the accepted word closest to a misspelled one, for hints in messages. */
#ifndef STC_CLOSEST_NAME_H
#define STC_CLOSEST_NAME_H

struct closest_name {
	const char *wanted, *found; /* found NULL: no candidate yet */
	int distance;
};
void closest_name_consider(struct closest_name *closest_name, const char *name);

#endif
