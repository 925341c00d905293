// stc compile --platform u55c -o %o
func.func @main(%a: tensor<100000x100000xf32>) -> tensor<100000x100000xf32> {
  %0 = math.exp %a : tensor<100000x100000xf32>
  return %0 : tensor<100000x100000xf32>
}
