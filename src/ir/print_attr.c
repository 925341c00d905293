/* Prints attributes as MLIR does, with the fewest digits that read back exactly. */
#include "ir/print.h"
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_identifier(const char *name)
{
	if (!isalpha((unsigned char)*name) && *name != '_')
		return false;
	for (; *name; name++)
		if (!isalnum((unsigned char)*name) && !strchr("_$.", *name))
			return false;
	return true;
}

static bool is_plain(char character)
{
	return isprint((unsigned char)character) && character != '"' && character != '\\';
}

void print_string(const char *string, struct text *out)
{
	text_add_bytes(out, "\"", 1);
	for (size_t plain; *string; string += plain ? plain : 1) {
		for (plain = 0; is_plain(string[plain]); plain++) {
		}
		if (plain)
			text_add_bytes(out, string, plain);
		else
			text_add(out, "\\%02X", (unsigned char)*string);
	}
	text_add_bytes(out, "\"", 1);
}

static void print_name(const char *name, struct text *out)
{
	if (is_identifier(name))
		text_add(out, "%s", name);
	else
		print_string(name, out);
}

void print_symbol(const char *symbol, struct text *out)
{
	text_add(out, "@");
	print_name(symbol, out);
}

/* Infinities and NaN are printed as hexadecimal bits. */
static uint64_t special_bits(double value, const struct type *type)
{
	uint64_t sign = signbit(value) ? (uint64_t)1 << (type->width - 1) : 0;
	if (type->width == 64) {
		uint64_t bits;
		memcpy(&bits, &value, sizeof bits);
		return bits;
	}
	if (type->width == 32) {
		float narrow = (float)value;
		uint32_t bits;
		memcpy(&bits, &narrow, sizeof bits);
		return bits;
	}
	if (type->kind == TYPE_BFLOAT)
		return sign | (isnan(value) ? 0x7FC0 : 0x7F80);
	return sign | (isnan(value) ? 0x7E00 : 0x7C00);
}

/* Prints the fewest digits that read back to the same number. */
static void shortest(double value, bool single, char *digits, size_t size)
{
	for (int precision = 1; precision <= 17; precision++) {
		snprintf(digits, size, "%.*g", precision, value);
		double back = strtod(digits, NULL);
		if (single ? (float)back == (float)value : back >= value && back <= value)
			return;
	}
}

static void print_real(double value, const struct type *type, struct text *out)
{
	if (!isfinite(value)) {
		text_add(out, "0x%0*" PRIX64, type->width / 4, special_bits(value, type));
		return;
	}
	char digits[40];
	shortest(value, type->width == 32, digits, sizeof digits);
	const char *exponent = strchr(digits, 'e');
	int mantissa = exponent ? (int)(exponent - digits) : (int)strlen(digits);
	const char *point = strchr(digits, '.') ? "" : ".0";
	text_add(out, "%.*s%s%s", mantissa, digits, point, digits + mantissa);
}

static size_t element_bytes(const struct type *element)
{
	int64_t bits = type_bits(element);
	return bits < 8 ? 1 : (size_t)bits / 8;
}

static void print_element(const void *data, const struct type *element, struct text *out)
{
	uint64_t bits = 0;
	size_t size = element_bytes(element);
	memcpy(&bits, data, size < sizeof bits ? size : sizeof bits);
	if (element->kind == TYPE_FLOAT && element->width == 32) {
		float value;
		memcpy(&value, data, sizeof value);
		print_real((double)value, element, out);
	} else if (element->kind == TYPE_FLOAT && element->width == 64) {
		double value;
		memcpy(&value, data, sizeof value);
		print_real(value, element, out);
	} else if (type_is_real(element)) {
		text_add(out, "0x%04" PRIX64, bits);
	} else if (element->width == 1) {
		text_add(out, bits ? "true" : "false");
	} else {
		int unused = 64 - (int)(8 * size);
		text_add(out, "%" PRId64, (int64_t)(bits << unused) >> unused);
	}
}

static void print_hex(const unsigned char *data, size_t size, struct text *out)
{
	static const char digit[] = "0123456789ABCDEF";
	char chunk[512];
	size_t filled = 0;
	for (size_t i = 0; i < size; i++) {
		chunk[filled++] = digit[data[i] >> 4];
		chunk[filled++] = digit[data[i] & 15];
		if (filled == sizeof chunk || i + 1 == size) {
			text_add_bytes(out, chunk, filled);
			filled = 0;
		}
	}
}

