"builtin.module"() ({
  "func.func"() ({
  ^bb0(%0: tensor<8x16xf32>, %1: tensor<32x16xf32>, %2: tensor<1xi64>):
    %3 = "stream.load"(%0) {operand_segment_sizes = array<i32: 1, 0>, tensor = tensor<8x16xf32>} : (tensor<8x16xf32>) -> !stream.itensor<vector<1x16xf32>, [8, 1], [1, 16], affine_map<(d0, d1) -> (d0, d1)>>
    %4 = "stream.load"(%1) {operand_segment_sizes = array<i32: 1, 0>, tensor = tensor<32x16xf32>} : (tensor<32x16xf32>) -> !stream.itensor<vector<1x16xf32>, [8, 28], [1, 1], affine_map<(d0, d1) -> (d1, d0 + 1)>>
    %5 = "stream.kernel"(%3, %4) {access = [affine_map<(d0, d1, d2) -> (d0 * 16 + d2)>, affine_map<(d0, d1, d2) -> (d1 * 16 + d2)>], combine = "arith.addf", guards = [array<i64: 1, 2, 0, 8>, array<i64: 1, 0, 1, 8>], init = 0.0 : f32, initiation_interval = 2 : i64, lanes = 16 : i64, loops = array<i64: 8, 32, 16>, name = "k3", operand_segment_sizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, post = @k3.post, reduction = array<i64: 0, 0, 1>, result = affine_map<(d0, d1, d2) -> (d0 * 32 + d1)>, scheduled, tensor = tensor<8x32xf32>, update = @k3.update} : (!stream.itensor<vector<1x16xf32>, [8, 1], [1, 16], affine_map<(d0, d1) -> (d0, d1)>>, !stream.itensor<vector<1x16xf32>, [8, 28], [1, 1], affine_map<(d0, d1) -> (d1, d0 + 1)>>) -> !stream.itensor<f32, [256], [1], affine_map<(d0) -> (d0)>>
    "stream.store"(%5) {operand_segment_sizes = array<i32: 1, 0, 0>, result = array<i64: 0>, tensor = tensor<8x32xf32>} : (!stream.itensor<f32, [256], [1], affine_map<(d0) -> (d0)>>) -> ()
    "func.return"() : () -> ()
  }) {arg_attrs = [{stream.name = "x", stream.role = "input"}, {stream.name = "w", stream.role = "weight"}, {stream.name = "p", stream.role = "input"}], function_type = (tensor<8x16xf32>, tensor<32x16xf32>, tensor<1xi64>) -> (), sym_name = "main"} : () -> ()
  "func.func"() ({
  ^bb0(%0: f32, %1: f32, %2: f32):
    %3 = "arith.mulf"(%0, %1) : (f32, f32) -> f32
    %4 = "arith.constant"() {value = 2.5 : f32} : () -> f32
    %5 = "stream.index"() {loop = 1 : i64} : () -> index
    %6 = "arith.constant"() {value = 3 : index} : () -> index
    %7 = "arith.cmpi"(%5, %6) {predicate = 2 : i64} : (index, index) -> i1
    %8 = "arith.select"(%7, %3, %4) : (i1, f32, f32) -> f32
    %9 = "arith.addf"(%2, %8) : (f32, f32) -> f32
    "func.return"(%9) : (f32) -> ()
  }) {function_type = (f32, f32, f32) -> f32, sym_name = "k3.update", sym_visibility = "private"} : () -> ()
  "func.func"() ({
  ^bb0(%0: f32, %1: f32, %2: f32):
    %3 = "math.exp"(%2) : (f32) -> f32
    "func.return"(%3) : (f32) -> ()
  }) {function_type = (f32, f32, f32) -> f32, sym_name = "k3.post", sym_visibility = "private"} : () -> ()
}) {stream.level = "stream"} : () -> ()
