/* The comparison predicates of arith.cmpi and arith.cmpf in MLIR's numbering: values of the
 * attribute `predicate` and, in bodies of kernels, of node.integer. */
#ifndef STC_PREDICATE_H
#define STC_PREDICATE_H

/* of arith.cmpi; S: signed, U: unsigned */
enum integer_predicate {
	CMPI_EQ,
	CMPI_NE,
	CMPI_SLT,
	CMPI_SLE,
	CMPI_SGT,
	CMPI_SGE,
	CMPI_ULT,
	CMPI_ULE,
	CMPI_UGT,
	CMPI_UGE,
	INTEGER_PREDICATES
};

/* of arith.cmpf; O: false where an operand is NaN, U: true there; ORD: none is, UNO: one is */
enum float_predicate {
	CMPF_FALSE,
	CMPF_OEQ,
	CMPF_OGT,
	CMPF_OGE,
	CMPF_OLT,
	CMPF_OLE,
	CMPF_ONE,
	CMPF_ORD,
	CMPF_UEQ,
	CMPF_UGT,
	CMPF_UGE,
	CMPF_ULT,
	CMPF_ULE,
	CMPF_UNE,
	CMPF_UNO,
	CMPF_TRUE,
	FLOAT_PREDICATES
};

#endif
