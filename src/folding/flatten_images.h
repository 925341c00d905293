/* Prepares contractions that take a whole image as one row of numbers. */
#ifndef STC_FLATTEN_IMAGES_H
#define STC_FLATTEN_IMAGES_H
#include "ir/kernel.h"

void flatten_images(struct module *module, struct block *block);

#endif
