// stc compile -o %o
// A dump whose main does not say what the host gives.
"builtin.module"() ({
  "func.func"() ({
  ^bb0(%0: tensor<4x8xf32>):
    %1 = "stream.load"(%0) {operand_segment_sizes = array<i32: 1, 0>, tensor = tensor<4x8xf32>} : (tensor<4x8xf32>) -> !stream.itensor<f32, [4, 8], [1, 1], affine_map<(d0, d1) -> (d0, d1)>>
    "stream.store"(%1) {operand_segment_sizes = array<i32: 1, 0, 0>, result = array<i64: 0>, tensor = tensor<4x8xf32>} : (!stream.itensor<f32, [4, 8], [1, 1], affine_map<(d0, d1) -> (d0, d1)>>) -> ()
    "func.return"() : () -> ()
  }) {function_type = (tensor<4x8xf32>) -> (), stream.outputs = [{name = "y", role = "output", type = tensor<4x8xf32>}], sym_name = "main"} : () -> ()
}) {stream.level = "stream"} : () -> ()
