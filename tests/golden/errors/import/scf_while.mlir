// stc compile --platform u55c -o %o
func.func @main(%a: tensor<i64>) -> tensor<i64> {
  %0 = scf.while (%x = %a) : (tensor<i64>) -> tensor<i64> {
    %v = tensor.extract %x[] : tensor<i64>
    %ten = arith.constant 10 : i64
    %c = arith.cmpi slt, %v, %ten : i64
    scf.condition(%c) %x : tensor<i64>
  } do {
  ^bb0(%x: tensor<i64>):
    %s = arith.addi %x, %x : tensor<i64>
    scf.yield %s : tensor<i64>
  }
  return %0 : tensor<i64>
}
