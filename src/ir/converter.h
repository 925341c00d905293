/* The forms of a converter (stream.convert): it puts the words of a stream in another order, or
 * repeats them.  A module says the form by attributes, and converter_form() alone reads them. */
#ifndef STC_CONVERTER_H
#define STC_CONVERTER_H
#include "ir/ir.h"

enum converter_form {
	CONVERTER_NONE,        /* the operation is no converter */
	CONVERTER_REORDER,     /* fills a buffer and drains it; two halves: a ping-pong buffer */
	CONVERTER_REPLAY,      /* keeps the order and sends some words several times */
	CONVERTER_LINE_BUFFER, /* a ring from which overlapping windows are read */
	/* holds tiles of tokens and sends all of them for every tile of queries: the tile of these
	 * queries once more in place of later ones, which the causal mask hides anyway */
	CONVERTER_CAUSAL,
	CONVERTER_IN_PRODUCER, /* no buffer: the producer drains its accumulators in this order */
	CONVERTER_IN_CONSUMER, /* no process: the consumer fills an array before it computes */
	CONVERTER_SPILLED,     /* through external memory, whatever it was before */
};

enum converter_form converter_form(const struct op *op);
/* Outer loops that producer and consumer have in common: the buffer holds what one iteration of
 * these passes on. */
int converter_shared_loops(const struct op *op);
/* Is it a buffer on chip that is filled and drained, by a process of its own or in the consumer? */
bool converter_is_reorder(const struct op *op);
/* Does it hold the whole tensor, or what a window needs of it, before the first word leaves? */
bool converter_holds_tensor(const struct op *op);
#endif
