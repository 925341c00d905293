// stc check
// The value of an attribute is of another kind than attrs.def says.
"builtin.module"() ({
  "func.func"() ({
  ^bb0:
    %0 = "stream.fifo"() {name = "s_x", stream.storage = 3 : i64} : () -> !stream.fifo<f32, 16>
    "func.return"() : () -> ()
  }) {function_type = () -> (), sym_name = "main"} : () -> ()
}) {stream.level = "hardware"} : () -> ()
