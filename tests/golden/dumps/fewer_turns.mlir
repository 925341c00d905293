// stc compile --from fold_converters --to hardware
"builtin.module"() ({
  "func.func"() ({
  ^bb0(%0: tensor<2x8xf32>, %1: tensor<2x15x8xf32>, %2: tensor<2x1x8xf32>, %3: tensor<1xi64>):
    %4 = "stream.load"(%3) {operand_segment_sizes = array<i32: 1, 0>, tensor = tensor<1xi64>} : (tensor<1xi64>) -> !stream.itensor<i64, [], [], affine_map<() -> (0)>>
    %5, %6 = "stream.fork"(%4) {tensor = tensor<1xi64>} : (!stream.itensor<i64, [], [], affine_map<() -> (0)>>) -> (!stream.itensor<i64, [], [], affine_map<() -> (0)>>, !stream.itensor<i64, [], [], affine_map<() -> (0)>>)
    "stream.extent"(%5) {name = "past"} : (!stream.itensor<i64, [], [], affine_map<() -> (0)>>) -> ()
    %7 = "stream.load"(%2) {operand_segment_sizes = array<i32: 1, 0>, tensor = tensor<2x1x8xf32>} : (tensor<2x1x8xf32>) -> !stream.itensor<f32, [2, 8], [1, 1], affine_map<(d0, d1) -> (d0, 0, d1)>>
    %8 = "stream.kernel"(%7) {access = [affine_map<(d0, d1) -> (d0 * 8 + d1)>], initiation_interval = 1 : i64, lanes = 1 : i64, loops = array<i64: 2, 8>, name = "k3", operand_segment_sizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, reduction = array<i64: 0, 0>, result = affine_map<(d0, d1) -> (d0 * 8 + d1)>, scheduled, tensor = tensor<2x1x8xf32>, update = @k3.update} : (!stream.itensor<f32, [2, 8], [1, 1], affine_map<(d0, d1) -> (d0, 0, d1)>>) -> !stream.itensor<f32, [2, 8], [1, 1], affine_map<(d0, d1) -> (d0, 0, d1)>>
    %9 = "stream.load"(%0) {operand_segment_sizes = array<i32: 1, 0>, tensor = tensor<2x8xf32>} : (tensor<2x8xf32>) -> !stream.itensor<vector<1x8xf32>, [2], [1], affine_map<(d0) -> (d0, 0)>>
    %10 = "stream.load"(%1) {operand_segment_sizes = array<i32: 1, 0>, ports = 1 : i64, tensor = tensor<2x15x8xf32>} : (tensor<2x15x8xf32>) -> !stream.itensor<vector<1x1x8xf32>, [2, {most = 15, plus = 0, symbol = "past", tile = 1}], [1, 1], affine_map<(d0, d1) -> (d0, d1, 0)>>
    %11 = "stream.load"(%2) {operand_segment_sizes = array<i32: 1, 0>, tensor = tensor<2x1x8xf32>} : (tensor<2x1x8xf32>) -> !stream.itensor<vector<1x1x8xf32>, [2], [1], affine_map<(d0) -> (d0, 0, 0)>>
    %12 = "stream.kernel"(%9, %10, %11) {access = [affine_map<(d0, d1, d2, d3) -> (d0 * 8 + d2 * 8 + d3)>, affine_map<(d0, d1, d2, d3) -> (d0 * 120 + d1 * 8 + d2 * 8 + d3 - 8)>, affine_map<(d0, d1, d2, d3) -> (d0 * 8 + d2 * 8 + d3)>], combine = "arith.addf", guards = [array<i64: 1, 1, 1, 16>, array<i64: 2, 1, 0, 1>], init = 0.0 : f32, initiation_interval = 1 : i64, lanes = 8 : i64, loops = array<i64: 2, 16, 1, 8>, name = "k0", operand_segment_sizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, post = @k0.post, reduction = array<i64: 0, 0, 1, 1>, result = affine_map<(d0, d1, d2, d3) -> (d0 * 16 + d1)>, run_time = [{loop = 1 : i64, plus = 0 : i64, symbol = "past", tile = 1 : i64}], scheduled, tensor = tensor<2x16xf32>, update = @k0.update} : (!stream.itensor<vector<1x8xf32>, [2], [1], affine_map<(d0) -> (d0, 0)>>, !stream.itensor<vector<1x1x8xf32>, [2, {most = 15, plus = 0, symbol = "past", tile = 1}], [1, 1], affine_map<(d0, d1) -> (d0, d1, 0)>>, !stream.itensor<vector<1x1x8xf32>, [2], [1], affine_map<(d0) -> (d0, 0, 0)>>) -> !stream.itensor<f32, [2, {most = 16, plus = 1, symbol = "past", tile = 1}], [1, 1], affine_map<(d0, d1) -> (d0, d1)>>
    %13 = "stream.kernel"(%12) {access = [affine_map<(d0, d1) -> (d0 * 16 + d1)>], combine = "arith.addf", init = 0.0 : f32, initiation_interval = 7 : i64, lanes = 1 : i64, loops = array<i64: 2, 16>, name = "k2", operand_segment_sizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, reduction = array<i64: 0, 1>, result = affine_map<(d0, d1) -> (d0)>, run_time = [{loop = 1 : i64, plus = 0 : i64, symbol = "past", tile = 1 : i64}], scheduled, tensor = tensor<2xf32>, update = @k2.update} : (!stream.itensor<f32, [2, {most = 16, plus = 1, symbol = "past", tile = 1}], [1, 1], affine_map<(d0, d1) -> (d0, d1)>>) -> !stream.itensor<f32, [2], [1], affine_map<(d0) -> (d0)>>
    "stream.store"(%13) {operand_segment_sizes = array<i32: 1, 0, 0>, result = array<i64: 0>, tensor = tensor<2xf32>} : (!stream.itensor<f32, [2], [1], affine_map<(d0) -> (d0)>>) -> ()
    %14 = "stream.cast"(%8) {tensor = tensor<2x1x8xf32>} : (!stream.itensor<f32, [2, 8], [1, 1], affine_map<(d0, d1) -> (d0, 0, d1)>>) -> !stream.itensor<vector<1x1x8xf32>, [2], [1], affine_map<(d0) -> (d0, 0, 0)>>
    "stream.store"(%14, %6) {operand_segment_sizes = array<i32: 1, 1, 0>, result = array<i64: 1>, tensor = tensor<2x1x8xf32>} : (!stream.itensor<vector<1x1x8xf32>, [2], [1], affine_map<(d0) -> (d0, 0, 0)>>, !stream.itensor<i64, [], [], affine_map<() -> (0)>>) -> ()
    "func.return"() : () -> ()
  }) {function_type = (tensor<2x8xf32>, tensor<2x15x8xf32>, tensor<2x1x8xf32>, tensor<1xi64>) -> (), stream.converters = [], stream.inputs = [{name = "q", role = "input", type = tensor<2x8xf32>}, {dims = ["", "past", ""], name = "k", role = "state", type = tensor<2x15x8xf32>}, {name = "n", role = "input", type = tensor<2x1x8xf32>}, {name = "past", role = "input", type = tensor<1xi64>}], stream.outputs = [{name = "result0", role = "output", type = tensor<2xf32>}, {position = "past", axis = 1 : i64, name = "k", role = "state", type = tensor<2x1x8xf32>}], sym_name = "main"} : () -> ()
  "func.func"() ({
  ^bb0(%0: f32):
    "func.return"(%0) : (f32) -> ()
  }) {function_type = (f32) -> f32, sym_name = "k3.update", sym_visibility = "private"} : () -> ()
  "func.func"() ({
  ^bb0(%0: f32, %1: f32, %2: f32, %3: f32):
    %4 = "stream.active"() {operand = 1 : i64} : () -> i1
    %5 = "arith.select"(%4, %1, %2) : (i1, f32, f32) -> f32
    %6 = "arith.mulf"(%0, %5) : (f32, f32) -> f32
    %7 = "arith.addf"(%3, %6) : (f32, f32) -> f32
    "func.return"(%7) : (f32) -> ()
  }) {function_type = (f32, f32, f32, f32) -> f32, sym_name = "k0.update", sym_visibility = "private"} : () -> ()
  "func.func"() ({
  ^bb0(%0: f32, %1: f32, %2: f32, %3: f32):
    %4 = "math.exp"(%3) : (f32) -> f32
    "func.return"(%4) : (f32) -> ()
  }) {function_type = (f32, f32, f32, f32) -> f32, sym_name = "k0.post", sym_visibility = "private"} : () -> ()
  "func.func"() ({
  ^bb0(%0: f32, %1: f32):
    %2 = "arith.addf"(%1, %0) : (f32, f32) -> f32
    "func.return"(%2) : (f32) -> ()
  }) {function_type = (f32, f32) -> f32, sym_name = "k2.update", sym_visibility = "private"} : () -> ()
}) {stream.fused = array<i64: 136, 2>, stream.level = "stream", stream.unfused = array<i64: 264, 3>} : () -> ()
