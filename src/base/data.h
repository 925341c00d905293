/* Finds and reads files that come with the program: platforms/, share/, runtime/. */
#ifndef STC_DATA_H
#define STC_DATA_H
#include "base/text.h"

/* The path of `file` (as "platforms/u55c.json"). Searched in the environment's STREAMTENSOR_DATA,
 * in the folder set at compile time, and in the parent of the program's or library's folder. Never
 * NULL; the file need not exist. */
const char *data_path(struct arena *arena, const char *file);
/* The whole file, with a final 0 that `size` does not count; `-` is standard input. NULL if it
 * cannot be read (a folder, a device, more than 4 GiB); *reason says why. */
char *file_read(struct arena *arena, const char *path, size_t *size, const char **reason);
/* The same for a file of a folder that others made, where a pipe would be waited for. */
char *file_read_regular(struct arena *arena, const char *path, size_t *size, const char **reason);

#endif
