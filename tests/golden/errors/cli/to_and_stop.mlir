// stc compile --to stream --stop-after form_streams
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = math.exp %a : tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
