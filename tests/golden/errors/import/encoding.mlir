// stc compile --platform u55c -o %o
func.func @main(%a: tensor<4xf32, "packed">) -> tensor<4xf32, "packed"> {
  return %a : tensor<4xf32, "packed">
}
