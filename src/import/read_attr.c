/* Reads MLIR attributes. Attributes that the compiler does not interpret are stored as the text
 * that MLIR prints. */
#include "import/read.h"
#include <string.h>

static const struct attr *keep(struct reader *reader, struct attr attr)
{
	return arena_copy(reader->arena, &attr, sizeof attr);
}

static const struct attr *read_opaque(struct reader *reader, MlirAttribute attribute)
{
	return keep(reader,
	        (struct attr){ .kind = ATTR_OPAQUE, .text = print_attr(reader->arena, attribute) });
}

static bool is_number(const struct type *type)
{
	return type && (type_is_whole(type) || type_is_real(type));
}

static const struct attr *read_integer(struct reader *reader, MlirAttribute attribute)
{
	if (mlirAttributeIsABool(attribute))
		return attr_bool(reader->module, mlirBoolAttrGetValue(attribute));
	const struct type *type = read_type(reader, mlirAttributeGetType(attribute));
	return is_number(type)
	        ? attr_typed_integer(reader->module, mlirIntegerAttrGetValueInt(attribute), type)
	        : NULL;
}

static const struct attr *read_float(struct reader *reader, MlirAttribute attribute)
{
	const struct type *type = read_type(reader, mlirAttributeGetType(attribute));
	return is_number(type)
	        ? attr_float(reader->module, mlirFloatAttrGetValueDouble(attribute), type)
	        : NULL;
}

static const struct attr *read_array(struct reader *reader, MlirAttribute attribute)
{
	int count = (int)mlirArrayAttrGetNumElements(attribute);
	const struct attr **items = ARENA_ARRAY(reader->arena, const struct attr *, count);
	for (int i = 0; i < count; i++)
		if (!(items[i] = read_attr(reader, mlirArrayAttrGetElement(attribute, i))))
			return NULL;
	return attr_array(reader->module, count, items);
}

static const struct attr *read_dictionary(struct reader *reader, MlirAttribute attribute)
{
	int count = (int)mlirDictionaryAttrGetNumElements(attribute);
	struct named *items = ARENA_ARRAY(reader->arena, struct named, count);
	for (int i = 0; i < count; i++) {
		MlirNamedAttribute item = mlirDictionaryAttrGetElement(attribute, i);
		items[i].name = copy_string(reader->arena, mlirIdentifierStr(item.name));
		items[i].value = read_attr(reader, item.attribute);
		if (!items[i].value)
			return NULL;
	}
	return attr_dictionary(reader->module, count, items);
}

static int64_t bool_at(MlirAttribute attribute, intptr_t i)
{
	return mlirDenseBoolArrayGetElement(attribute, i);
}
static int64_t i8_at(MlirAttribute attribute, intptr_t i)
{
	return mlirDenseI8ArrayGetElement(attribute, i);
}
static int64_t i16_at(MlirAttribute attribute, intptr_t i)
{
	return mlirDenseI16ArrayGetElement(attribute, i);
}
static int64_t i32_at(MlirAttribute attribute, intptr_t i)
{
	return mlirDenseI32ArrayGetElement(attribute, i);
}
static int64_t i64_at(MlirAttribute attribute, intptr_t i)
{
	return mlirDenseI64ArrayGetElement(attribute, i);
}

static const struct integers_kind {
	bool (*is)(MlirAttribute attribute);
	int64_t (*at)(MlirAttribute attribute, intptr_t i);
	int width;
} integers_kind[] = {
	{ mlirAttributeIsADenseI64Array, i64_at, 64 },
	{ mlirAttributeIsADenseI32Array, i32_at, 32 },
	{ mlirAttributeIsADenseBoolArray, bool_at, 1 },
	{ mlirAttributeIsADenseI8Array, i8_at, 8 },
	{ mlirAttributeIsADenseI16Array, i16_at, 16 },
};

static const struct integers_kind *integers_kind_of(MlirAttribute attribute)
{
	for (size_t i = 0; i < sizeof integers_kind / sizeof *integers_kind; i++)
		if (integers_kind[i].is(attribute))
			return &integers_kind[i];
	return NULL;
}

static const struct attr *read_integers(
        struct reader *reader, MlirAttribute attribute, const struct integers_kind *kind)
{
	int count = (int)mlirDenseArrayGetNumElements(attribute);
	int64_t *integers = ARENA_ARRAY(reader->arena, int64_t, count);
	for (int i = 0; i < count; i++)
		integers[i] = kind->at(attribute, i);
	return keep(reader,
	        (struct attr){ .kind = ATTR_INTEGERS,
	                .type = type_integer(reader->module, kind->width),
	                .count = count,
	                .integers = integers });
}

static size_t element_bytes(const struct type *type)
{
	const struct type *element = type_scalar(type);
	return element->kind == TYPE_INDEX ? 8 : (size_t)(element->width + 7) / 8;
}

