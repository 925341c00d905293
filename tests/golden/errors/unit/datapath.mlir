// stc check
"builtin.module"() ({
  "func.func"() ({
  ^bb0(%0: memref<?xf32>, %1: memref<?xf32>):
    %2 = "stream.fifo"() {name = "s_load_1", stream.storage = "srl"} : () -> !stream.fifo<vector<2xf32>, 16>
    %3 = "stream.fifo"() {name = "s_elements_2", stream.storage = "srl"} : () -> !stream.fifo<f32, 32>
    %4 = "stream.fifo"() {name = "s_load_3", stream.storage = "srl"} : () -> !stream.fifo<vector<16xf32>, 2>
    %5 = "stream.fifo"() {name = "s_elements_4", stream.storage = "srl"} : () -> !stream.fifo<f32, 32>
    %6 = "stream.fifo"() {name = "s_k0_8", stream.storage = "srl"} : () -> !stream.fifo<vector<2xf32>, 2>
    %7 = "stream.fifo"() {name = "s_cast_9", stream.storage = "srl"} : () -> !stream.fifo<f32, 2>
    %8 = "stream.fifo"() {name = "s_k1_12", stream.storage = "srl"} : () -> !stream.fifo<vector<16xf32>, 2>
    %9 = "stream.fifo"() {name = "s_elements_14", stream.storage = "srl"} : () -> !stream.fifo<f32, 32>
    "func.call"(%0, %3, %5) {callee = @p0_load_shared_f32} : (memref<?xf32>, !stream.fifo<f32, 32>, !stream.fifo<f32, 32>) -> ()
    "func.call"(%3, %2) {callee = @p5_cast} : (!stream.fifo<f32, 32>, !stream.fifo<vector<2xf32>, 16>) -> ()
    "func.call"(%5, %4) {callee = @p6_cast} : (!stream.fifo<f32, 32>, !stream.fifo<vector<16xf32>, 2>) -> ()
    "func.call"(%2, %6) {callee = @p7_k0} : (!stream.fifo<vector<2xf32>, 16>, !stream.fifo<vector<2xf32>, 2>) -> ()
    "func.call"(%6, %7) {callee = @p10_cast} : (!stream.fifo<vector<2xf32>, 2>, !stream.fifo<f32, 2>) -> ()
    "func.call"(%4, %7, %8) {callee = @p11_k1} : (!stream.fifo<vector<16xf32>, 2>, !stream.fifo<f32, 2>, !stream.fifo<vector<16xf32>, 2>) -> ()
    "func.call"(%1, %9) {callee = @p13_store_results_f32} : (memref<?xf32>, !stream.fifo<f32, 32>) -> ()
    "func.call"(%8, %9) {callee = @p15_cast} : (!stream.fifo<vector<16xf32>, 2>, !stream.fifo<f32, 32>) -> ()
    "func.return"() : () -> ()
  }) {arg_attrs = [{stream.buffer = "shared_f32", stream.channel = 0 : i64, stream.direction = "read", stream.port = "m_shared_f32"}, {stream.buffer = "results_f32", stream.channel = 1 : i64, stream.direction = "write", stream.port = "m_results_f32"}], function_type = (memref<?xf32>, memref<?xf32>) -> (), stream.buffers = [{name = "shared_f32", segments = [{base = 0 : i64, conditions = [], name = "x", offset = 0 : i64, role = "input", strides = array<i64: 1, 16>, trips = array<i64: 16, 2>}, {base = 0 : i64, conditions = [], name = "x", offset = 32 : i64, role = "input", strides = array<i64: 16, 1>, trips = array<i64: 2, 16>}], word = f32, words = 64 : i64}, {name = "results_f32", segments = [{base = 0 : i64, conditions = [], name = "result0", offset = 0 : i64, role = "output", strides = array<i64: 16, 1>, trips = array<i64: 2, 16>}], word = f32, words = 32 : i64}], stream.inputs = [{name = "x", role = "input", type = tensor<2x16xf32>}], stream.outputs = [{name = "result0", role = "output", type = tensor<2x16xf32>}], sym_name = "main"} : () -> ()
  "func.func"() ({
  ^bb0(%0: memref<?xf32>, %1: !stream.fifo<f32, 32>, %2: !stream.fifo<f32, 32>):
    %3 = "arith.constant"() {value = true} : () -> i1
    %4 = "arith.constant"() {value = 2 : index} : () -> index
    %5 = "arith.constant"() {value = 1 : index} : () -> index
    %6 = "arith.constant"() {value = 16 : index} : () -> index
    %7 = "arith.constant"() {value = 0 : index} : () -> index
    "scf.for"(%7, %6, %5) ({
    ^bb0(%8: index):
      "scf.for"(%7, %4, %5) ({
      ^bb0(%9: index):
        %10 = "affine.apply"(%8) {map = affine_map<(d0) -> (d0 * 2)>} : (index) -> index
        %11 = "affine.apply"(%10, %9) {map = affine_map<(d0, d1) -> (d0 + d1)>} : (index, index) -> index
        %12 = "memref.load"(%0, %11) : (memref<?xf32>, index) -> f32
        "stream.push"(%3, %12, %1) : (i1, f32, !stream.fifo<f32, 32>) -> ()
        "scf.yield"() : () -> ()
      }) {stream.pipeline = 1 : i64} : (index, index, index) -> ()
      "scf.yield"() : () -> ()
    }) {stream.datapath} : (index, index, index) -> ()
    "scf.for"(%7, %4, %5) ({
    ^bb0(%13: index):
      "scf.for"(%7, %6, %5) ({
      ^bb0(%14: index):
        %15 = "affine.apply"(%13) {map = affine_map<(d0) -> (d0 * 16 + 32)>} : (index) -> index
        %16 = "affine.apply"(%15, %14) {map = affine_map<(d0, d1) -> (d0 + d1)>} : (index, index) -> index
        %17 = "memref.load"(%0, %16) : (memref<?xf32>, index) -> f32
        "stream.push"(%3, %17, %2) : (i1, f32, !stream.fifo<f32, 32>) -> ()
        "scf.yield"() : () -> ()
      }) {stream.pipeline = 1 : i64} : (index, index, index) -> ()
      "scf.yield"() : () -> ()
    }) {stream.datapath} : (index, index, index) -> ()
    "func.return"() : () -> ()
  }) {arg_attrs = [{stream.name = "m"}, {stream.name = "y"}, {stream.name = "y"}], function_type = (memref<?xf32>, !stream.fifo<f32, 32>, !stream.fifo<f32, 32>) -> (), stream.die = 0 : i64, stream.process, stream.style = "stp", sym_name = "p0_load_shared_f32", sym_visibility = "private"} : () -> ()
  "func.func"() ({
  ^bb0(%0: !stream.fifo<f32, 32>, %1: !stream.fifo<vector<2xf32>, 16>):
    %2 = "memref.alloca"() {operandSegmentSizes = array<i32: 0, 0>, stream.name = "parts", stream.partition = 2 : i64, stream.storage = "registers"} : () -> memref<2xf32>
    %3 = "arith.constant"() {value = true} : () -> i1
    %4 = "arith.constant"() {value = 2 : index} : () -> index
    %5 = "arith.constant"() {value = 1 : index} : () -> index
    %6 = "arith.constant"() {value = 16 : index} : () -> index
    %7 = "arith.constant"() {value = 0 : index} : () -> index
    "scf.for"(%7, %6, %5) ({
    ^bb0(%8: index):
      "scf.for"(%7, %4, %5) ({
      ^bb0(%9: index):
        %10 = "stream.pop"(%3, %0) : (i1, !stream.fifo<f32, 32>) -> f32
        "memref.store"(%10, %2, %9) : (f32, memref<2xf32>, index) -> ()
        %11 = "memref.load"(%2, %7) : (memref<2xf32>, index) -> f32
        %12 = "stream.join_lanes"(%11, %10) : (f32, f32) -> vector<2xf32>
        %13 = "arith.cmpi"(%9, %5) {predicate = 0 : i64} : (index, index) -> i1
        "stream.push"(%13, %12, %1) : (i1, vector<2xf32>, !stream.fifo<vector<2xf32>, 16>) -> ()
        "scf.yield"() : () -> ()
      }) {stream.pipeline = 1 : i64} : (index, index, index) -> ()
      "scf.yield"() : () -> ()
    }) : (index, index, index) -> ()
    "func.return"() : () -> ()
  }) {arg_attrs = [{stream.name = "x"}, {stream.name = "y"}], function_type = (!stream.fifo<f32, 32>, !stream.fifo<vector<2xf32>, 16>) -> (), stream.die = 0 : i64, stream.process, stream.style = "stp", sym_name = "p5_cast", sym_visibility = "private"} : () -> ()
  "func.func"() ({
  ^bb0(%0: !stream.fifo<f32, 32>, %1: !stream.fifo<vector<16xf32>, 2>):
    %2 = "arith.constant"() {value = 15 : index} : () -> index
    %3 = "arith.constant"() {value = 14 : index} : () -> index
    %4 = "arith.constant"() {value = 13 : index} : () -> index
    %5 = "arith.constant"() {value = 12 : index} : () -> index
    %6 = "arith.constant"() {value = 11 : index} : () -> index
    %7 = "arith.constant"() {value = 10 : index} : () -> index
    %8 = "arith.constant"() {value = 9 : index} : () -> index
    %9 = "arith.constant"() {value = 8 : index} : () -> index
    %10 = "arith.constant"() {value = 7 : index} : () -> index
    %11 = "arith.constant"() {value = 6 : index} : () -> index
    %12 = "arith.constant"() {value = 5 : index} : () -> index
    %13 = "arith.constant"() {value = 4 : index} : () -> index
    %14 = "arith.constant"() {value = 3 : index} : () -> index
    %15 = "memref.alloca"() {operandSegmentSizes = array<i32: 0, 0>, stream.name = "parts", stream.partition = 16 : i64, stream.storage = "registers"} : () -> memref<16xf32>
    %16 = "arith.constant"() {value = true} : () -> i1
    %17 = "arith.constant"() {value = 16 : index} : () -> index
    %18 = "arith.constant"() {value = 1 : index} : () -> index
    %19 = "arith.constant"() {value = 2 : index} : () -> index
    %20 = "arith.constant"() {value = 0 : index} : () -> index
    "scf.for"(%20, %19, %18) ({
    ^bb0(%21: index):
      "scf.for"(%20, %17, %18) ({
      ^bb0(%22: index):
        %23 = "stream.pop"(%16, %0) : (i1, !stream.fifo<f32, 32>) -> f32
        "memref.store"(%23, %15, %22) : (f32, memref<16xf32>, index) -> ()
        %24 = "memref.load"(%15, %20) : (memref<16xf32>, index) -> f32
        %25 = "memref.load"(%15, %18) : (memref<16xf32>, index) -> f32
        %26 = "memref.load"(%15, %19) : (memref<16xf32>, index) -> f32
        %27 = "memref.load"(%15, %14) : (memref<16xf32>, index) -> f32
        %28 = "memref.load"(%15, %13) : (memref<16xf32>, index) -> f32
        %29 = "memref.load"(%15, %12) : (memref<16xf32>, index) -> f32
        %30 = "memref.load"(%15, %11) : (memref<16xf32>, index) -> f32
        %31 = "memref.load"(%15, %10) : (memref<16xf32>, index) -> f32
        %32 = "memref.load"(%15, %9) : (memref<16xf32>, index) -> f32
        %33 = "memref.load"(%15, %8) : (memref<16xf32>, index) -> f32
        %34 = "memref.load"(%15, %7) : (memref<16xf32>, index) -> f32
        %35 = "memref.load"(%15, %6) : (memref<16xf32>, index) -> f32
        %36 = "memref.load"(%15, %5) : (memref<16xf32>, index) -> f32
        %37 = "memref.load"(%15, %4) : (memref<16xf32>, index) -> f32
        %38 = "memref.load"(%15, %3) : (memref<16xf32>, index) -> f32
        %39 = "stream.join_lanes"(%24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %23) : (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32) -> vector<16xf32>
        %40 = "arith.cmpi"(%22, %2) {predicate = 0 : i64} : (index, index) -> i1
        "stream.push"(%40, %39, %1) : (i1, vector<16xf32>, !stream.fifo<vector<16xf32>, 2>) -> ()
        "scf.yield"() : () -> ()
      }) {stream.pipeline = 1 : i64} : (index, index, index) -> ()
      "scf.yield"() : () -> ()
    }) : (index, index, index) -> ()
    "func.return"() : () -> ()
  }) {arg_attrs = [{stream.name = "x"}, {stream.name = "y"}], function_type = (!stream.fifo<f32, 32>, !stream.fifo<vector<16xf32>, 2>) -> (), stream.die = 0 : i64, stream.process, stream.style = "stp", sym_name = "p6_cast", sym_visibility = "private"} : () -> ()
  "func.func"() ({
  ^bb0(%0: !stream.fifo<vector<2xf32>, 16>, %1: !stream.fifo<vector<2xf32>, 2>):
    %2 = "memref.alloca"() {operandSegmentSizes = array<i32: 0, 0>, stream.name = "acc", stream.storage = "registers"} : () -> memref<1xvector<2xf32>>
    %3 = "arith.constant"() {value = 0xFF800000 : f32} : () -> f32
    %4 = "arith.constant"() {value = 15 : index} : () -> index
    %5 = "arith.constant"() {value = true} : () -> i1
    %6 = "arith.constant"() {value = 1 : index} : () -> index
    %7 = "arith.constant"() {value = 16 : index} : () -> index
    %8 = "arith.constant"() {value = 0 : index} : () -> index
    "scf.for"(%8, %7, %6) ({
    ^bb0(%9: index):
      %10 = "stream.pop"(%5, %0) : (i1, !stream.fifo<vector<2xf32>, 16>) -> vector<2xf32>
      %11 = "arith.cmpi"(%9, %4) {predicate = 0 : i64} : (index, index) -> i1
      %12 = "vector.broadcast"(%3) : (f32) -> vector<2xf32>
      %13 = "memref.load"(%2, %8) : (memref<1xvector<2xf32>>, index) -> vector<2xf32>
      %14 = "arith.cmpi"(%9, %8) {predicate = 0 : i64} : (index, index) -> i1
      %15 = "arith.select"(%14, %12, %13) : (i1, vector<2xf32>, vector<2xf32>) -> vector<2xf32>
      %16 = "arith.maximumf"(%10, %15) : (vector<2xf32>, vector<2xf32>) -> vector<2xf32>
      "memref.store"(%16, %2, %8) : (vector<2xf32>, memref<1xvector<2xf32>>, index) -> ()
      "stream.push"(%11, %16, %1) : (i1, vector<2xf32>, !stream.fifo<vector<2xf32>, 2>) -> ()
      "scf.yield"() : () -> ()
    }) {stream.pipeline = 2 : i64} : (index, index, index) -> ()
    "func.return"() : () -> ()
  }) {arg_attrs = [{stream.name = "x0"}, {stream.name = "y"}], function_type = (!stream.fifo<vector<2xf32>, 16>, !stream.fifo<vector<2xf32>, 2>) -> (), stream.die = 0 : i64, stream.process, stream.style = "stp", sym_name = "p7_k0", sym_visibility = "private"} : () -> ()
  "func.func"() ({
  ^bb0(%0: !stream.fifo<vector<2xf32>, 2>, %1: !stream.fifo<f32, 2>):
    %2 = "arith.constant"() {value = true} : () -> i1
    %3 = "arith.constant"() {value = 1 : index} : () -> index
    %4 = "arith.constant"() {value = 2 : index} : () -> index
    %5 = "arith.constant"() {value = 0 : index} : () -> index
    "scf.for"(%5, %4, %3) ({
    ^bb0(%6: index):
      %7 = "arith.cmpi"(%6, %5) {predicate = 0 : i64} : (index, index) -> i1
      %8 = "stream.pop"(%7, %0) : (i1, !stream.fifo<vector<2xf32>, 2>) -> vector<2xf32>
      %9 = "stream.split_lanes"(%8, %6) : (vector<2xf32>, index) -> f32
      "stream.push"(%2, %9, %1) : (i1, f32, !stream.fifo<f32, 2>) -> ()
      "scf.yield"() : () -> ()
    }) {stream.pipeline = 1 : i64} : (index, index, index) -> ()
    "func.return"() : () -> ()
  }) {arg_attrs = [{stream.name = "x"}, {stream.name = "y"}], function_type = (!stream.fifo<vector<2xf32>, 2>, !stream.fifo<f32, 2>) -> (), stream.die = 0 : i64, stream.process, stream.style = "stp", sym_name = "p10_cast", sym_visibility = "private"} : () -> ()
  "func.func"() ({
  ^bb0(%0: !stream.fifo<vector<16xf32>, 2>, %1: !stream.fifo<f32, 2>, %2: !stream.fifo<vector<16xf32>, 2>):
    %3 = "arith.constant"() {value = true} : () -> i1
    %4 = "arith.constant"() {value = 1 : index} : () -> index
    %5 = "arith.constant"() {value = 2 : index} : () -> index
    %6 = "arith.constant"() {value = 0 : index} : () -> index
    "scf.for"(%6, %5, %4) ({
    ^bb0(%7: index):
      %8 = "stream.pop"(%3, %0) : (i1, !stream.fifo<vector<16xf32>, 2>) -> vector<16xf32>
      %9 = "stream.pop"(%3, %1) : (i1, !stream.fifo<f32, 2>) -> f32
      %10 = "vector.broadcast"(%9) : (f32) -> vector<16xf32>
      %11 = "arith.subf"(%8, %10) : (vector<16xf32>, vector<16xf32>) -> vector<16xf32>
      "stream.push"(%3, %11, %2) : (i1, vector<16xf32>, !stream.fifo<vector<16xf32>, 2>) -> ()
      "scf.yield"() : () -> ()
    }) {stream.pipeline = 1 : i64} : (index, index, index) -> ()
    "func.return"() : () -> ()
  }) {arg_attrs = [{stream.name = "x0"}, {stream.name = "x1"}, {stream.name = "y"}], function_type = (!stream.fifo<vector<16xf32>, 2>, !stream.fifo<f32, 2>, !stream.fifo<vector<16xf32>, 2>) -> (), stream.die = 0 : i64, stream.process, stream.style = "stp", sym_name = "p11_k1", sym_visibility = "private"} : () -> ()
  "func.func"() ({
  ^bb0(%0: memref<?xf32>, %1: !stream.fifo<f32, 32>):
    %2 = "arith.constant"() {value = true} : () -> i1
    %3 = "arith.constant"() {value = 1 : index} : () -> index
    %4 = "arith.constant"() {value = 32 : index} : () -> index
    %5 = "arith.constant"() {value = 0 : index} : () -> index
    "scf.for"(%5, %4, %3) ({
    ^bb0(%6: index):
      %7 = "stream.pop"(%2, %1) : (i1, !stream.fifo<f32, 32>) -> f32
      "memref.store"(%7, %0, %6) : (f32, memref<?xf32>, index) -> ()
      "scf.yield"() : () -> ()
    }) {stream.pipeline = 1 : i64} : (index, index, index) -> ()
    "func.return"() : () -> ()
  }) {arg_attrs = [{stream.name = "m"}, {stream.name = "x"}], function_type = (memref<?xf32>, !stream.fifo<f32, 32>) -> (), stream.die = 0 : i64, stream.process, stream.style = "stp", sym_name = "p13_store_results_f32", sym_visibility = "private"} : () -> ()
  "func.func"() ({
  ^bb0(%0: !stream.fifo<vector<16xf32>, 2>, %1: !stream.fifo<f32, 32>):
    %2 = "arith.constant"() {value = true} : () -> i1
    %3 = "arith.constant"() {value = 16 : index} : () -> index
    %4 = "arith.constant"() {value = 1 : index} : () -> index
    %5 = "arith.constant"() {value = 2 : index} : () -> index
    %6 = "arith.constant"() {value = 0 : index} : () -> index
    "scf.for"(%6, %5, %4) ({
    ^bb0(%7: index):
      "scf.for"(%6, %3, %4) ({
      ^bb0(%8: index):
        %9 = "arith.cmpi"(%8, %6) {predicate = 0 : i64} : (index, index) -> i1
        %10 = "stream.pop"(%9, %0) : (i1, !stream.fifo<vector<16xf32>, 2>) -> vector<16xf32>
        %11 = "stream.split_lanes"(%10, %8) : (vector<16xf32>, index) -> f32
        "stream.push"(%2, %11, %1) : (i1, f32, !stream.fifo<f32, 32>) -> ()
        "scf.yield"() : () -> ()
      }) {stream.pipeline = 1 : i64} : (index, index, index) -> ()
      "scf.yield"() : () -> ()
    }) : (index, index, index) -> ()
    "func.return"() : () -> ()
  }) {arg_attrs = [{stream.name = "x"}, {stream.name = "y"}], function_type = (!stream.fifo<vector<16xf32>, 2>, !stream.fifo<f32, 32>) -> (), stream.die = 0 : i64, stream.process, stream.style = "stp", sym_name = "p15_cast", sym_visibility = "private"} : () -> ()
}) {stream.level = "hardware"} : () -> ()
