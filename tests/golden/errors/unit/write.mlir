// stc check
"builtin.module"() ({
  "func.func"() ({
  ^bb0(%0: memref<?xf32>):
    "func.call"(%0) {callee = @fill} : (memref<?xf32>) -> ()
    "func.return"() : () -> ()
  }) {arg_attrs = [{stream.buffer = "y", stream.channel = 0 : i64, stream.direction = "write", stream.port = "m_y"}], function_type = (memref<?xf32>) -> (), stream.buffers = [], stream.inputs = [], stream.outputs = [], sym_name = "main"} : () -> ()
  "func.func"() ({
  ^bb0(%0: memref<?xf32>):
    %1 = "arith.constant"() {value = 0 : index} : () -> index
    %2 = "arith.constant"() {value = 1.0 : f32} : () -> f32
    "stream.write"(%2, %2, %0, %1) : (f32, f32, memref<?xf32>, index) -> ()
    "func.return"() : () -> ()
  }) {arg_attrs = [{stream.name = "m"}], function_type = (memref<?xf32>) -> (), stream.die = 0 : i64, stream.process, stream.style = "stp", sym_name = "fill", sym_visibility = "private"} : () -> ()
}) {stream.level = "hardware"} : () -> ()
