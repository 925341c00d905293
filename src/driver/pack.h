/* Weights and constants, packed into the images of the memory buffers that hold them:
 * weights/BUFFER.bin. */
#ifndef STC_PACK_H
#define STC_PACK_H
#include "pipeline/output.h"
#include "import/weights.h"

/* weights NULL: buffers with constants are still written, weights in them as 0.  *bytes, if not
 * NULL, grows by the bytes written.  false: a diagnostic. */
bool pack_weights(
        struct output *output, struct module *module, struct weights *weights, int64_t *bytes);

#endif
