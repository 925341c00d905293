/* Reads MLIR types. The stream dialect is not registered with MLIR: its types arrive as text, whose
 * parameters MLIR parses as an array attribute. */
#include "import/read.h"
#include <string.h>

#define RANK_MOST 64
#define ELEMENTS_MOST (INT64_C(1) << 53)

static const struct type *type_refused(struct reader *reader, MlirType type)
{
	read_error(reader, "type %s is not supported", print_type(reader->arena, type));
	diag_note(reader->diag,
	        "accepted are index, signless integers of 1, 2, 4, 8, 16, 32 or 64 bits, f16, "
	        "bf16, f32, f64, and tensors, vectors and memrefs of these without encoding or "
	        "layout");
	return NULL;
}

static const struct type *read_number(struct reader *reader, MlirType type)
{
	struct module *module = reader->module;
	if (mlirTypeIsAIndex(type))
		return type_index(module);
	if (mlirTypeIsAF32(type))
		return type_float(module, 32);
	if (mlirTypeIsAF64(type))
		return type_float(module, 64);
	if (mlirTypeIsAF16(type))
		return type_float(module, 16);
	if (mlirTypeIsABF16(type))
		return type_bfloat(module);
	if (mlirTypeIsANone(type))
		return type_none(module);
	if (!mlirTypeIsAInteger(type) || !mlirIntegerTypeIsSignless(type))
		return NULL;
	unsigned width = mlirIntegerTypeGetWidth(type);
	bool power = width && !(width & (width - 1));
	return power && width <= 64 ? type_integer(module, (int)width) : NULL;
}

static bool plain_layout(MlirType type)
{
	if (mlirTypeIsAVector(type))
		return !mlirVectorTypeIsScalable(type);
	if (mlirTypeIsARankedTensor(type))
		return mlirAttributeIsNull(mlirRankedTensorTypeGetEncoding(type));
	return mlirTypeIsAMemRef(type) &&
	        mlirAffineMapIsIdentity(mlirMemRefTypeGetAffineMap(type)) &&
	        mlirAttributeIsNull(mlirMemRefTypeGetMemorySpace(type));
}

static bool read_shape(struct reader *reader, MlirType type, int64_t *shape, int rank)
{
	bool port = reader->own && mlirTypeIsAMemRef(type); /* a memory port has no extent */
	int64_t elements = 1;
	for (int i = 0; i < rank; i++) {
		bool dynamic = mlirShapedTypeIsDynamicDim(type, i);
		shape[i] = dynamic ? -1 : mlirShapedTypeGetDimSize(type, i);
		if (dynamic && !port) {
			read_error(reader, "type %s has a dynamic extent",
			        print_type(reader->arena, type));
			return diag_note(reader->diag,
			        "accepted are static shapes: export the model with a maximum for "
			        "every dynamic dimension");
		}
		if (shape[i] > 0 &&
		        (__builtin_mul_overflow(elements, shape[i], &elements) ||
		                elements > ELEMENTS_MOST)) {
			read_error(reader, "type %s is too large", print_type(reader->arena, type));
			return diag_note(reader->diag, "accepted are up to 2^53 elements");
		}
	}
	return true;
}

static const struct type *read_shaped(struct reader *reader, MlirType type)
{
	if (!plain_layout(type) || mlirShapedTypeGetRank(type) > RANK_MOST)
		return type_refused(reader, type);
	int rank = (int)mlirShapedTypeGetRank(type);
	enum type_kind kind = mlirTypeIsAVector(type) ? TYPE_VECTOR : TYPE_MEMREF;
	if (mlirTypeIsARankedTensor(type))
		kind = TYPE_TENSOR;
	int64_t shape[RANK_MOST];
	if (!read_shape(reader, type, shape, rank))
		return NULL;
	const struct type *element = read_type(reader, mlirShapedTypeGetElementType(type));
	return element ? type_shaped(reader->module, kind, rank, shape, element) : NULL;
}

