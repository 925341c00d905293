/* A text with one place changed, for what has to be refused. */
#ifndef EDITED_TEXT_H
#define EDITED_TEXT_H
#include "base/text.h"
#include <string.h>

/* `from`, which must be there, replaced by `to`, once. */
static inline const char *edited(
        struct arena *arena, const char *text, const char *from, const char *to)
{
	const char *at = strstr(text, from);
	assert_non_null(at);
	return text_format(arena, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}
#endif
