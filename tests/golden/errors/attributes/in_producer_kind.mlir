// stc check
// A form is said by an attribute that is there or not.
"builtin.module"() ({
  "func.func"() ({
  ^bb0(%0: tensor<4xf32>):
    %1 = "stream.load"(%0) {operand_segment_sizes = array<i32: 1, 0>, tensor = tensor<4xf32>} : (tensor<4xf32>) -> !stream.itensor<f32, [4], [1], affine_map<(d0) -> (d0)>>
    %2 = "stream.convert"(%1) {buffer_elements = 4 : i64, halves = 1 : i64, in_producer = true, shared_loops = 0 : i64, tensor = tensor<4xf32>} : (!stream.itensor<f32, [4], [1], affine_map<(d0) -> (d0)>>) -> !stream.itensor<f32, [4], [1], affine_map<(d0) -> (d0)>>
    "stream.store"(%2) {operand_segment_sizes = array<i32: 1, 0, 0>, result = array<i64: 0>, tensor = tensor<4xf32>} : (!stream.itensor<f32, [4], [1], affine_map<(d0) -> (d0)>>) -> ()
    "func.return"() : () -> ()
  }) {function_type = (tensor<4xf32>) -> (), stream.inputs = [{name = "x", role = "input", type = tensor<4xf32>}], stream.outputs = [{name = "y", role = "output", type = tensor<4xf32>}], sym_name = "main"} : () -> ()
}) {stream.level = "stream"} : () -> ()
