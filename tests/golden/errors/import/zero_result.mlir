// stc compile --platform u55c -o %o
func.func @main(%a: tensor<4x0xf32>) -> tensor<4x0xf32> {
  return %a : tensor<4x0xf32>
}
