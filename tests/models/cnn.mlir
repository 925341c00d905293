#map = affine_map<(d0) -> (d0)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map2 = affine_map<(d0, d1, d2, d3) -> (d1, 0, 0)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d0, d1, 0, 0)>
#map4 = affine_map<(d0, d1) -> (d0, d1)>
#map5 = affine_map<(d0, d1) -> (d1)>
module {
  func.func @main(%arg0: tensor<1x3x16x16xf32> {stream.name = "arg0", stream.role = "input"}, %arg1: tensor<8x3x3x3xf32> {stream.name = "0.weight", stream.role = "weight"}, %arg2: tensor<8xf32> {stream.name = "0.bias", stream.role = "weight"}, %arg3: tensor<8xf32> {stream.name = "1.weight", stream.role = "weight"}, %arg4: tensor<8xf32> {stream.name = "1.bias", stream.role = "weight"}, %arg5: tensor<16x8x3x3xf32> {stream.name = "4.weight", stream.role = "weight"}, %arg6: tensor<16xf32> {stream.name = "4.bias", stream.role = "weight"}, %arg7: tensor<10x16xf32> {stream.name = "8.weight", stream.role = "weight"}, %arg8: tensor<10xf32> {stream.name = "8.bias", stream.role = "weight"}, %arg9: tensor<8xf32> {stream.name = "1.running_mean", stream.role = "weight"}, %arg10: tensor<8xf32> {stream.name = "1.running_var", stream.role = "weight"}) -> (tensor<1x10xf32> {stream.name = "result0", stream.role = "output"}) {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 1.000000e+00 : f32
    %cst_1 = arith.constant 0xFF800000 : f32
    %cst_2 = arith.constant 1.000000e-05 : f64
    %cst_3 = arith.constant 1.600000e+01 : f32
    %padded = tensor.pad %arg0 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg11: index, %arg12: index, %arg13: index, %arg14: index):
      tensor.yield %cst : f32
    } : tensor<1x3x16x16xf32> to tensor<1x3x18x18xf32>
    %0 = tensor.empty() : tensor<1x8x16x16xf32>
    %broadcasted = linalg.broadcast ins(%arg2 : tensor<8xf32>) outs(%0 : tensor<1x8x16x16xf32>) dimensions = [0, 2, 3] 
    %1 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%padded, %arg1 : tensor<1x3x18x18xf32>, tensor<8x3x3x3xf32>) outs(%broadcasted : tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32>
    %2 = tensor.empty() : tensor<8xf32>
    %3 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg10 : tensor<8xf32>) outs(%2 : tensor<8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %27 = arith.truncf %cst_2 : f64 to f32
      %28 = arith.addf %in, %27 : f32
      linalg.yield %28 : f32
    } -> tensor<8xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%3 : tensor<8xf32>) outs(%2 : tensor<8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %27 = math.sqrt %in : f32
      linalg.yield %27 : f32
    } -> tensor<8xf32>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%4 : tensor<8xf32>) outs(%2 : tensor<8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %27 = arith.cmpf one, %in, %cst : f32
      cf.assert %27, "unimplemented: tensor with zero element"
      %28 = arith.divf %cst_0, %in : f32
      linalg.yield %28 : f32
    } -> tensor<8xf32>
    %expanded = tensor.expand_shape %arg9 [[0, 1, 2]] output_shape [8, 1, 1] : tensor<8xf32> into tensor<8x1x1xf32>
    %expanded_4 = tensor.expand_shape %5 [[0, 1, 2]] output_shape [8, 1, 1] : tensor<8xf32> into tensor<8x1x1xf32>
    %6 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%1, %expanded : tensor<1x8x16x16xf32>, tensor<8x1x1xf32>) outs(%0 : tensor<1x8x16x16xf32>) {
    ^bb0(%in: f32, %in_9: f32, %out: f32):
      %27 = arith.subf %in, %in_9 : f32
      linalg.yield %27 : f32
    } -> tensor<1x8x16x16xf32>
    %7 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%6, %expanded_4 : tensor<1x8x16x16xf32>, tensor<8x1x1xf32>) outs(%0 : tensor<1x8x16x16xf32>) {
    ^bb0(%in: f32, %in_9: f32, %out: f32):
      %27 = arith.mulf %in, %in_9 : f32
      linalg.yield %27 : f32
    } -> tensor<1x8x16x16xf32>
    %expanded_5 = tensor.expand_shape %arg3 [[0, 1, 2]] output_shape [8, 1, 1] : tensor<8xf32> into tensor<8x1x1xf32>
    %8 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%7, %expanded_5 : tensor<1x8x16x16xf32>, tensor<8x1x1xf32>) outs(%0 : tensor<1x8x16x16xf32>) {
    ^bb0(%in: f32, %in_9: f32, %out: f32):
      %27 = arith.mulf %in, %in_9 : f32
      linalg.yield %27 : f32
    } -> tensor<1x8x16x16xf32>
    %expanded_6 = tensor.expand_shape %arg4 [[0, 1, 2]] output_shape [8, 1, 1] : tensor<8xf32> into tensor<8x1x1xf32>
    %9 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%8, %expanded_6 : tensor<1x8x16x16xf32>, tensor<8x1x1xf32>) outs(%0 : tensor<1x8x16x16xf32>) {
    ^bb0(%in: f32, %in_9: f32, %out: f32):
      %27 = arith.addf %in, %in_9 : f32
      linalg.yield %27 : f32
    } -> tensor<1x8x16x16xf32>
    %10 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%9 : tensor<1x8x16x16xf32>) outs(%0 : tensor<1x8x16x16xf32>) {
    ^bb0(%in: f32, %out: f32):
      %27 = arith.cmpf ugt, %in, %cst : f32
      %28 = arith.select %27, %in, %cst : f32
      linalg.yield %28 : f32
    } -> tensor<1x8x16x16xf32>
    %11 = tensor.empty() : tensor<1x8x8x8xf32>
    %12 = linalg.fill ins(%cst_1 : f32) outs(%11 : tensor<1x8x8x8xf32>) -> tensor<1x8x8x8xf32>
    %13 = tensor.empty() : tensor<2x2xf32>
    %14 = linalg.pooling_nchw_max {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%10, %13 : tensor<1x8x16x16xf32>, tensor<2x2xf32>) outs(%12 : tensor<1x8x8x8xf32>) -> tensor<1x8x8x8xf32>
    %padded_7 = tensor.pad %14 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg11: index, %arg12: index, %arg13: index, %arg14: index):
      tensor.yield %cst : f32
    } : tensor<1x8x8x8xf32> to tensor<1x8x10x10xf32>
    %15 = tensor.empty() : tensor<1x16x4x4xf32>
    %broadcasted_8 = linalg.broadcast ins(%arg6 : tensor<16xf32>) outs(%15 : tensor<1x16x4x4xf32>) dimensions = [0, 2, 3] 
    %16 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%padded_7, %arg5 : tensor<1x8x10x10xf32>, tensor<16x8x3x3xf32>) outs(%broadcasted_8 : tensor<1x16x4x4xf32>) -> tensor<1x16x4x4xf32>
    %17 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%16 : tensor<1x16x4x4xf32>) outs(%15 : tensor<1x16x4x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %27 = arith.cmpf ugt, %in, %cst : f32
      %28 = arith.select %27, %in, %cst : f32
      linalg.yield %28 : f32
    } -> tensor<1x16x4x4xf32>
    %18 = tensor.empty() : tensor<1x16x1x1xf32>
    %19 = linalg.fill ins(%cst : f32) outs(%18 : tensor<1x16x1x1xf32>) -> tensor<1x16x1x1xf32>
    %20 = linalg.generic {indexing_maps = [#map1, #map3], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%17 : tensor<1x16x4x4xf32>) outs(%19 : tensor<1x16x1x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %27 = arith.addf %in, %out : f32
      linalg.yield %27 : f32
    } -> tensor<1x16x1x1xf32>
    %21 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%20 : tensor<1x16x1x1xf32>) outs(%18 : tensor<1x16x1x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %27 = arith.divf %in, %cst_3 : f32
      linalg.yield %27 : f32
    } -> tensor<1x16x1x1xf32>
    %collapsed = tensor.collapse_shape %21 [[0], [1, 2, 3]] : tensor<1x16x1x1xf32> into tensor<1x16xf32>
    %22 = tensor.empty() : tensor<16x10xf32>
    %transposed = linalg.transpose ins(%arg7 : tensor<10x16xf32>) outs(%22 : tensor<16x10xf32>) permutation = [1, 0] 
    %23 = tensor.empty() : tensor<1x10xf32>
    %24 = linalg.fill ins(%cst : f32) outs(%23 : tensor<1x10xf32>) -> tensor<1x10xf32>
    %25 = linalg.matmul ins(%collapsed, %transposed : tensor<1x16xf32>, tensor<16x10xf32>) outs(%24 : tensor<1x10xf32>) -> tensor<1x10xf32>
    %26 = linalg.generic {indexing_maps = [#map4, #map5, #map4], iterator_types = ["parallel", "parallel"]} ins(%25, %arg8 : tensor<1x10xf32>, tensor<10xf32>) outs(%23 : tensor<1x10xf32>) {
    ^bb0(%in: f32, %in_9: f32, %out: f32):
      %27 = arith.addf %in, %in_9 : f32
      linalg.yield %27 : f32
    } -> tensor<1x10xf32>
    return %26 : tensor<1x10xf32>
  }
}
