#map = affine_map<(d0, d1, d2) -> (d0 * 16 + d2)>
#map1 = affine_map<(d0, d1, d2) -> (d1 * 16 + d2)>
#map2 = affine_map<(d0, d1, d2) -> (d0 * 32 + d1)>
module attributes {stream.level = "stream"} {
  func.func @main(%arg0: tensor<8x16xf32> {stream.name = "x", stream.role = "input"}, %arg1: tensor<32x16xf32> {stream.name = "w", stream.role = "weight"}, %arg2: tensor<1xi64> {stream.name = "p", stream.role = "input"}) {
    %0 = "stream.load"(%arg0) {operand_segment_sizes = array<i32: 1, 0>, tensor = tensor<8x16xf32>} : (tensor<8x16xf32>) -> !stream.itensor<vector<1x16xf32>, [8, 1], [1, 16], affine_map<(d0, d1) -> (d0, d1)>>
    %1 = "stream.load"(%arg1) {operand_segment_sizes = array<i32: 1, 0>, tensor = tensor<32x16xf32>} : (tensor<32x16xf32>) -> !stream.itensor<vector<1x16xf32>, [8, 28], [1, 1], affine_map<(d0, d1) -> (d1, d0 + 1)>>
    %2 = "stream.kernel"(%0, %1) {access = [#map, #map1], combine = "arith.addf", guards = [array<i64: 1, 2, 0, 8>, array<i64: 1, 0, 1, 8>], init = 0.000000e+00 : f32, initiation_interval = 2 : i64, lanes = 16 : i64, loops = array<i64: 8, 32, 16>, name = "k3", operand_segment_sizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, post = @k3.post, reduction = array<i64: 0, 0, 1>, result = #map2, scheduled, tensor = tensor<8x32xf32>, update = @k3.update} : (!stream.itensor<vector<1x16xf32>, [8, 1], [1, 16], affine_map<(d0, d1) -> (d0, d1)>>, !stream.itensor<vector<1x16xf32>, [8, 28], [1, 1], affine_map<(d0, d1) -> (d1, d0 + 1)>>) -> !stream.itensor<f32, [256], [1], affine_map<(d0) -> (d0)>>
    "stream.store"(%2) {operand_segment_sizes = array<i32: 1, 0, 0>, result = array<i64: 0>, tensor = tensor<8x32xf32>} : (!stream.itensor<f32, [256], [1], affine_map<(d0) -> (d0)>>) -> ()
    return
  }
  func.func private @k3.update(%arg0: f32, %arg1: f32, %arg2: f32) -> f32 {
    %0 = arith.mulf %arg0, %arg1 : f32
    %cst = arith.constant 2.500000e+00 : f32
    %1 = "stream.index"() {loop = 1 : i64} : () -> index
    %c3 = arith.constant 3 : index
    %2 = arith.cmpi slt, %1, %c3 : index
    %3 = arith.select %2, %0, %cst : f32
    %4 = arith.addf %arg2, %3 : f32
    return %4 : f32
  }
  func.func private @k3.post(%arg0: f32, %arg1: f32, %arg2: f32) -> f32 {
    %0 = math.exp %arg2 : f32
    return %0 : f32
  }
}

