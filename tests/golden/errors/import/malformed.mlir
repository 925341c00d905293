// stc compile --platform u55c -o %o
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = linalg.generic {indexing_maps = [#missing], iterator_types = ["parallel"]} ins(%a : tensor<4xf32>
  return %a : tensor<4xf32>
}
