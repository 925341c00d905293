"builtin.module"() ({
  "func.func"() ({
  ^bb0(%0: memref<?xvector<16xf32>>):
    %1 = "stream.fifo"() {name = "f0", stream.crossings = 1 : i64} : () -> !stream.fifo<vector<16xf32>, 4>
    "func.call"(%0, %1) {callee = @p0} : (memref<?xvector<16xf32>>, !stream.fifo<vector<16xf32>, 4>) -> ()
    "func.call"(%1) {callee = @p1} : (!stream.fifo<vector<16xf32>, 4>) -> ()
    "func.return"() : () -> ()
  }) {arg_attrs = [{stream.buffer = "w0", stream.channel = 3 : i64, stream.direction = "read", stream.port = "m_w0"}], function_type = (memref<?xvector<16xf32>>) -> (), stream.buffers = [{name = "w0", segments = [{base = 0 : i64, conditions = [array<i64: 1, 2>], name = "w", offset = 0 : i64, role = "weight", strides = array<i64: 1>, trips = array<i64: 4>}], word = vector<16xf32>, words = 4 : i64}], stream.inputs = [{name = "w", role = "weight", type = tensor<8x8xf32>}], sym_name = "main"} : () -> ()
  "func.func"() ({
  ^bb0(%0: memref<?xvector<16xf32>>, %1: !stream.fifo<vector<16xf32>, 4>):
    %2 = "arith.constant"() {value = 0 : index} : () -> index
    %3 = "arith.constant"() {value = 4 : index} : () -> index
    %4 = "arith.constant"() {value = 1 : index} : () -> index
    %5 = "arith.constant"() {value = true} : () -> i1
    %6 = "arith.constant"() {value = dense<0.5> : vector<16xf32>} : () -> vector<16xf32>
    "scf.for"(%2, %3, %4) ({
    ^bb0(%7: index):
      %8 = "affine.apply"(%7) {map = affine_map<(d0) -> (d0 * 2 + 1)>} : (index) -> index
      %9 = "memref.load"(%0, %8) : (memref<?xvector<16xf32>>, index) -> vector<16xf32>
      %10 = "arith.addf"(%9, %6) : (vector<16xf32>, vector<16xf32>) -> vector<16xf32>
      "stream.push"(%5, %10, %1) : (i1, vector<16xf32>, !stream.fifo<vector<16xf32>, 4>) -> ()
      "scf.yield"() : () -> ()
    }) {stream.pipeline = 1 : i64} : (index, index, index) -> ()
    "func.return"() : () -> ()
  }) {function_type = (memref<?xvector<16xf32>>, !stream.fifo<vector<16xf32>, 4>) -> (), stream.die = 0 : i64, stream.process, stream.style = "flp", sym_name = "p0", sym_visibility = "private"} : () -> ()
  "func.func"() ({
  ^bb0(%0: !stream.fifo<vector<16xf32>, 4>):
    %1 = "arith.constant"() {value = 0 : index} : () -> index
    %2 = "arith.constant"() {value = 4 : index} : () -> index
    %3 = "arith.constant"() {value = 1 : index} : () -> index
    %4 = "arith.constant"() {value = true} : () -> i1
    %5 = "memref.alloca"() {operandSegmentSizes = array<i32: 0, 0>, stream.name = "a", stream.partition = 2 : i64, stream.storage = "bram"} : () -> memref<4x16xf32>
    "scf.for"(%1, %2, %3) ({
    ^bb0(%6: index):
      %7 = "stream.pop"(%4, %0) : (i1, !stream.fifo<vector<16xf32>, 4>) -> vector<16xf32>
      %8 = "stream.tree"(%7) {kind = "arith.addf"} : (vector<16xf32>) -> f32
      "memref.store"(%8, %5, %6, %1) : (f32, memref<4x16xf32>, index, index) -> ()
      "scf.yield"() : () -> ()
    }) {stream.pipeline = 1 : i64} : (index, index, index) -> ()
    "func.return"() : () -> ()
  }) {function_type = (!stream.fifo<vector<16xf32>, 4>) -> (), stream.die = 1 : i64, stream.process, stream.style = "flp", sym_name = "p1", sym_visibility = "private"} : () -> ()
}) {stream.level = "hardware"} : () -> ()
