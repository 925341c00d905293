// stc compile --from fold_converters --to hardware
"builtin.module"() ({
  "func.func"() ({
  ^bb0(%0: tensor<2x16xf32>):
    %1 = "stream.load"(%0) {operand_segment_sizes = array<i32: 1, 0>, tensor = tensor<2x16xf32>} : (tensor<2x16xf32>) -> !stream.itensor<vector<2x1xf32>, [16], [1], affine_map<(d0) -> (0, d0)>>
    %2 = "stream.kernel"(%1) {access = [affine_map<(d0, d1, d2, d3) -> (d0 * 32 + d1 + d2 * 32 + d3 * 16)>], combine = "arith.maximumf", init = 0xFF800000 : f32, initiation_interval = 2 : i64, lanes = 2 : i64, loops = array<i64: 1, 16, 1, 2>, name = "k0", operand_segment_sizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, reduction = array<i64: 0, 1, 0, 0>, result = affine_map<(d0, d1, d2, d3) -> (d0 * 2 + d2 * 2 + d3)>, scheduled, tensor = tensor<2xf32>, update = @k0.update} : (!stream.itensor<vector<2x1xf32>, [16], [1], affine_map<(d0) -> (0, d0)>>) -> !stream.itensor<vector<2xf32>, [], [], affine_map<() -> (0)>>
    %3 = "stream.load"(%0) {operand_segment_sizes = array<i32: 1, 0>, tensor = tensor<2x16xf32>} : (tensor<2x16xf32>) -> !stream.itensor<vector<1x16xf32>, [2], [1], affine_map<(d0) -> (d0, 0)>>
    %4 = "stream.cast"(%2) {tensor = tensor<2xf32>} : (!stream.itensor<vector<2xf32>, [], [], affine_map<() -> (0)>>) -> !stream.itensor<f32, [2], [1], affine_map<(d0) -> (d0)>>
    %5 = "stream.kernel"(%3, %4) {access = [affine_map<(d0, d1, d2) -> (d0 * 16 + d1 * 16 + d2)>, affine_map<(d0, d1, d2) -> (d0)>], initiation_interval = 1 : i64, lanes = 16 : i64, loops = array<i64: 2, 1, 16>, name = "k1", operand_segment_sizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, reduction = array<i64: 0, 0, 0>, result = affine_map<(d0, d1, d2) -> (d0 * 16 + d1 * 16 + d2)>, scheduled, tensor = tensor<2x16xf32>, update = @k1.update} : (!stream.itensor<vector<1x16xf32>, [2], [1], affine_map<(d0) -> (d0, 0)>>, !stream.itensor<f32, [2], [1], affine_map<(d0) -> (d0)>>) -> !stream.itensor<vector<1x16xf32>, [2], [1], affine_map<(d0) -> (d0, 0)>>
    "stream.store"(%5) {operand_segment_sizes = array<i32: 1, 0, 0>, result = array<i64: 0>, tensor = tensor<2x16xf32>} : (!stream.itensor<vector<1x16xf32>, [2], [1], affine_map<(d0) -> (d0, 0)>>) -> ()
    "func.return"() : () -> ()
  }) {function_type = (tensor<2x16xf32>) -> (), stream.inputs = [{name = "x", role = "input", type = tensor<2x16xf32>}], stream.outputs = [{name = "result0", role = "output", type = tensor<2x16xf32>}], sym_name = "main"} : () -> ()
  "func.func"() ({
  ^bb0(%0: f32, %1: f32):
    %2 = "arith.maximumf"(%0, %1) : (f32, f32) -> f32
    "func.return"(%2) : (f32) -> ()
  }) {function_type = (f32, f32) -> f32, sym_name = "k0.update", sym_visibility = "private"} : () -> ()
  "func.func"() ({
  ^bb0(%0: f32, %1: f32):
    %2 = "arith.subf"(%0, %1) : (f32, f32) -> f32
    "func.return"(%2) : (f32) -> ()
  }) {function_type = (f32, f32) -> f32, sym_name = "k1.update", sym_visibility = "private"} : () -> ()
}) {stream.level = "stream"} : () -> ()
