// One query on a cache whose rows are counted by the input "past"; the new row comes first, and is appended.
module {
  func.func @main(%q: tensor<2x8xf32> {stream.name = "q"}, %k: tensor<2x15x8xf32> {stream.name = "k", stream.role = "state", stream.dims = ["", "past", ""]}, %n: tensor<2x1x8xf32> {stream.name = "n"}, %past: tensor<1xi64> {stream.name = "past"}) -> (tensor<2xf32>, tensor<2x1x8xf32> {stream.name = "k", stream.role = "state", stream.axis = 1 : i64, stream.position = "past"}) {
    %c = tensor.concat dim(1) %n, %k : (tensor<2x1x8xf32>, tensor<2x15x8xf32>) -> tensor<2x16x8xf32>
    %z = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<2x16xf32>
    %i = linalg.fill ins(%z : f32) outs(%e : tensor<2x16xf32>) -> tensor<2x16xf32>
    %s = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%q, %c : tensor<2x8xf32>, tensor<2x16x8xf32>) outs(%i : tensor<2x16xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %m = arith.mulf %a, %b : f32
      %r = arith.addf %o, %m : f32
      linalg.yield %r : f32
    } -> tensor<2x16xf32>
    %x = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%s : tensor<2x16xf32>) outs(%e : tensor<2x16xf32>) {
    ^bb0(%a: f32, %o: f32):
      %m = math.exp %a : f32
      linalg.yield %m : f32
    } -> tensor<2x16xf32>
    %e1 = tensor.empty() : tensor<2xf32>
    %i1 = linalg.fill ins(%z : f32) outs(%e1 : tensor<2xf32>) -> tensor<2xf32>
    %y = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<2x16xf32>) outs(%i1 : tensor<2xf32>) {
    ^bb0(%a: f32, %o: f32):
      %r = arith.addf %o, %a : f32
      linalg.yield %r : f32
    } -> tensor<2xf32>
    return %y, %n : tensor<2xf32>, tensor<2x1x8xf32>
  }
}