static const struct type *read_function(struct reader *reader, MlirType type)
{
	int inputs = (int)mlirFunctionTypeGetNumInputs(type);
	int outputs = (int)mlirFunctionTypeGetNumResults(type);
	const struct type **input = ARENA_ARRAY(reader->arena, const struct type *, inputs);
	const struct type **output = ARENA_ARRAY(reader->arena, const struct type *, outputs);
	bool good = true;
	for (int i = 0; i < inputs; i++)
		good = (input[i] = read_type(reader, mlirFunctionTypeGetInput(type, i))) && good;
	for (int i = 0; i < outputs; i++)
		good = (output[i] = read_type(reader, mlirFunctionTypeGetResult(type, i))) && good;
	return good ? type_function(reader->module, inputs, input, outputs, output) : NULL;
}

static const struct type *read_channel(
        struct reader *reader, enum type_kind kind, MlirAttribute parameters)
{
	if (mlirArrayAttrGetNumElements(parameters) != 2)
		return NULL;
	MlirAttribute word = mlirArrayAttrGetElement(parameters, 0);
	MlirAttribute depth = mlirArrayAttrGetElement(parameters, 1);
	if (!mlirAttributeIsAType(word) || !mlirAttributeIsAInteger(depth) ||
	        !read_number(reader, mlirAttributeGetType(depth)))
		return NULL;
	int64_t words = mlirIntegerAttrGetValueInt(depth);
	const struct type *element = read_type(reader, mlirTypeAttrGetValue(word));
	return element && words > 0 && words <= ELEMENTS_MOST
	        ? type_channel(reader->module, kind, element, words)
	        : NULL;
}

static bool starts(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

/* `!stream.NAME<PARAMETERS>`: the parameters, in brackets, are an array attribute. */
static const struct type *read_stream(struct reader *reader, const char *text)
{
	const char *open = strchr(text, '<');
	if (!open || text[strlen(text) - 1] != '>')
		return NULL;
	char *list = text_format(reader->arena, "[%s", resolve_aliases(reader, open + 1));
	list[strlen(list) - 1] = ']';
	reader->parsing_type = text;
	MlirAttribute parameters =
	        mlirAttributeParseGet(reader->context, mlirStringRefCreateFromCString(list));
	reader->parsing_type = NULL;
	if (mlirAttributeIsNull(parameters) || !mlirAttributeIsAArray(parameters))
		return NULL;
	if (starts(text, "!stream.itensor<"))
		return read_itensor(reader, parameters);
	if (starts(text, "!stream.fifo<"))
		return read_channel(reader, TYPE_FIFO, parameters);
	return starts(text, "!stream.block_channel<")
	        ? read_channel(reader, TYPE_BLOCKS, parameters)
	        : NULL;
}

static const struct type *read_dialect(struct reader *reader, MlirType type)
{
	const char *text = print_type(reader->arena, type);
	int errors = reader->diag->count;
	const struct type *result =
	        reader->own && starts(text, "!stream.") ? read_stream(reader, text) : NULL;
	return result || reader->diag->count != errors ? result : type_refused(reader, type);
}

static const struct type *read_fresh(struct reader *reader, MlirType type)
{
	const struct type *number = read_number(reader, type);
	if (number)
		return number;
	if (mlirTypeIsAVector(type) || mlirTypeIsARankedTensor(type) || mlirTypeIsAMemRef(type))
		return read_shaped(reader, type);
	if (mlirTypeIsAFunction(type))
		return read_function(reader, type);
	return mlirTypeIsAOpaque(type) ? read_dialect(reader, type) : type_refused(reader, type);
}

const struct type *read_type(struct reader *reader, MlirType type)
{
	const struct pointer_entry *known = pointer_find(&reader->types, type.ptr);
	if (known)
		return known->value;
	const struct type *result = read_fresh(reader, type);
	reader->failed |= !result;
	pointer_set(&reader->types, type.ptr, result);
	return result;
}
