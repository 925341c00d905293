// stc compile --to tensor
func.func @main(%p: tensor<1x4x0x16xf32>, %x: tensor<1x4x3x16xf32>) -> tensor<1x4x3x16xf32> {
  %c = tensor.concat dim(2) %p, %x : (tensor<1x4x0x16xf32>, tensor<1x4x3x16xf32>) -> tensor<1x4x3x16xf32>
  %e = tensor.empty() : tensor<1x4x3x16xf32>
  %y = linalg.exp ins(%c : tensor<1x4x3x16xf32>) outs(%e : tensor<1x4x3x16xf32>) -> tensor<1x4x3x16xf32>
  return %y : tensor<1x4x3x16xf32>
}
