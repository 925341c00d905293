// stc compile --register-tiles none --to stream
func.func @main(%x: tensor<4x16xf32>, %w: tensor<16x64xf32> {stream.role = "weight"}, %c: tensor<16xf32>, %s: tensor<16xf32>) -> tensor<4x4x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x64xf32>) -> tensor<4x64xf32>
  %m = linalg.matmul ins(%x, %w : tensor<4x16xf32>, tensor<16x64xf32>) outs(%f : tensor<4x64xf32>) -> tensor<4x64xf32>
  %q = tensor.expand_shape %m [[0], [1, 2]] output_shape [4, 4, 16] : tensor<4x64xf32> into tensor<4x4x16xf32>
  %a = tensor.extract_slice %q[0, 0, 0] [4, 4, 8] [1, 1, 1] : tensor<4x4x16xf32> to tensor<4x4x8xf32>
  %b = tensor.extract_slice %q[0, 0, 8] [4, 4, 8] [1, 1, 1] : tensor<4x4x16xf32> to tensor<4x4x8xf32>
  %e8 = tensor.empty() : tensor<4x4x8xf32>
  %n = linalg.negf ins(%b : tensor<4x4x8xf32>) outs(%e8 : tensor<4x4x8xf32>) -> tensor<4x4x8xf32>
  %r = tensor.concat dim(2) %n, %a : (tensor<4x4x8xf32>, tensor<4x4x8xf32>) -> tensor<4x4x16xf32>
  %o = tensor.empty() : tensor<4x4x16xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (k)>, affine_map<(i, j, k) -> (k)>, affine_map<(i, j, k) -> (i, j, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%q, %r, %c, %s : tensor<4x4x16xf32>, tensor<4x4x16xf32>, tensor<16xf32>, tensor<16xf32>) outs(%o : tensor<4x4x16xf32>) {
  ^bb0(%q0: f32, %r0: f32, %c0: f32, %s0: f32, %o0: f32):
    %p = arith.mulf %q0, %c0 : f32
    %t = arith.mulf %r0, %s0 : f32
    %u = arith.addf %p, %t : f32
    linalg.yield %u : f32
  } -> tensor<4x4x16xf32>
  return %y : tensor<4x4x16xf32>
}
