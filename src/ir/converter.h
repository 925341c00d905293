/* The forms of a converter (stream.convert), which puts the words of a stream in another order.  A
 * module says the form by attributes; nobody but converter_form() tells it from them. */
#ifndef STC_CONVERTER_H
#define STC_CONVERTER_H
#include "ir/ir.h"

enum converter_form {
	CONVERTER_NONE,        /* the operation is no converter */
	CONVERTER_REORDER,     /* fills a buffer and drains it; ping-pong where `halves` is 2 */
	CONVERTER_REPLAY,      /* keeps the order and sends some words several times */
	CONVERTER_LINE_BUFFER, /* a ring from which overlapping windows are read */
	CONVERTER_CAUSAL,      /* all tiles in each pass, of which the causal mask hides some */
	CONVERTER_IN_PRODUCER, /* no buffer: the producer drains its accumulators in this order */
	CONVERTER_IN_CONSUMER, /* no process: the consumer fills an array before it computes */
	CONVERTER_SPILLED,     /* through external memory, whatever it was before */
};

enum converter_form converter_form(const struct op *op);
/* Outer loops that producer and consumer share, for each iteration of which it hands a block on. */
int converter_shared_loops(const struct op *op);
/* Does it fill a buffer of its own on chip and drain it, with or without replay? */
bool converter_is_reorder(const struct op *op);
/* Does it hold the whole tensor, or what a window needs of it, before the first word leaves? */
bool converter_holds_tensor(const struct op *op);
#endif
