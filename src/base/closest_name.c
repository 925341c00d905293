/* Compares words by Levenshtein distance. */
#include "base/closest_name.h"
#include <string.h>

#define WORD_MOST 32

static int smaller(int left, int right)
{
	return left < right ? left : right;
}

static int edit_distance(const char *left, const char *right)
{
	int row[WORD_MOST + 1];
	int width = (int)strlen(right);
	if (width > WORD_MOST)
		return WORD_MOST;
	for (int j = 0; j <= width; j++)
		row[j] = j;
	for (int i = 1; left[i - 1]; i++) {
		int diagonal = row[0];
		row[0] = i;
		for (int j = 1; j <= width; j++) {
			int above = row[j];
			row[j] = smaller(diagonal + (left[i - 1] != right[j - 1]),
			        1 + smaller(above, row[j - 1]));
			diagonal = above;
		}
	}
	return row[width];
}

void closest_name_consider(struct closest_name *closest_name, const char *name)
{
	int distance = edit_distance(closest_name->wanted, name);
	if (!closest_name->found || distance < closest_name->distance)
		*closest_name = (struct closest_name){ closest_name->wanted, name, distance };
}
