// stc check
func.func @main(%a: tensor<4x5xf32>) -> tensor<5x4xf32> {
  %e = tensor.empty() : tensor<5x4xf32>
  %t = linalg.transpose ins(%a : tensor<4x5xf32>) outs(%e : tensor<5x4xf32>) permutation = [1, 7]
  return %t : tensor<5x4xf32>
}
