// stc compile --platform u55c -o %o
func.func @main(%a: tensor<1000000x1000000x1000000xf32>) -> tensor<1000000x1000000x1000000xf32> {
  return %a : tensor<1000000x1000000x1000000xf32>
}
