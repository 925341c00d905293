// stc check
// The key means something, but not on this operation.
"builtin.module"() ({
  "func.func"() ({
  ^bb0:
    %0 = "stream.fifo"() {lanes = 4 : i64, name = "s_x", stream.storage = "srl"} : () -> !stream.fifo<f32, 16>
    "func.return"() : () -> ()
  }) {function_type = () -> (), sym_name = "main"} : () -> ()
}) {stream.level = "hardware"} : () -> ()
