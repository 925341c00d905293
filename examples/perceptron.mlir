// A perceptron with one hidden layer, y = max(x · w0 + b, 0) · w1, as linalg on tensors.
//   build/stc compile examples/perceptron.mlir -o build/perceptron
// stream.name: how files and the host call a tensor; stream.role: weights are packed with the design, inputs are given at every launch.

#matrix = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>

func.func @main(%x: tensor<8x64xf32> {stream.name = "x"},
                %w0: tensor<64x128xf32> {stream.name = "w0", stream.role = "weight"},
                %b: tensor<128xf32> {stream.name = "b", stream.role = "weight"},
                %w1: tensor<128x32xf32> {stream.name = "w1", stream.role = "weight"}) -> (tensor<8x32xf32> {stream.name = "y"}) {
  %zero = arith.constant 0.0 : f32
  %hidden_empty = tensor.empty() : tensor<8x128xf32>
  %hidden_zero = linalg.fill ins(%zero : f32) outs(%hidden_empty : tensor<8x128xf32>) -> tensor<8x128xf32>
  %product = linalg.matmul ins(%x, %w0 : tensor<8x64xf32>, tensor<64x128xf32>) outs(%hidden_zero : tensor<8x128xf32>) -> tensor<8x128xf32>
  %hidden = linalg.generic {indexing_maps = [#matrix, #row, #matrix], iterator_types = ["parallel", "parallel"]}
      ins(%product, %b : tensor<8x128xf32>, tensor<128xf32>) outs(%hidden_empty : tensor<8x128xf32>) {
  ^bb0(%p: f32, %bias: f32, %unused: f32):
    %sum = arith.addf %p, %bias : f32
    %positive = arith.maximumf %sum, %zero : f32
    linalg.yield %positive : f32
  } -> tensor<8x128xf32>
  %y_empty = tensor.empty() : tensor<8x32xf32>
  %y_zero = linalg.fill ins(%zero : f32) outs(%y_empty : tensor<8x32xf32>) -> tensor<8x32xf32>
  %y = linalg.matmul ins(%hidden, %w1 : tensor<8x128xf32>, tensor<128x32xf32>) outs(%y_zero : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %y : tensor<8x32xf32>
}
