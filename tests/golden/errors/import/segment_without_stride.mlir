// stc check
// A buffer whose words nothing says how to find.
"builtin.module"() ({
  "func.func"() ({
    "func.return"() : () -> ()
  }) {function_type = () -> (), stream.buffers = [{name = "x", segments = [{base = 0 : i64, name = "x", offset = 0 : i64, role = "input", strides = array<i64: 1>, trips = array<i64: 4, 8>}], word = f32, words = 32 : i64}], stream.inputs = [], stream.outputs = [], sym_name = "main"} : () -> ()
}) {stream.level = "hardware"} : () -> ()
