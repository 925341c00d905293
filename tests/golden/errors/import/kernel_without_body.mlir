// stc compile --platform u55c -o %o
"builtin.module"() ({
  "func.func"() ({
  ^bb0(%0: tensor<4xf32>):
    %1 = "stream.kernel"(%0) {access = [affine_map<(d0) -> (d0)>], loops = array<i64: 4>, name = "k0", reduction = array<i64: 0>, result = affine_map<(d0) -> (d0)>, update = @k0.update} : (tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%1) : (tensor<4xf32>) -> ()
  }) {function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main"} : () -> ()
}) {stream.level = "tensor"} : () -> ()
