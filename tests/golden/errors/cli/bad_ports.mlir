// stc compile --platform u55c --operand-ports 99 -o %o
func.func @main(%x: tensor<64xf32>, %w: tensor<64x64xf32>) -> tensor<64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %y = linalg.vecmat ins(%x, %w : tensor<64xf32>, tensor<64x64xf32>) outs(%f : tensor<64xf32>) -> tensor<64xf32>
  %z = math.exp %y : tensor<64xf32>
  return %z : tensor<64xf32>
}
