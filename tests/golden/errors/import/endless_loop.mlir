// stc check
// The loop has lost its condition, and would run to the largest integer.
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %low = arith.constant 0 : index
  %step = arith.constant 1 : index
  %high = arith.constant 9223372036854775807 : index
  %y = scf.for %i = %low to %high step %step iter_args(%z = %x) -> (tensor<4xf32>) {
    %e = tensor.empty() : tensor<4xf32>
    %w = linalg.add ins(%z, %z : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %w : tensor<4xf32>
  }
  return %y : tensor<4xf32>
}
