// stc check
// A segment's pitch is no entry of an input.
"builtin.module"() ({
  "func.func"() ({
  ^bb0:
    "func.return"() : () -> ()
  }) {function_type = () -> (), stream.inputs = [{name = "x", pitch = 4 : i64, role = "input", type = tensor<4xf32>}], stream.outputs = [], sym_name = "main"} : () -> ()
}) {stream.level = "hardware"} : () -> ()
