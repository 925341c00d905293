// stc compile --platform u55c -o %o
"builtin.module"() ({
  "func.func"() ({
  ^bb0(%0: memref<?xf32>):
    "func.call"(%0, %1) {callee = @g} : (memref<?xf32>, f32) -> ()
    "func.return"() : () -> ()
  }) {function_type = (memref<?xf32>) -> (), sym_name = "f"} : () -> ()
  "func.func"() ({
  ^bb0(%0: memref<?xf32>, %1: f32):
    %2 = "arith.constant"() {value = dense<0.5> : vecindextor<16xf32>} : () -> vector<16xf32>
    "func.return"() : () -> ()
  }) {function_type = (memref<?xf32>, f32) -> (), sym_name = "g"} : () -> ()
}) : () -> ()
