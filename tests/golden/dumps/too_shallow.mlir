// stc compile --platform u55c -o %o
"builtin.module"() ({
  "func.func"() ({
    %0 = "stream.fifo"() {name = "first"} : () -> !stream.fifo<i32, 2>
    %1 = "stream.fifo"() {name = "second"} : () -> !stream.fifo<i32, 2>
    "func.call"(%0, %1) {callee = @writer} : (!stream.fifo<i32, 2>, !stream.fifo<i32, 2>) -> ()
    "func.call"(%0, %1) {callee = @reader} : (!stream.fifo<i32, 2>, !stream.fifo<i32, 2>) -> ()
    "func.return"() : () -> ()
  }) {function_type = () -> (), stream.buffers = [], stream.inputs = [], stream.outputs = [], sym_name = "main"} : () -> ()
  "func.func"() ({
  ^bb0(%0: !stream.fifo<i32, 2>, %1: !stream.fifo<i32, 2>):
    %2 = "arith.constant"() {value = true} : () -> i1
    %3 = "arith.constant"() {value = 7 : i32} : () -> i32
    %4 = "arith.constant"() {value = 0 : index} : () -> index
    %5 = "arith.constant"() {value = 1 : index} : () -> index
    %6 = "arith.constant"() {value = 4 : index} : () -> index
    "scf.for"(%4, %6, %5) ({
    ^bb0(%7: index):
      "stream.push"(%2, %3, %0) : (i1, i32, !stream.fifo<i32, 2>) -> ()
      "scf.yield"() : () -> ()
    }) {stream.pipeline = 1 : i64} : (index, index, index) -> ()
    "scf.for"(%4, %6, %5) ({
    ^bb0(%8: index):
      "stream.push"(%2, %3, %1) : (i1, i32, !stream.fifo<i32, 2>) -> ()
      "scf.yield"() : () -> ()
    }) {stream.pipeline = 1 : i64} : (index, index, index) -> ()
    "func.return"() : () -> ()
  }) {arg_attrs = [{stream.name = "x"}, {stream.name = "y"}], function_type = (!stream.fifo<i32, 2>, !stream.fifo<i32, 2>) -> (), stream.die = 0 : i64, stream.process, stream.style = "stp", sym_name = "writer", sym_visibility = "private"} : () -> ()
  "func.func"() ({
  ^bb0(%0: !stream.fifo<i32, 2>, %1: !stream.fifo<i32, 2>):
    %2 = "arith.constant"() {value = true} : () -> i1
    %3 = "arith.constant"() {value = 0 : index} : () -> index
    %4 = "arith.constant"() {value = 1 : index} : () -> index
    %5 = "arith.constant"() {value = 4 : index} : () -> index
    "scf.for"(%3, %5, %4) ({
    ^bb0(%6: index):
      %7 = "stream.pop"(%2, %0) : (i1, !stream.fifo<i32, 2>) -> i32
      %8 = "stream.pop"(%2, %1) : (i1, !stream.fifo<i32, 2>) -> i32
      "scf.yield"() : () -> ()
    }) {stream.pipeline = 1 : i64} : (index, index, index) -> ()
    "func.return"() : () -> ()
  }) {arg_attrs = [{stream.name = "x"}, {stream.name = "y"}], function_type = (!stream.fifo<i32, 2>, !stream.fifo<i32, 2>) -> (), stream.die = 0 : i64, stream.process, stream.style = "stp", sym_name = "reader", sym_visibility = "private"} : () -> ()
}) {stream.level = "hardware"} : () -> ()
