// stc compile --platform u55c -o %o
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  return %b : tensor<4xf32>
}
