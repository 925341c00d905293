// stc compile --platform u55c -o %o
func.func @main(%a: tensor<4xf32>, %b: tensor<4xf64>) -> tensor<4xf32> {
  %0 = arith.addf %a, %b : tensor<4xf32>
  return %0 : tensor<4xf32>
}
