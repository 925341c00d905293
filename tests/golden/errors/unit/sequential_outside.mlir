// stc check
"builtin.module"() ({
  "func.func"() ({
  ^bb0(%0: tensor<40xf32>, %1: tensor<40xf32>):
    %20 = "arith.constant"() {value = 7 : index} : () -> index
    %2 = "stream.sequential"(%0, %1) ({
    ^bb0(%3: memref<40xf32>, %4: memref<40xf32>):
      %5 = "arith.constant"() {value = 1 : index} : () -> index
      %6 = "arith.constant"() {value = 0 : index} : () -> index
      %7 = "arith.constant"() {value = 39 : index} : () -> index
      "scf.for"(%6, %7, %5) ({
      ^bb0(%8: index):
        %9 = "memref.load"(%3, %20) {stream.distance = 1 : i64} : (memref<40xf32>, index) -> f32
        %10 = "affine.apply"(%8) {map = affine_map<(d0) -> (d0 + 1)>} : (index) -> index
        %11 = "memref.load"(%4, %10) : (memref<40xf32>, index) -> f32
        %12 = "arith.mulf"(%9, %11) : (f32, f32) -> f32
        %13 = "affine.apply"(%8) {map = affine_map<(d0) -> (d0 + 1)>} : (index) -> index
        "memref.store"(%12, %3, %13) : (f32, memref<40xf32>, index) -> ()
        "scf.yield"() : () -> ()
      }) : (index, index, index) -> ()
      "vector.yield"(%3) : (memref<40xf32>) -> ()
    }) {operand_segment_sizes = array<i32: 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, result_segment_sizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<40xf32>, tensor<40xf32>) -> tensor<40xf32>
    "func.return"(%2) : (tensor<40xf32>) -> ()
  }) {arg_attrs = [{stream.name = "y", stream.role = "input"}, {stream.name = "x", stream.role = "input"}], function_type = (tensor<40xf32>, tensor<40xf32>) -> tensor<40xf32>, res_attrs = [{stream.name = "y", stream.role = "output"}], sym_name = "f"} : () -> ()
}) {stream.fused = array<i64: 0, 0>, stream.level = "tensor", stream.unfused = array<i64: 0, 0>} : () -> ()