/* MLIR packs i1 elements into bits; the IR has a byte for each. */
static const void *read_bits(struct reader *reader, MlirAttribute attribute, size_t count)
{
	unsigned char *data = arena_alloc(reader->arena, count);
	for (size_t i = 0; i < count; i++)
		data[i] = mlirDenseElementsAttrIsSplat(attribute)
		        ? mlirDenseElementsAttrGetBoolSplatValue(attribute) != 0
		        : mlirDenseElementsAttrGetBoolValue(attribute, (intptr_t)i);
	return data;
}

static const struct attr *read_dense(struct reader *reader, MlirAttribute attribute)
{
	const struct type *type = read_type(reader, mlirAttributeGetType(attribute));
	if (!type)
		return NULL;
	struct attr attr = {
		.kind = ATTR_DENSE, .type = type, .splat = mlirDenseElementsAttrIsSplat(attribute)
	};
	size_t count = attr.splat ? 1 : (size_t)mlirElementsAttrGetNumElements(attribute);
	attr.bytes = count * element_bytes(type);
	if (type_scalar(type)->width == 1)
		attr.data = read_bits(reader, attribute, count);
	else
		attr.data = count ? arena_copy(reader->arena,
		                            mlirDenseElementsAttrGetRawData(attribute), attr.bytes)
		                  : "";
	return keep(reader, attr);
}

/* `dense_resource<KEY> : TYPE`; the blob is taken from the text, because the C API returns single
 * elements and checks nothing. */
static const struct attr *read_blob(struct reader *reader, MlirAttribute attribute)
{
	const struct type *type = read_type(reader, mlirAttributeGetType(attribute));
	if (!type)
		return NULL;
	struct attr attr = { .kind = ATTR_DENSE,
		.type = type,
		.bytes = (size_t)type_elements(type) * element_bytes(type) };
	const char *printed = print_attr(reader->arena, attribute);
	const char *open = strchr(printed, '<');
	const char *close = open ? strchr(open, '>') : NULL;
	if (!close)
		return read_opaque(reader, attribute);
	const char *key = text_copy(reader->arena, open + 1, (size_t)(close - open - 1));
	return read_resource(reader, key, attr.bytes, &attr) ? keep(reader, attr) : NULL;
}

static bool is_dense(MlirAttribute attribute)
{
	return mlirAttributeIsADenseIntElements(attribute) ||
	        mlirAttributeIsADenseFPElements(attribute);
}

static const struct attr *read_builtin(struct reader *reader, MlirAttribute attribute)
{
	struct module *module = reader->module;
	struct affine_map map;
	const struct integers_kind *kind = integers_kind_of(attribute);
	if (mlirAttributeIsAUnit(attribute))
		return attr_unit(module);
	if (mlirAttributeIsAString(attribute))
		return attr_string(
		        module, copy_string(reader->arena, mlirStringAttrGetValue(attribute)));
	if (mlirAttributeIsAFlatSymbolRef(attribute))
		return attr_symbol(module,
		        copy_string(reader->arena, mlirFlatSymbolRefAttrGetValue(attribute)));
	if (mlirAttributeIsAType(attribute)) {
		const struct type *type = read_type(reader, mlirTypeAttrGetValue(attribute));
		return type ? attr_type(module, type) : NULL;
	}
	if (mlirAttributeIsAAffineMap(attribute))
		return read_map(reader, mlirAffineMapAttrGetValue(attribute), &map)
		        ? attr_map(module, map)
		        : NULL;
	return kind ? read_integers(reader, attribute, kind) : read_opaque(reader, attribute);
}

static const struct attr *read_fresh(struct reader *reader, MlirAttribute attribute)
{
	if (mlirAttributeIsAInteger(attribute))
		return read_integer(reader, attribute);
	if (mlirAttributeIsAFloat(attribute))
		return read_float(reader, attribute);
	if (mlirAttributeIsAArray(attribute))
		return read_array(reader, attribute);
	if (mlirAttributeIsADictionary(attribute))
		return read_dictionary(reader, attribute);
	if (mlirAttributeIsADenseResourceElements(attribute))
		return read_blob(reader, attribute);
	return is_dense(attribute) ? read_dense(reader, attribute)
	                           : read_builtin(reader, attribute);
}

const struct attr *read_attr(struct reader *reader, MlirAttribute attribute)
{
	const struct pointer_entry *known = pointer_find(&reader->attributes, attribute.ptr);
	if (known)
		return known->value;
	if (reader->depth >= SCAN_DEPTH_MOST) {
		read_error(reader, "attributes are nested deeper than %d", SCAN_DEPTH_MOST);
		return NULL;
	}
	reader->depth++;
	const struct attr *result = read_fresh(reader, attribute);
	reader->depth--;
	reader->failed |= !result;
	pointer_set(&reader->attributes, attribute.ptr, result);
	return result;
}
