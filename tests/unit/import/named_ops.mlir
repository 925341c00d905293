func.func @main(%a: tensor<4x8xf32>, %b: tensor<8x6xf32>, %c: tensor<2x4x8xf32>, %d: tensor<2x8x6xf32>, %img: tensor<1x3x8x8xf32>, %k: tensor<5x3x3x3xf32>, %v: tensor<8xf32>, %i: tensor<4xi64>) -> (tensor<4x6xf32>, tensor<2x4x6xf32>, tensor<1x5x6x6xf32>, tensor<1x3x4x4xf32>, tensor<4xf32>, tensor<4x8xf32>, tensor<8x4xf32>, tensor<4x8xf32>, tensor<4xi64>, tensor<4x8xf32>, tensor<1x4x6x3xf32>, tensor<4xf32>) {
  %z = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<4x6xf32>
  %f0 = linalg.fill ins(%z : f32) outs(%e0 : tensor<4x6xf32>) -> tensor<4x6xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x6xf32>) outs(%f0 : tensor<4x6xf32>) -> tensor<4x6xf32>
  %e1 = tensor.empty() : tensor<2x4x6xf32>
  %f1 = linalg.fill ins(%z : f32) outs(%e1 : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %1 = linalg.batch_matmul ins(%c, %d : tensor<2x4x8xf32>, tensor<2x8x6xf32>) outs(%f1 : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %e2 = tensor.empty() : tensor<1x5x6x6xf32>
  %f2 = linalg.fill ins(%z : f32) outs(%e2 : tensor<1x5x6x6xf32>) -> tensor<1x5x6x6xf32>
  %2 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%img, %k : tensor<1x3x8x8xf32>, tensor<5x3x3x3xf32>) outs(%f2 : tensor<1x5x6x6xf32>) -> tensor<1x5x6x6xf32>
  %w = tensor.empty() : tensor<2x2xf32>
  %e3 = tensor.empty() : tensor<1x3x4x4xf32>
  %f3 = linalg.fill ins(%z : f32) outs(%e3 : tensor<1x3x4x4xf32>) -> tensor<1x3x4x4xf32>
  %3 = linalg.pooling_nchw_sum {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%img, %w : tensor<1x3x8x8xf32>, tensor<2x2xf32>) outs(%f3 : tensor<1x3x4x4xf32>) -> tensor<1x3x4x4xf32>
  %e4 = tensor.empty() : tensor<4xf32>
  %f4 = linalg.fill ins(%z : f32) outs(%e4 : tensor<4xf32>) -> tensor<4xf32>
  %4 = linalg.reduce { arith.addf } ins(%a : tensor<4x8xf32>) outs(%f4 : tensor<4xf32>) dimensions = [1]
  %e5 = tensor.empty() : tensor<4x8xf32>
  %5 = linalg.broadcast ins(%v : tensor<8xf32>) outs(%e5 : tensor<4x8xf32>) dimensions = [0]
  %e6 = tensor.empty() : tensor<8x4xf32>
  %6 = linalg.transpose ins(%a : tensor<4x8xf32>) outs(%e6 : tensor<8x4xf32>) permutation = [1, 0]
  %7 = arith.addf %a, %5 fastmath<fast> : tensor<4x8xf32>
  %8 = arith.addi %i, %i : tensor<4xi64>
  %9 = linalg.exp ins(%7: tensor<4x8xf32>) outs(%e5: tensor<4x8xf32>) -> tensor<4x8xf32>
  %imgt = tensor.empty() : tensor<1x6x8x3xf32>
  %kk = arith.constant dense<0.5> : tensor<3x3x3xf32>
  %e10 = tensor.empty() : tensor<1x4x6x3xf32>
  %f10 = linalg.fill ins(%z : f32) outs(%e10 : tensor<1x4x6x3xf32>) -> tensor<1x4x6x3xf32>
  %10 = linalg.depthwise_conv_2d_nhwc_hwc {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%imgt, %kk : tensor<1x6x8x3xf32>, tensor<3x3x3xf32>) outs(%f10 : tensor<1x4x6x3xf32>) -> tensor<1x4x6x3xf32>
  %11 = linalg.matvec ins(%a, %v : tensor<4x8xf32>, tensor<8xf32>) outs(%f4 : tensor<4xf32>) -> tensor<4xf32>
  return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11 : tensor<4x6xf32>, tensor<2x4x6xf32>, tensor<1x5x6x6xf32>, tensor<1x3x4x4xf32>, tensor<4xf32>, tensor<4x8xf32>, tensor<8x4xf32>, tensor<4x8xf32>, tensor<4xi64>, tensor<4x8xf32>, tensor<1x4x6x3xf32>, tensor<4xf32>
}
