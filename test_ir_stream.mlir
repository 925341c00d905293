"builtin.module"() ({
  "func.func"() ({
  ^bb0(%0: tensor<8x16xf32>):
    %1 = "stream.load"(%0) {operand_segment_sizes = array<i32: 1, 0>, tensor = tensor<8x16xf32>} : (tensor<8x16xf32>) -> !stream.itensor<vector<4xf32>, [32], [4], affine_map<(d0) -> (d0)>>
    %2, %3 = "stream.fork"(%1) {tensor = tensor<8x16xf32>} : (!stream.itensor<vector<4xf32>, [32], [4], affine_map<(d0) -> (d0)>>) -> (!stream.itensor<vector<4xf32>, [32], [4], affine_map<(d0) -> (d0)>>, !stream.itensor<vector<4xf32>, [32], [4], affine_map<(d0) -> (d0)>>)
    "stream.store"(%2) {operand_segment_sizes = array<i32: 1, 0, 0>, result = array<i64: 0>} : (!stream.itensor<vector<4xf32>, [32], [4], affine_map<(d0) -> (d0)>>) -> ()
    "stream.store"(%3) {operand_segment_sizes = array<i32: 1, 0, 0>, result = array<i64: 1>} : (!stream.itensor<vector<4xf32>, [32], [4], affine_map<(d0) -> (d0)>>) -> ()
    "func.return"() : () -> ()
  }) {function_type = (tensor<8x16xf32>) -> (), sym_name = "main"} : () -> ()
}) {stream.level = "stream"} : () -> ()
