// stc compile --from fold_converters --to hardware
"builtin.module"() ({
  "func.func"() ({
  ^bb0(%0: tensor<4x8xf32>):
    %1 = "stream.load"(%0) {operand_segment_sizes = array<i32: 1, 0>, tensor = tensor<4x8xf32>} : (tensor<4x8xf32>) -> !stream.itensor<vector<1x2xf32>, [4, 4], [1, 2], affine_map<(d0, d1) -> (d0, d1)>>
    %2:3 = "stream.buffer"(%1) {buffer_elements = 32 : i64, service_rounds = array<i64: 0, 1, 2>, result_segment_sizes = array<i32: 2, 1, 0, 0, 0, 0, 0, 0>, shared_loops = 0 : i64, tensor = tensor<4x8xf32>} : (!stream.itensor<vector<1x2xf32>, [4, 4], [1, 2], affine_map<(d0, d1) -> (d0, d1)>>) -> (!stream.itensor<vector<1x2xf32>, [4, 4], [1, 2], affine_map<(d0, d1) -> (d0, d1)>>, !stream.itensor<vector<1x2xf32>, [4, 4], [1, 2], affine_map<(d0, d1) -> (d0, d1)>>, !stream.itensor<vector<1x2xf32>, [4, 4], [2, 1], affine_map<(d0, d1) -> (d1, d0)>>)
    %3 = "stream.chunk"(%2#0) {high = array<i64: 4, 2>, low = array<i64: 0, 0>, tensor = tensor<4x8xf32>} : (!stream.itensor<vector<1x2xf32>, [4, 4], [1, 2], affine_map<(d0, d1) -> (d0, d1)>>) -> !stream.itensor<vector<1x2xf32>, [4, 2], [1, 2], affine_map<(d0, d1) -> (d0, d1)>>
    %4 = "stream.chunk"(%2#1) {high = array<i64: 4, 4>, low = array<i64: 0, 2>, tensor = tensor<4x8xf32>} : (!stream.itensor<vector<1x2xf32>, [4, 4], [1, 2], affine_map<(d0, d1) -> (d0, d1)>>) -> !stream.itensor<vector<1x2xf32>, [4, 2], [1, 2], affine_map<(d0, d1) -> (d0, d1 + 4)>>
    %5 = "stream.concat"(%4, %3) {operand_segment_sizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>, tensor = tensor<4x8xf32>, words = array<i64: 2, 2>} : (!stream.itensor<vector<1x2xf32>, [4, 2], [1, 2], affine_map<(d0, d1) -> (d0, d1 + 4)>>, !stream.itensor<vector<1x2xf32>, [4, 2], [1, 2], affine_map<(d0, d1) -> (d0, d1)>>) -> !stream.itensor<vector<1x2xf32>, [4, 4], [1, 2], affine_map<(d0, d1) -> (d0, d1)>>
    %6 = "stream.reassociate"(%2#2) {tensor = tensor<8x4xf32>} : (!stream.itensor<vector<1x2xf32>, [4, 4], [2, 1], affine_map<(d0, d1) -> (d1, d0)>>) -> !stream.itensor<vector<1x2xf32>, [8, 2], [1, 2], affine_map<(d0, d1) -> (d0, d1)>>
    %7 = "stream.reassociate"(%5) {tensor = tensor<8x4xf32>} : (!stream.itensor<vector<1x2xf32>, [4, 4], [1, 2], affine_map<(d0, d1) -> (d0, d1)>>) -> !stream.itensor<vector<1x2xf32>, [8, 2], [1, 2], affine_map<(d0, d1) -> (d0, d1)>>
    %8 = "stream.join"(%7, %6) {operand_segment_sizes = array<i32: 2, 0, 0, 0, 0, 0, 0, 0>, tensor = tensor<8x8xf32>} : (!stream.itensor<vector<1x2xf32>, [8, 2], [1, 2], affine_map<(d0, d1) -> (d0, d1)>>, !stream.itensor<vector<1x2xf32>, [8, 2], [1, 2], affine_map<(d0, d1) -> (d0, d1)>>) -> !stream.itensor<vector<1x4xf32>, [8, 2], [1, 4], affine_map<(d0, d1) -> (d0, d1)>>
    "stream.store"(%8) {operand_segment_sizes = array<i32: 1, 0, 0>, result = array<i64: 0>, tensor = tensor<8x8xf32>} : (!stream.itensor<vector<1x4xf32>, [8, 2], [1, 4], affine_map<(d0, d1) -> (d0, d1)>>) -> ()
    "func.return"() : () -> ()
  }) {function_type = (tensor<4x8xf32>) -> (), stream.inputs = [{name = "x", role = "input", type = tensor<4x8xf32>}], stream.outputs = [{name = "result0", role = "output", type = tensor<8x8xf32>}], sym_name = "main"} : () -> ()
}) {stream.level = "stream"} : () -> ()
