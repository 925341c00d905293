// stc check
// An ill-formed type where no stream may be.
"builtin.module"() ({
  "func.func"() ({
  ^bb0(%0: !stream.itensor<f32, [4, 0], [1, 1], affine_map<(d0, d1) -> (d0, d1)>>):
    "func.return"() : () -> ()
  }) {function_type = (!stream.itensor<f32, [4, 0], [1, 1], affine_map<(d0, d1) -> (d0, d1)>>) -> (), sym_name = "main"} : () -> ()
}) {stream.level = "hardware"} : () -> ()
