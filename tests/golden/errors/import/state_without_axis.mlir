// stc compile --platform u55c -o %o
func.func @main(%a: tensor<8x4xf32> {stream.name = "k", stream.role = "state"}, %b: tensor<1x4xf32>) -> (tensor<1x4xf32> {stream.name = "k", stream.role = "state"}) {
  return %b : tensor<1x4xf32>
}
