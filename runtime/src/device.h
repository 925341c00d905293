/* Interface of the devices that run a design. A device owns the memory of the buffers; the host
 * sees it through a mapping, and announces what it wrote or wants to read. */
#ifndef STC_DEVICE_H
#define STC_DEVICE_H
#include "base/diag.h"
#include <signal.h>
#include <stdint.h>

struct device_buffer {
	const char *name;
	size_t bytes;
	const char *file; /* initial content from its start; NULL: zeros */
	void *map;        /* the host's view; set by open */
	int64_t channel;  /* of memory in which it should be */
};

struct device_port { /* an argument of the top function */
	const char *name;
	int64_t first, last; /* memory channels that it reaches */
};

struct device_program {
	const char *folder, *top; /* the design's folder; its top function */
	const char *cache;        /* folder for compiled designs */
	/* not 0: the user interrupts, and what takes long ends soon; NULL: that is never told */
	const volatile sig_atomic_t *stop;
	int index; /* number of the card */
	int ports, buffers, phases;
	int phase; /* phase of the next launch */
	/* [phases][ports] index of the buffer of each argument of the top function; with several
	 * phases one more argument selects the phase */
	int **port;
	struct device_port *reach; /* [ports] */
	const char *memory;        /* tag of its memory channels: HBM, DDR, … */
	double mhz;                /* clock for which it was compiled */
	/* two more arguments: steps of a launch, and its prompt tokens */
	bool counts;
	int tokens, prompt_tokens; /* values of these for the next launch */
	struct device_buffer *buffer;
};

struct device {
	const struct device_class *class;
	struct arena *arena;
	struct diag *diag;
	struct device_program *program;
	void *state; /* private to the class */
	double mhz;  /* clock at which the program runs; 0: it has none */
};

/* All but close return false with a diagnostic. */
struct device_class {
	const char *name; /* part of a device name before the `:` */
	/* loads the program, allocates and fills the buffers */
	bool (*open)(struct device *device);
	/* the host wrote this range */
	bool (*write)(struct device *device, int buffer, size_t from, size_t bytes);
	/* the host will read this range */
	bool (*read)(struct device *device, int buffer, size_t from, size_t bytes);
	bool (*launch)(struct device *device); /* runs the program to its end */
	/* what the first launch needs; NULL: nothing */
	bool (*prepare)(struct device *device);
	void (*close)(struct device *device); /* also after a failed open */
};

/* device_cpu_once: its program is compiled in a third of the time and runs a few times slower */
extern const struct device_class device_cpu, device_cpu_once, device_xrt;

#endif
