"builtin.module"() ({
  "func.func"() ({
  ^bb0(%0: memref<?xf32>, %1: memref<?xf32>):
    %2 = "stream.fifo"() {name = "words"} : () -> !stream.fifo<f32, 64>
    "func.call"(%0, %2) {callee = @source} : (memref<?xf32>, !stream.fifo<f32, 64>) -> ()
    "func.call"(%1, %2) {callee = @sink} : (memref<?xf32>, !stream.fifo<f32, 64>) -> ()
    "func.return"() : () -> ()
  }) {function_type = (memref<?xf32>, memref<?xf32>) -> (), sym_name = "main"} : () -> ()
  "func.func"() ({
  ^bb0(%0: memref<?xf32>, %1: !stream.fifo<f32, 64>):
    %2 = "arith.constant"() {value = true} : () -> i1
    %3 = "arith.constant"() {value = 0 : index} : () -> index
    %4 = "arith.constant"() {value = 8 : index} : () -> index
    %5 = "arith.constant"() {value = 1 : index} : () -> index
    "scf.for"(%3, %4, %5) ({
    ^bb0(%6: index):
      %7 = "memref.load"(%0, %6) : (memref<?xf32>, index) -> f32
      "stream.push"(%2, %7, %1) : (i1, f32, !stream.fifo<f32, 64>) -> ()
      "scf.yield"() : () -> ()
    }) {stream.pipeline = 1 : i64} : (index, index, index) -> ()
    "func.return"() : () -> ()
  }) {function_type = (memref<?xf32>, !stream.fifo<f32, 64>) -> (), stream.process, stream.style = "stp", sym_name = "source", sym_visibility = "private"} : () -> ()
  "func.func"() ({
  ^bb0(%0: memref<?xf32>, %1: !stream.fifo<f32, 64>):
    %2 = "arith.constant"() {value = true} : () -> i1
    %3 = "arith.constant"() {value = 0 : index} : () -> index
    %4 = "arith.constant"() {value = 8 : index} : () -> index
    %5 = "arith.constant"() {value = 1 : index} : () -> index
    "scf.for"(%3, %4, %5) ({
    ^bb0(%6: index):
      %7 = "stream.pop"(%2, %1) : (i1, !stream.fifo<f32, 64>) -> f32
      "memref.store"(%7, %0, %6) : (f32, memref<?xf32>, index) -> ()
      "scf.yield"() : () -> ()
    }) {stream.pipeline = 1 : i64} : (index, index, index) -> ()
    "func.return"() : () -> ()
  }) {function_type = (memref<?xf32>, !stream.fifo<f32, 64>) -> (), stream.process, stream.style = "stp", sym_name = "sink", sym_visibility = "private"} : () -> ()
}) {stream.level = "hardware"} : () -> ()
