/* The MLIR context, its parser and diagnostics, and the passes that normalize models. Unregistered
 * dialects are accepted, so that the reader can name what it rejects; the stream dialect is one of
 * them. */
#include "import/read.h"
#include <mlir-c/Diagnostics.h>
#include <mlir-c/Dialect/Linalg.h>
#include <mlir-c/Pass.h>
#include <mlir-c/RegisterEverything.h>
#include <mlir-c/Transforms.h>
#include <string.h>

/* What is accepted instead of what MLIR's parser rejects. */
static void note_of_parser(struct reader *reader, const char *message)
{
	if (strstr(message, "not found for custom op"))
		note_accepted(reader);
	else if (strstr(message, "undeclared SSA value"))
		diag_note(reader->diag,
		        "accepted is an argument of the function or block, or the "
		        "result of an operation above");
}

static MlirLogicalResult take_diagnostic(MlirDiagnostic diagnostic, void *data)
{
	struct reader *reader = data;
	if (mlirDiagnosticGetSeverity(diagnostic) != MlirDiagnosticError)
		return mlirLogicalResultSuccess();
	struct text text = text_new(reader->arena);
	mlirDiagnosticPrint(diagnostic, append_text, &text);
	while (text.size && text.data[text.size - 1] == ' ')
		text.data[--text.size] = 0;
	reader->failed = true;
	const char *message = text.size ? text.data : "malformed MLIR";
	if (reader->parsing_type)
		diag_error(reader->diag, reader->at, "type %s: %s", reader->parsing_type, message);
	else
		diag_error(reader->diag,
		        read_location(reader, mlirDiagnosticGetLocation(diagnostic)), "%s",
		        message);
	note_of_parser(reader, message);
	return mlirLogicalResultSuccess();
}

MlirModule import_parse(struct reader *reader)
{
	MlirDialectRegistry registry = mlirDialectRegistryCreate();
	mlirRegisterAllDialects(registry);
	reader->context = mlirContextCreateWithRegistry(registry, false);
	mlirDialectRegistryDestroy(registry);
	mlirContextSetAllowUnregisteredDialects(reader->context, true);
	mlirContextAttachDiagnosticHandler(reader->context, take_diagnostic, reader, NULL);
	int errors = reader->diag->count;
	MlirModule module = mlirModuleCreateParse(
	        reader->context, mlirStringRefCreate(reader->text, reader->size));
	if (mlirModuleIsNull(module) && reader->diag->count == errors)
		diag_error(reader->diag, (struct location){ .file = reader->file },
		        "this is no MLIR module");
	return module;
}

/* Run-time checks are dropped, since indices are clamped instead. The canonicalizer removes what
 * only they use. */
struct asserts {
	struct arena *arena;
	VEC(MlirOperation) ops;
};

static MlirWalkResult collect_assert(MlirOperation operation, void *data)
{
	struct asserts *asserts = data;
	MlirStringRef name = mlirIdentifierStr(mlirOperationGetName(operation));
	if (op_code_of(name.data, name.length) == OP_ASSERT)
		VEC_PUSH(asserts->arena, &asserts->ops, operation);
	return MlirWalkResultAdvance;
}

static void drop_asserts(struct reader *reader, MlirOperation module)
{
	struct asserts asserts = { .arena = reader->arena };
	mlirOperationWalk(module, collect_assert, &asserts, MlirWalkPreOrder);
	for (size_t i = 0; i < asserts.ops.count; i++)
		mlirOperationDestroy(asserts.ops.data[i]);
}

bool import_normalise(struct reader *reader, MlirModule module)
{
	MlirOperation operation = mlirModuleGetOperation(module);
	drop_asserts(reader, operation);
	MlirPassManager passes = mlirPassManagerCreate(reader->context);
	MlirOpPassManager functions =
	        mlirPassManagerGetNestedUnder(passes, mlirStringRefCreateFromCString("func.func"));
	mlirOpPassManagerAddOwnedPass(functions, mlirCreateLinalgConvertElementwiseToLinalgPass());
	mlirOpPassManagerAddOwnedPass(functions, mlirCreateLinalgLinalgGeneralizeNamedOpsPass());
	mlirPassManagerAddOwnedPass(passes, mlirCreateTransformsCanonicalizer());
	mlirPassManagerAddOwnedPass(passes, mlirCreateTransformsCSE());
	mlirPassManagerAddOwnedPass(passes, mlirCreateTransformsSymbolDCE());
	/* the input was verified when it was parsed */
	mlirPassManagerEnableVerifier(passes, false);
	bool good = mlirLogicalResultIsSuccess(mlirPassManagerRunOnOp(passes, operation));
	mlirPassManagerDestroy(passes);
	return good;
}
