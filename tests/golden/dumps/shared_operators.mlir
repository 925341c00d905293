// stc compile --kernel-interval 4 --kernel-dsp 1 --kernel-lut 1 --register-tiles none --stop-after share_operators
// The epilogue of the sums has more products than they have: a kernel of its own, of an iteration every four cycles.
func.func @main(%x: tensor<8x16xf32>, %w: tensor<16x4xf32> {stream.role = "weight"}) -> tensor<8x4xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x4xf32>) -> tensor<8x4xf32>
  %sums = linalg.matmul ins(%x, %w : tensor<8x16xf32>, tensor<16x4xf32>) outs(%init : tensor<8x4xf32>) -> tensor<8x4xf32>
  %square = arith.mulf %sums, %sums : tensor<8x4xf32>
  %cube = arith.mulf %square, %sums : tensor<8x4xf32>
  %fourth = arith.mulf %square, %square : tensor<8x4xf32>
  %a = arith.mulf %cube, %fourth : tensor<8x4xf32>
  %b = arith.mulf %a, %sums : tensor<8x4xf32>
  return %b : tensor<8x4xf32>
}
