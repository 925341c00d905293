/* Reads affine maps as rows of coefficients. Symbols, floordiv, ceildiv and mod are rejected. */
#include "import/read.h"
#include <mlir-c/AffineExpr.h>
#include <mlir-c/AffineMap.h>

#define DIMS_MOST 64

struct affine_row {
	int dims;
	int64_t *coefficient;
};

static bool add(int64_t *sum, int64_t scale, int64_t value)
{
	int64_t product;
	return !__builtin_mul_overflow(scale, value, &product) &&
	        !__builtin_add_overflow(*sum, product, sum);
}

static bool add_expression(struct affine_row row, MlirAffineExpr expression, int64_t scale)
{
	if (mlirAffineExprIsAConstant(expression))
		return add(&row.coefficient[row.dims], scale,
		        mlirAffineConstantExprGetValue(expression));
	if (mlirAffineExprIsADim(expression))
		return add(&row.coefficient[mlirAffineDimExprGetPosition(expression)], scale, 1);
	if (!mlirAffineExprIsAAdd(expression) && !mlirAffineExprIsAMul(expression))
		return false;
	MlirAffineExpr left = mlirAffineBinaryOpExprGetLHS(expression);
	MlirAffineExpr right = mlirAffineBinaryOpExprGetRHS(expression);
	if (mlirAffineExprIsAAdd(expression))
		return add_expression(row, left, scale) && add_expression(row, right, scale);
	int64_t factor;
	return mlirAffineExprIsAConstant(right) &&
	        !__builtin_mul_overflow(scale, mlirAffineConstantExprGetValue(right), &factor) &&
	        add_expression(row, left, factor);
}

bool read_map(struct reader *reader, MlirAffineMap map, struct affine_map *result)
{
	int dims = (int)mlirAffineMapGetNumDims(map);
	int results = (int)mlirAffineMapGetNumResults(map);
	bool linear =
	        mlirAffineMapGetNumSymbols(map) == 0 && dims <= DIMS_MOST && results <= DIMS_MOST;
	int64_t *rows = affine_rows(reader->arena, dims, results);
	for (int i = 0; linear && i < results; i++) {
		struct affine_row row = { .dims = dims,
			.coefficient = rows + (size_t)i * ((size_t)dims + 1) };
		linear = add_expression(row, mlirAffineMapGetResult(map, i), 1);
	}
	*result = (struct affine_map){ .dims = dims, .results = results, .coefficient = rows };
	if (linear)
		return true;
	struct text text = text_new(reader->arena);
	mlirAffineMapPrint(map, append_text, &text);
	read_error(reader, "map %s is not linear", text.data ? text.data : "()");
	return diag_note(reader->diag,
	        "accepted are sums of loop counters times constants, without symbols, floordiv, "
	        "ceildiv and mod");
}
