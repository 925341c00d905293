// stc compile --quant w4a8 --engine-pes 4 --products-per-dsp 1 --platform few_dsp.json -o %o
#x = affine_map<(d0, d1, d2) -> (d0, d2)>
#w = affine_map<(d0, d1, d2) -> (d1, d2)>
#y = affine_map<(d0, d1, d2) -> (d0, d1)>
module {
  func.func @main(%x: tensor<1x128xf32>, %w0: tensor<128x128xf32> {stream.name = "w0", stream.role = "weight"}, %w1: tensor<10x128xf32> {stream.name = "w1", stream.role = "weight"}) -> tensor<1x10xf32> {
    %zero = arith.constant 0.0 : f32
    %e0 = tensor.empty() : tensor<1x128xf32>
    %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<1x128xf32>) -> tensor<1x128xf32>
    %y = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w0 : tensor<1x128xf32>, tensor<128x128xf32>) outs(%f0 : tensor<1x128xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %c, %p : f32
      linalg.yield %s : f32
    } -> tensor<1x128xf32>
    %e1 = tensor.empty() : tensor<1x10xf32>
    %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<1x10xf32>) -> tensor<1x10xf32>
    %z = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]} ins(%y, %w1 : tensor<1x128xf32>, tensor<10x128xf32>) outs(%f1 : tensor<1x10xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %c, %p : f32
      linalg.yield %s : f32
    } -> tensor<1x10xf32>
    return %z : tensor<1x10xf32>
  }
}
