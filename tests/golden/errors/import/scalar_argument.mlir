// stc compile --platform u55c -o %o
func.func @main(%a: tensor<4xf32>, %s: f32) -> tensor<4xf32> {
  return %a : tensor<4xf32>
}
