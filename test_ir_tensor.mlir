"builtin.module"() ({
  "func.func"() ({
  ^bb0(%0: tensor<8x16xf32>, %1: tensor<32x16xf32>):
    %2 = "stream.kernel"(%0, %1) {access = [affine_map<(d0, d1, d2) -> (d0 * 16 + d2)>, affine_map<(d0, d1, d2) -> (d1 * 16 + d2)>], combine = "arith.addf", guards = [array<i64: 0, 2, 0, 12>], init = 0.0 : f32, loops = array<i64: 8, 32, 16>, name = "k3", operand_segment_sizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, post = @k3.post, reduction = array<i64: 0, 0, 1>, result = affine_map<(d0, d1, d2) -> (d0 * 32 + d1)>, update = @k3.update} : (tensor<8x16xf32>, tensor<32x16xf32>) -> tensor<8x32xf32>
    "func.return"(%2) : (tensor<8x32xf32>) -> ()
  }) {function_type = (tensor<8x16xf32>, tensor<32x16xf32>) -> tensor<8x32xf32>, sym_name = "main"} : () -> ()
  "func.func"() ({
  ^bb0(%0: f32, %1: f32, %2: f32):
    %3 = "arith.mulf"(%0, %1) : (f32, f32) -> f32
    %4 = "arith.addf"(%2, %3) : (f32, f32) -> f32
    "func.return"(%4) : (f32) -> ()
  }) {function_type = (f32, f32, f32) -> f32, sym_name = "k3.update", sym_visibility = "private"} : () -> ()
  "func.func"() ({
  ^bb0(%0: f32, %1: f32, %2: f32):
    %3 = "arith.constant"() {value = 0.0 : f32} : () -> f32
    %4 = "arith.maximumf"(%2, %3) : (f32, f32) -> f32
    "func.return"(%4) : (f32) -> ()
  }) {function_type = (f32, f32, f32) -> f32, sym_name = "k3.post", sym_visibility = "private"} : () -> ()
}) {stream.level = "tensor"} : () -> ()
