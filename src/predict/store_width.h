/* Width of the words in which a result leaves through its memory ports. */
#ifndef STC_STORE_WIDTH_H
#define STC_STORE_WIDTH_H
#include "platform/platform.h"

struct store_width {
	int64_t lanes; /* of a word of each port; 0: there are no such words */
	double cycles; /* that an element takes, with all ports */
};

/* The quickest words for a result that comes in words of so many lanes and leaves in equal parts
 * through so many ports: a port takes a word a cycle, and memory the bytes of the word, which is
 * padded to a power of two. */
struct store_width store_width(
        const struct platform *platform, int64_t lanes, int64_t bits, int ports);
#endif
