// stc compile --to stream
"builtin.module"() ({
  "func.func"() ({
  ^bb0(%0: tensor<2x16xf32>):
    %1 = "stream.kernel"(%0) {access = [affine_map<(d0, d1) -> (d0 * 16 + d1)>], init = 0xFF800000 : f32, loops = array<i64: 2, 16>, name = "k0", operand_segment_sizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, reduction = array<i64: 0, 1>, result = affine_map<(d0, d1) -> (d0)>, update = @k0.update} : (tensor<2x16xf32>) -> tensor<2xf32>
    %2 = "stream.kernel"(%0, %1) {access = [affine_map<(d0, d1) -> (d0 * 16 + d1)>, affine_map<(d0, d1) -> (d0)>], loops = array<i64: 2, 16>, name = "k1", operand_segment_sizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, reduction = array<i64: 0, 0>, result = affine_map<(d0, d1) -> (d0 * 16 + d1)>, update = @k1.update} : (tensor<2x16xf32>, tensor<2xf32>) -> tensor<2x16xf32>
    "func.return"(%2) : (tensor<2x16xf32>) -> ()
  }) {arg_attrs = [{stream.name = "x", stream.role = "input"}], function_type = (tensor<2x16xf32>) -> tensor<2x16xf32>, res_attrs = [{stream.name = "result0", stream.role = "output"}], sym_name = "main"} : () -> ()
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
}) {stream.level = "tensor"} : () -> ()
