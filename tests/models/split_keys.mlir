// Keys of two parts, one for each head and one that all heads share; the mask has all rows.
module {
  func.func @main(%q: tensor<2x8xf32> {stream.name = "q"}, %mask: tensor<2x16xf32> {stream.name = "mask"}, %k: tensor<2x15x4xf32> {stream.name = "k", stream.role = "state", stream.dims = ["", "past", ""]}, %all: tensor<15x4xf32> {stream.name = "all", stream.role = "state", stream.dims = ["past", ""]}, %n: tensor<2x1x4xf32> {stream.name = "n"}, %m: tensor<1x4xf32> {stream.name = "m"}, %past: tensor<1xi64> {stream.name = "past"}) -> (tensor<2xf32>, tensor<2x1x4xf32> {stream.name = "k", stream.role = "state", stream.axis = 1 : i64, stream.position = "past"}, tensor<1x4xf32> {stream.name = "all", stream.role = "state", stream.axis = 0 : i64, stream.position = "past"}) {
    %own = tensor.concat dim(1) %n, %k : (tensor<2x1x4xf32>, tensor<2x15x4xf32>) -> tensor<2x16x4xf32>
    %rows = tensor.concat dim(0) %m, %all : (tensor<1x4xf32>, tensor<15x4xf32>) -> tensor<16x4xf32>
    %ek = tensor.empty() : tensor<2x16x4xf32>
    %shared = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%rows : tensor<16x4xf32>) outs(%ek : tensor<2x16x4xf32>) {
    ^bb0(%a: f32, %o: f32):
      linalg.yield %a : f32
    } -> tensor<2x16x4xf32>
    %c = tensor.concat dim(2) %own, %shared : (tensor<2x16x4xf32>, tensor<2x16x4xf32>) -> tensor<2x16x8xf32>
    %z = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<2x16xf32>
    %s = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%q, %c : tensor<2x8xf32>, tensor<2x16x8xf32>) outs(%mask : tensor<2x16xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %p = arith.mulf %a, %b : f32
      %r = arith.addf %o, %p : f32
      linalg.yield %r : f32
    } -> tensor<2x16xf32>
    %x = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%s : tensor<2x16xf32>) outs(%e : tensor<2x16xf32>) {
    ^bb0(%a: f32, %o: f32):
      %r = math.exp %a : f32
      linalg.yield %r : f32
    } -> tensor<2x16xf32>
    %e1 = tensor.empty() : tensor<2xf32>
    %i1 = linalg.fill ins(%z : f32) outs(%e1 : tensor<2xf32>) -> tensor<2xf32>
    %y = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<2x16xf32>) outs(%i1 : tensor<2xf32>) {
    ^bb0(%a: f32, %o: f32):
      %r = arith.addf %o, %a : f32
      linalg.yield %r : f32
    } -> tensor<2xf32>
    return %y, %n, %m : tensor<2xf32>, tensor<2x1x4xf32>, tensor<1x4xf32>
  }
}
