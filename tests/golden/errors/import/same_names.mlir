// stc compile --platform u55c -o %o
func.func @main(%a: tensor<4xf32> {stream.name = "x"}, %b: tensor<4xf32> {stream.name = "x"}) -> tensor<4xf32> {
  return %a : tensor<4xf32>
}
