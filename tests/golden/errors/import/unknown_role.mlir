// stc compile --platform u55c -o %o
func.func @main(%a: tensor<4xf32> {stream.role = "parameter"}) -> tensor<4xf32> {
  return %a : tensor<4xf32>
}
