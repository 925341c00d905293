/* Reads a C function, or a design in HLS C++. This room is the only one that knows libclang. */
#ifndef STC_FRONTEND_H
#define STC_FRONTEND_H
#include "frontend/cpp_design.h"
#include "frontend/region.h"

struct c_list {
	const char *const *data;
	size_t count;
};

struct c_options {
	const char *top;        /* name of the function; NULL: the only one of the file */
	struct c_list macros;   /* NAME or NAME=VALUE */
	struct c_list includes; /* folders */
	struct c_list sizes;    /* PARAMETER=COUNT */
};

struct c_source {
	const char *file; /* for messages and includes */
	const char *text;
	size_t size;
};

/* What C calls an operation, in double precision. */
const char *c_function_of(enum op_code code);
/* Is it the name of a C file? */
bool c_is_source(const char *file);
/* NULL after diagnostics in module->diag. */
struct region *c_read(
        struct module *module, const struct c_options *options, const struct c_source *source);
/* The same of HLS C++ with pragmas, for a model of its times. */
struct cpp_design *cpp_read(
        struct module *module, const struct c_options *options, const struct c_source *source);

#endif
