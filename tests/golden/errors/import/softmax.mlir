// stc compile --platform u55c -o %o
func.func @main(%a: tensor<2x4xf32>, %b: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %0 = linalg.softmax dimension(1) ins(%a : tensor<2x4xf32>) outs(%b : tensor<2x4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}
