// stc compile --quant w4a8 --engine-pes 4 --stop-after map_contractions
// A costly operation after the scaled sums becomes a kernel of its own, whose maker then lacks the loop of one point that the sums have: still a phase of the unit.
#x = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>
#w = affine_map<(d0, d1, d2, d3) -> (d2, d3)>
#y = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#e = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
module {
  func.func @main(%x: tensor<1x1x2048xf32>, %w0: tensor<64x2048xf32> {stream.name = "w0", stream.role = "weight"}, %u: tensor<1x1x64xf32>) -> tensor<1x1x64xf32> {
    %one = arith.constant 1.0 : f32
    %zero = arith.constant 0.0 : f32
    %e0 = tensor.empty() : tensor<1x1x64xf32>
    %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<1x1x64xf32>) -> tensor<1x1x64xf32>
    %y = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x, %w0 : tensor<1x1x2048xf32>, tensor<64x2048xf32>) outs(%f0 : tensor<1x1x64xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %c, %p : f32
      linalg.yield %s : f32
    } -> tensor<1x1x64xf32>
    %z = linalg.generic {indexing_maps = [#e, #e, #e], iterator_types = ["parallel", "parallel", "parallel"]} ins(%y, %u : tensor<1x1x64xf32>, tensor<1x1x64xf32>) outs(%e0 : tensor<1x1x64xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %n = arith.negf %a : f32
      %p = math.exp %n : f32
      %q = arith.addf %p, %one : f32
      %r = arith.divf %a, %q : f32
      %t = arith.mulf %r, %b : f32
      linalg.yield %t : f32
    } -> tensor<1x1x64xf32>
    return %z : tensor<1x1x64xf32>
  }
}
