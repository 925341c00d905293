/* Where the files that come with the program are: platforms/, share/, runtime/. */
#ifndef STC_DATA_H
#define STC_DATA_H
#include "base/text.h"

/* The path of `file` (as "platforms/u55c.json").  Looked for in the environment's
 * STREAMTENSOR_DATA, in the folder that was compiled in, and in the folder above that of the
 * program or library.  Never NULL; the file need not exist. */
const char *data_path(struct arena *arena, const char *file);
/* The whole file, with a final 0 that `size` does not count; `-` is standard input.  NULL: it
 * cannot be read, and *reason says why. */
char *file_read(struct arena *arena, const char *path, size_t *size, const char **reason);

#endif
