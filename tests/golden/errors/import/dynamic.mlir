// stc compile --platform u55c -o %o
func.func @main(%a: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %0 = math.exp %a : tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}
