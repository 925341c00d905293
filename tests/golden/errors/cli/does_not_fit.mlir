// stc compile --platform small.json --kernel-interval 1 -o %o
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = math.log %a : tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
