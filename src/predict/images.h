/* Interval and latency of the images of a launch. A process that stores results takes them from
 * channels; where it takes image by image, image i of n is complete when it takes word
 * ceil((i + 1) * words / n). */
#ifndef STC_IMAGES_H
#define STC_IMAGES_H
#include "ir/ir.h"

struct image_channel {
	int channel;   /* in the order in which main makes them */
	int64_t words; /* of a launch */
};

struct image_channels {
	int64_t images; /* of a launch; 0: inputs are no images, or results come in another order */
	int count;
	struct image_channel *channel;
};

struct image_times {      /* in cycles */
	int64_t first;    /* from the launch to the first image's last result */
	int64_t interval; /* a further image; 0: unknown */
	/* results wait for other images, so that an image has no time of its own: the interval is
	 * its share of the launch */
	bool together;
};

/* Images of a launch (stream.images); 0: its inputs are no images. */
int64_t images_of(const struct module *module);
/* The channels of a hardware-level module from which results are stored. */
struct image_channels image_channels_of(struct arena *arena, const struct module *module);
/* Corrects the interval between results.  busiest: cycles of a launch in which the busiest process
 * works, of those that images pass; images cannot follow each other faster.  Results that do so by
 * far have waited for other images. */
struct image_times image_times_of(
        struct image_times found, int64_t images, int64_t cycles, int64_t busiest);
/* Words after which an image is complete. */
static inline int64_t image_end(int64_t words, int64_t images, int64_t image)
{
	int64_t each = words / images;
	return each * (image + 1) + ((words % images) * (image + 1) + images - 1) / images;
}

#endif
