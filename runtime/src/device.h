/* What runs a design.  A device owns the memory of its buffers; the host sees it through a
 * mapping, and says what it wrote there or wants to read. */
#ifndef STC_DEVICE_H
#define STC_DEVICE_H
#include "base/diag.h"
#include <stdint.h>

struct device_buffer {
	const char *name;
	size_t bytes;
	const char *file; /* what it holds at first, from its start; NULL: zeros */
	void *map;        /* the host's view; set by open */
};

struct device_program {
	const char *folder, *top; /* the design's folder; its top function */
	const char *cache;        /* where compiled designs are kept */
	int index;                /* of the card */
	int ports, buffers, phases;
	int phase; /* that a launch runs */
	/* [phases][ports] index of the buffer of each of the top function's arguments; where
	 * there are several phases, one more says which */
	int **port;
	/* two more arguments: a launch's tokens, and how many of them the host gives */
	bool counts;
	int tokens, prompt_tokens; /* of a launch */
	struct device_buffer *buffer;
};

struct device {
	const struct device_class *class;
	struct arena *arena;
	struct diag *diag;
	struct device_program *program;
	void *state; /* the class's own */
};

/* All but close return false with a diagnostic. */
struct device_class {
	const char *name; /* before the `:` of a device's name */
	/* loads the program, makes and fills the buffers */
	bool (*open)(struct device *device);
	/* the host wrote there */
	bool (*write)(struct device *device, int buffer, size_t from, size_t bytes);
	/* the host will read there */
	bool (*read)(struct device *device, int buffer, size_t from, size_t bytes);
	bool (*launch)(struct device *device); /* runs the program to its end */
	void (*close)(struct device *device);  /* also after a failed open */
};

extern const struct device_class device_cpu, device_xrt;

#endif