/* MLIR packs i1 elements, lowest bit first. */
static void print_bits(const unsigned char *data, size_t count, struct text *out)
{
	for (size_t i = 0; i < count; i += 8) {
		unsigned char byte = 0;
		for (size_t k = 0; k < 8 && i + k < count; k++)
			byte = (unsigned char)(byte | (data[i + k] ? 1u << k : 0));
		print_hex(&byte, 1, out);
	}
}

/* Equal elements are printed as a splat, as MLIR reads them back as one. */
static bool is_splat(const struct attr *attr, size_t element)
{
	if (attr->splat || attr->bytes <= element)
		return true;
	const char *data = attr->data;
	return !memcmp(data, data + element, attr->bytes - element);
}

static void print_dense(const struct attr *attr, struct text *out)
{
	const struct type *element = attr->type->element;
	size_t size = element_bytes(element);
	int64_t count = type_elements(attr->type);
	text_add(out, "dense<");
	if (count && is_splat(attr, size)) {
		print_element(attr->data, element, out);
	} else if (count) {
		text_add(out, "\"0x");
		if (element->width == 1)
			print_bits(attr->data, (size_t)count, out);
		else
			print_hex(attr->data, attr->bytes, out);
		text_add(out, "\"");
	}
	text_add(out, "> : %s", attr->type->text);
}

static void print_integers(const struct attr *attr, struct text *out)
{
	text_add(out, "array<%s", attr->type->text);
	for (int i = 0; i < attr->count; i++) {
		text_add(out, i ? ", " : ": ");
		if (attr->type->width == 1)
			text_add(out, attr->integers[i] ? "true" : "false");
		else
			text_add(out, "%" PRId64, attr->integers[i]);
	}
	text_add(out, ">");
}

static void print_integer(const struct attr *attr, struct text *out)
{
	if (attr->type->kind == TYPE_INTEGER && attr->type->width == 1)
		text_add(out, attr->integer ? "true" : "false");
	else
		text_add(out, "%" PRId64 " : %s", attr->integer, attr->type->text);
}

static void print_float(const struct attr *attr, struct text *out)
{
	print_real(attr->real, attr->type, out);
	text_add(out, " : %s", attr->type->text);
}

static void print_unit(const struct attr *attr, struct text *out)
{
	(void)attr;
	text_add(out, "unit");
}

static void print_text(const struct attr *attr, struct text *out)
{
	print_string(attr->text, out);
}

static void print_reference(const struct attr *attr, struct text *out)
{
	print_symbol(attr->text, out);
}

static void print_type(const struct attr *attr, struct text *out)
{
	text_add(out, "%s", attr->type->text);
}

static void print_map(const struct attr *attr, struct text *out)
{
	text_add(out, "affine_map<");
	affine_print(attr->map, out);
	text_add(out, ">");
}

static void print_array(const struct attr *attr, struct text *out)
{
	text_add(out, "[");
	for (int i = 0; i < attr->count; i++) {
		text_add(out, "%s", i ? ", " : "");
		attr_print(attr->items[i].value, out);
	}
	text_add(out, "]");
}

static void print_dictionary(const struct attr *attr, struct text *out)
{
	attr_print_items(attr->count, attr->items, out);
}

static void print_opaque(const struct attr *attr, struct text *out)
{
	text_add(out, "%s", attr->text);
}

void attr_print(const struct attr *attr, struct text *out)
{
	static void (*const print[])(const struct attr *, struct text *) = {
		[ATTR_UNIT] = print_unit,
		[ATTR_BOOL] = print_integer,
		[ATTR_INTEGER] = print_integer,
		[ATTR_FLOAT] = print_float,
		[ATTR_STRING] = print_text,
		[ATTR_SYMBOL] = print_reference,
		[ATTR_TYPE] = print_type,
		[ATTR_MAP] = print_map,
		[ATTR_ARRAY] = print_array,
		[ATTR_DICTIONARY] = print_dictionary,
		[ATTR_INTEGERS] = print_integers,
		[ATTR_DENSE] = print_dense,
		[ATTR_OPAQUE] = print_opaque,
	};
	print[attr->kind](attr, out);
}

void attr_print_items(int count, const struct named *items, struct text *out)
{
	text_add(out, "{");
	for (int i = 0; i < count; i++) {
		text_add(out, "%s", i ? ", " : "");
		print_name(items[i].name, out);
		if (items[i].value->kind == ATTR_UNIT)
			continue;
		text_add(out, " = ");
		attr_print(items[i].value, out);
	}
	text_add(out, "}");
}
