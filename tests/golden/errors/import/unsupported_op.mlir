// stc compile --platform u55c -o %o
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = math.cbrt %a : tensor<4xf32>
  return %0 : tensor<4xf32>
}
