func.func @main(%rows: tensor<3xi64> {stream.name = "rows", stream.role = "input"}, %at: tensor<1xi64> {stream.name = "at", stream.role = "input"}, %window: tensor<2xf32> {stream.name = "window", stream.role = "weight"}, %v0: tensor<3x7x1xf32> {stream.name = "x0", stream.role = "input"}, %v1: tensor<1x7xf32> {stream.name = "x1", stream.role = "input"}, %w0: tensor<3x1x3xf32> {stream.name = "w0", stream.role = "weight"}, %w1: tensor<1x4x3x5xf32> {stream.name = "w1", stream.role = "input"}, %w2: tensor<1x4x3x3xf32> {stream.name = "w2", stream.role = "weight"}, %w4: tensor<7xf32> {stream.name = "w4", stream.role = "weight"}, %w5: tensor<7xf32> {stream.name = "w5", stream.role = "weight"}, %w6: tensor<7x7xf32> {stream.name = "w6", stream.role = "weight"}, %w7: tensor<7xf32> {stream.name = "w7", stream.role = "weight"}, %w8: tensor<7x7xf32> {stream.name = "w8", stream.role = "weight"}, %w9: tensor<7x7xf32> {stream.name = "w9", stream.role = "weight"}, %w10: tensor<1x5x7xf32> {stream.name = "w10", stream.role = "state"}, %w11: tensor<1x5x7xf32> {stream.name = "w11", stream.role = "state"}, %w12: tensor<7x7xf32> {stream.name = "w12", stream.role = "weight"}, %w13: tensor<17x7xf32> {stream.name = "w13", stream.role = "weight"}, %w14: tensor<7x17xf32> {stream.name = "w14", stream.role = "weight"}, %w15: tensor<7xf32> {stream.name = "w15", stream.role = "weight"}, %w16: tensor<7xf32> {stream.name = "w16", stream.role = "weight"}, %w17: tensor<7xf32> {stream.name = "w17", stream.role = "weight"}, %w18: tensor<7x7xf32> {stream.name = "w18", stream.role = "weight"}, %w19: tensor<7xf32> {stream.name = "w19", stream.role = "weight"}, %w20: tensor<7x7xf32> {stream.name = "w20", stream.role = "weight"}, %w21: tensor<7x7xf32> {stream.name = "w21", stream.role = "weight"}, %w22: tensor<1x5x7xf32> {stream.name = "w22", stream.role = "state"}, %w23: tensor<1x5x7xf32> {stream.name = "w23", stream.role = "state"}, %w24: tensor<7x7xf32> {stream.name = "w24", stream.role = "weight"}, %w25: tensor<17x7xf32> {stream.name = "w25", stream.role = "weight"}, %w26: tensor<7x17xf32> {stream.name = "w26", stream.role = "weight"}, %w27: tensor<7xf32> {stream.name = "w27", stream.role = "weight"}, %w28: tensor<7xf32> {stream.name = "w28", stream.role = "weight"}, %w29: tensor<7xf32> {stream.name = "w29", stream.role = "weight"}, %w30: tensor<7x7xf32> {stream.name = "w30", stream.role = "weight"}, %w31: tensor<7xf32> {stream.name = "w31", stream.role = "weight"}, %w32: tensor<7x7xf32> {stream.name = "w32", stream.role = "weight"}, %w33: tensor<7x7xf32> {stream.name = "w33", stream.role = "weight"}, %w34: tensor<1x5x7xf32> {stream.name = "w34", stream.role = "state"}, %w35: tensor<1x5x7xf32> {stream.name = "w35", stream.role = "state"}, %w36: tensor<7x7xf32> {stream.name = "w36", stream.role = "weight"}, %w37: tensor<17x7xf32> {stream.name = "w37", stream.role = "weight"}, %w38: tensor<7x17xf32> {stream.name = "w38", stream.role = "weight"}, %w39: tensor<7xf32> {stream.name = "w39", stream.role = "weight"}, %w40: tensor<7xf32> {stream.name = "w40", stream.role = "weight"}, %w41: tensor<7xf32> {stream.name = "w41", stream.role = "weight"}, %w42: tensor<7x7xf32> {stream.name = "w42", stream.role = "weight"}, %w43: tensor<7xf32> {stream.name = "w43", stream.role = "weight"}, %w44: tensor<7x7xf32> {stream.name = "w44", stream.role = "weight"}, %w45: tensor<7x7xf32> {stream.name = "w45", stream.role = "weight"}, %w46: tensor<1x5x7xf32> {stream.name = "w46", stream.role = "state"}, %w47: tensor<1x5x7xf32> {stream.name = "w47", stream.role = "state"}, %w48: tensor<7x7xf32> {stream.name = "w48", stream.role = "weight"}, %w49: tensor<17x7xf32> {stream.name = "w49", stream.role = "weight"}, %w50: tensor<7x17xf32> {stream.name = "w50", stream.role = "weight"}, %w51: tensor<7xf32> {stream.name = "w51", stream.role = "weight"}, %w52: tensor<515x17xf32> {stream.name = "w52", stream.role = "weight"}, %w53: tensor<515xf32> {stream.name = "w53", stream.role = "weight"}) -> (tensor<1x515xf32>, tensor<1x7xf32>, tensor<1x1x7xf32>, tensor<1x1x7xf32> {stream.name = "w10", stream.role = "state", stream.axis = 1 : i64, stream.position = "at"}, tensor<1x1x7xf32> {stream.name = "w11", stream.role = "state", stream.axis = 1 : i64, stream.position = "at"}, tensor<1x1x7xf32> {stream.name = "w22", stream.role = "state", stream.axis = 1 : i64, stream.position = "at"}, tensor<1x1x7xf32> {stream.name = "w23", stream.role = "state", stream.axis = 1 : i64, stream.position = "at"}, tensor<1x1x7xf32> {stream.name = "w34", stream.role = "state", stream.axis = 1 : i64, stream.position = "at"}, tensor<1x1x7xf32> {stream.name = "w35", stream.role = "state", stream.axis = 1 : i64, stream.position = "at"}, tensor<1x1x7xf32> {stream.name = "w46", stream.role = "state", stream.axis = 1 : i64, stream.position = "at"}, tensor<1x1x7xf32> {stream.name = "w47", stream.role = "state", stream.axis = 1 : i64, stream.position = "at"}) {
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f32
  %low = arith.constant 0xFF800000 : f32
  %epsilon = arith.constant 1.0e-05 : f64
  %e2 = tensor.empty() : tensor<3x7x3xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<3x7x3xf32>) -> tensor<3x7x3xf32>
  %v2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%v0, %w0 : tensor<3x7x1xf32>, tensor<3x1x3xf32>) outs(%f2 : tensor<3x7x3xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %p, %o : f32
    linalg.yield %r : f32
  } -> tensor<3x7x3xf32>
  %e3 = tensor.empty() : tensor<1x4x3x5xf32>
  %v3 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%w1 : tensor<1x4x3x5xf32>) outs(%e3 : tensor<1x4x3x5xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.mulf %a, %half : f32
    linalg.yield %r : f32
  } -> tensor<1x4x3x5xf32>
  %v4 = tensor.pad %v3 low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i0: index, %i1: index, %i2: index, %i3: index):
    tensor.yield %zero : f32
  } : tensor<1x4x3x5xf32> to tensor<1x4x5x7xf32>
  %e5 = tensor.empty() : tensor<1x1x3x5xf32>
  %f5 = linalg.fill ins(%zero : f32) outs(%e5 : tensor<1x1x3x5xf32>) -> tensor<1x1x3x5xf32>
  %v5 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d4, d2 + d5, d3 + d6)>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d1, d4, d5, d6)>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%v4, %w2 : tensor<1x4x5x7xf32>, tensor<1x4x3x3xf32>) outs(%f5 : tensor<1x1x3x5xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %p, %o : f32
    linalg.yield %r : f32
  } -> tensor<1x1x3x5xf32>
  %e6 = tensor.empty() : tensor<1x1x3x5xf32>
  %v6 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v5 : tensor<1x1x3x5xf32>) outs(%e6 : tensor<1x1x3x5xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = math.erf %a : f32
    %s = arith.addf %t, %half : f32
    %r = arith.mulf %a, %s : f32
    linalg.yield %r : f32
  } -> tensor<1x1x3x5xf32>
  %window3 = tensor.empty() : tensor<2x2xf32>
  %e7 = tensor.empty() : tensor<1x1x1x2xf32>
  %f7 = linalg.fill ins(%low : f32) outs(%e7 : tensor<1x1x1x2xf32>) -> tensor<1x1x1x2xf32>
  %v7 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2 * 2 + d4, d3 * 2 + d5)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d4, d5)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%v6, %window3 : tensor<1x1x3x5xf32>, tensor<2x2xf32>) outs(%f7 : tensor<1x1x1x2xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.maximumf %a, %o : f32
    linalg.yield %r : f32
  } -> tensor<1x1x1x2xf32>
  %e8 = tensor.empty() : tensor<1xf32>
  %f8 = linalg.fill ins(%zero : f32) outs(%e8 : tensor<1xf32>) -> tensor<1xf32>
  %v8 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%v1 : tensor<1x7xf32>) outs(%f8 : tensor<1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %a, %o : f32
    linalg.yield %r : f32
  } -> tensor<1xf32>
  %e9 = tensor.empty() : tensor<1x7xf32>
  %v9 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v1, %v8 : tensor<1x7xf32>, tensor<1xf32>) outs(%e9 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %n = arith.constant 7.0 : f32
    %m = arith.divf %b, %n : f32
    %r = arith.subf %a, %m : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %e10 = tensor.empty() : tensor<1x7xf32>
  %v10 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v9 : tensor<1x7xf32>) outs(%e10 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.mulf %a, %a : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %e11 = tensor.empty() : tensor<1xf32>
  %f11 = linalg.fill ins(%zero : f32) outs(%e11 : tensor<1xf32>) -> tensor<1xf32>
  %v11 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%v10 : tensor<1x7xf32>) outs(%f11 : tensor<1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %a, %o : f32
    linalg.yield %r : f32
  } -> tensor<1xf32>
  %e12 = tensor.empty() : tensor<1xf32>
  %v12 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%v11 : tensor<1xf32>) outs(%e12 : tensor<1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.constant 7.0 : f32
    %m = arith.divf %a, %n : f32
    %t = arith.truncf %epsilon : f64 to f32
    %s = arith.addf %m, %t : f32
    %r = math.rsqrt %s : f32
    linalg.yield %r : f32
  } -> tensor<1xf32>
  %e13 = tensor.empty() : tensor<1x7xf32>
  %v13 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v9, %v12 : tensor<1x7xf32>, tensor<1xf32>) outs(%e13 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.mulf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %e14 = tensor.empty() : tensor<1x7xf32>
  %v14 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v13, %w4 : tensor<1x7xf32>, tensor<7xf32>) outs(%e14 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.mulf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %e15 = tensor.empty() : tensor<1x7xf32>
  %v15 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v14, %w5 : tensor<1x7xf32>, tensor<7xf32>) outs(%e15 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.addf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %e16 = tensor.empty() : tensor<1x7xf32>
  %f16 = linalg.fill ins(%zero : f32) outs(%e16 : tensor<1x7xf32>) -> tensor<1x7xf32>
  %v16 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%v15, %w6 : tensor<1x7xf32>, tensor<7x7xf32>) outs(%f16 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %p, %o : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %e17 = tensor.empty() : tensor<1x7xf32>
  %v17 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v16, %w7 : tensor<1x7xf32>, tensor<7xf32>) outs(%e17 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.addf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %v18 = tensor.expand_shape %v17 [[0], [1, 2]] output_shape [1, 1, 7] : tensor<1x7xf32> into tensor<1x1x7xf32>
  %e19 = tensor.empty() : tensor<1x1x7xf32>
  %v19 = linalg.transpose ins(%v18 : tensor<1x1x7xf32>) outs(%e19 : tensor<1x1x7xf32>) permutation = [1, 0, 2]
  %e20 = tensor.empty() : tensor<1x7xf32>
  %f20 = linalg.fill ins(%zero : f32) outs(%e20 : tensor<1x7xf32>) -> tensor<1x7xf32>
  %v20 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%v15, %w8 : tensor<1x7xf32>, tensor<7x7xf32>) outs(%f20 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %p, %o : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %v21 = tensor.expand_shape %v20 [[0], [1, 2]] output_shape [1, 1, 7] : tensor<1x7xf32> into tensor<1x1x7xf32>
  %e22 = tensor.empty() : tensor<1x1x7xf32>
  %v22 = linalg.transpose ins(%v21 : tensor<1x1x7xf32>) outs(%e22 : tensor<1x1x7xf32>) permutation = [1, 0, 2]
  %e23 = tensor.empty() : tensor<1x7xf32>
  %f23 = linalg.fill ins(%zero : f32) outs(%e23 : tensor<1x7xf32>) -> tensor<1x7xf32>
  %v23 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%v15, %w9 : tensor<1x7xf32>, tensor<7x7xf32>) outs(%f23 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %p, %o : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %v24 = tensor.expand_shape %v23 [[0], [1, 2]] output_shape [1, 1, 7] : tensor<1x7xf32> into tensor<1x1x7xf32>
  %e25 = tensor.empty() : tensor<1x1x7xf32>
  %v25 = linalg.transpose ins(%v24 : tensor<1x1x7xf32>) outs(%e25 : tensor<1x1x7xf32>) permutation = [1, 0, 2]
  %v26 = tensor.concat dim(1) %w10, %v22 : (tensor<1x5x7xf32>, tensor<1x1x7xf32>) -> tensor<1x6x7xf32>
  %v27 = tensor.concat dim(1) %w11, %v25 : (tensor<1x5x7xf32>, tensor<1x1x7xf32>) -> tensor<1x6x7xf32>
  %e28 = tensor.empty() : tensor<1x1x6xf32>
  %f28 = linalg.fill ins(%zero : f32) outs(%e28 : tensor<1x1x6xf32>) -> tensor<1x1x6xf32>
  %v28 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%v19, %v26 : tensor<1x1x7xf32>, tensor<1x6x7xf32>) outs(%f28 : tensor<1x1x6xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %p, %o : f32
    linalg.yield %r : f32
  } -> tensor<1x1x6xf32>
  %e29 = tensor.empty() : tensor<1x1x6xf32>
  %v29 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%v28 : tensor<1x1x6xf32>) outs(%e29 : tensor<1x1x6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.mulf %a, %half : f32
    linalg.yield %r : f32
  } -> tensor<1x1x6xf32>
  %e30 = tensor.empty() : tensor<1x1x1xf32>
  %f30 = linalg.fill ins(%low : f32) outs(%e30 : tensor<1x1x1xf32>) -> tensor<1x1x1xf32>
  %v30 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, 0)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%v29 : tensor<1x1x6xf32>) outs(%f30 : tensor<1x1x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.maximumf %a, %o : f32
    linalg.yield %r : f32
  } -> tensor<1x1x1xf32>
  %e31 = tensor.empty() : tensor<1x1x6xf32>
  %v31 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, 0)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%v29, %v30 : tensor<1x1x6xf32>, tensor<1x1x1xf32>) outs(%e31 : tensor<1x1x6xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.subf %a, %b : f32
    %r = math.exp %s : f32
    linalg.yield %r : f32
  } -> tensor<1x1x6xf32>
  %e32 = tensor.empty() : tensor<1x1x1xf32>
  %f32 = linalg.fill ins(%zero : f32) outs(%e32 : tensor<1x1x1xf32>) -> tensor<1x1x1xf32>
  %v32 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, 0)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%v31 : tensor<1x1x6xf32>) outs(%f32 : tensor<1x1x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %a, %o : f32
    linalg.yield %r : f32
  } -> tensor<1x1x1xf32>
  %e33 = tensor.empty() : tensor<1x1x6xf32>
  %v33 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, 0)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%v31, %v32 : tensor<1x1x6xf32>, tensor<1x1x1xf32>) outs(%e33 : tensor<1x1x6xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.divf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<1x1x6xf32>
  %e34 = tensor.empty() : tensor<1x1x7xf32>
  %f34 = linalg.fill ins(%zero : f32) outs(%e34 : tensor<1x1x7xf32>) -> tensor<1x1x7xf32>
  %v34 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%v33, %v27 : tensor<1x1x6xf32>, tensor<1x6x7xf32>) outs(%f34 : tensor<1x1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %p, %o : f32
    linalg.yield %r : f32
  } -> tensor<1x1x7xf32>
  %e35 = tensor.empty() : tensor<1x1x7xf32>
  %v35 = linalg.transpose ins(%v34 : tensor<1x1x7xf32>) outs(%e35 : tensor<1x1x7xf32>) permutation = [1, 0, 2]
  %v36 = tensor.collapse_shape %v35 [[0], [1, 2]] : tensor<1x1x7xf32> into tensor<1x7xf32>
  %e37 = tensor.empty() : tensor<1x7xf32>
  %f37 = linalg.fill ins(%zero : f32) outs(%e37 : tensor<1x7xf32>) -> tensor<1x7xf32>
  %v37 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%v36, %w12 : tensor<1x7xf32>, tensor<7x7xf32>) outs(%f37 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %p, %o : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %e38 = tensor.empty() : tensor<1x7xf32>
  %v38 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v1, %v37 : tensor<1x7xf32>, tensor<1x7xf32>) outs(%e38 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.addf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %e39 = tensor.empty() : tensor<1x17xf32>
  %f39 = linalg.fill ins(%zero : f32) outs(%e39 : tensor<1x17xf32>) -> tensor<1x17xf32>
  %v39 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%v38, %w13 : tensor<1x7xf32>, tensor<17x7xf32>) outs(%f39 : tensor<1x17xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %p, %o : f32
    linalg.yield %r : f32
  } -> tensor<1x17xf32>
  %e40 = tensor.empty() : tensor<1x17xf32>
  %v40 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v39 : tensor<1x17xf32>) outs(%e40 : tensor<1x17xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = math.erf %a : f32
    %s = arith.addf %t, %half : f32
    %r = arith.mulf %a, %s : f32
    linalg.yield %r : f32
  } -> tensor<1x17xf32>
  %e41 = tensor.empty() : tensor<1x7xf32>
  %f41 = linalg.fill ins(%zero : f32) outs(%e41 : tensor<1x7xf32>) -> tensor<1x7xf32>
  %v41 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%v40, %w14 : tensor<1x17xf32>, tensor<7x17xf32>) outs(%f41 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %p, %o : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %e42 = tensor.empty() : tensor<1x7xf32>
  %v42 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v41, %w15 : tensor<1x7xf32>, tensor<7xf32>) outs(%e42 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.addf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %e43 = tensor.empty() : tensor<1x7xf32>
  %v43 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v38, %v42 : tensor<1x7xf32>, tensor<1x7xf32>) outs(%e43 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.addf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %e44 = tensor.empty() : tensor<1xf32>
  %f44 = linalg.fill ins(%zero : f32) outs(%e44 : tensor<1xf32>) -> tensor<1xf32>
  %v44 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%v43 : tensor<1x7xf32>) outs(%f44 : tensor<1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %a, %o : f32
    linalg.yield %r : f32
  } -> tensor<1xf32>
  %e45 = tensor.empty() : tensor<1x7xf32>
  %v45 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v43, %v44 : tensor<1x7xf32>, tensor<1xf32>) outs(%e45 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %n = arith.constant 7.0 : f32
    %m = arith.divf %b, %n : f32
    %r = arith.subf %a, %m : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %e46 = tensor.empty() : tensor<1x7xf32>
  %v46 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v45 : tensor<1x7xf32>) outs(%e46 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.mulf %a, %a : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %e47 = tensor.empty() : tensor<1xf32>
  %f47 = linalg.fill ins(%zero : f32) outs(%e47 : tensor<1xf32>) -> tensor<1xf32>
  %v47 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%v46 : tensor<1x7xf32>) outs(%f47 : tensor<1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %a, %o : f32
    linalg.yield %r : f32
  } -> tensor<1xf32>
  %e48 = tensor.empty() : tensor<1xf32>
  %v48 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%v47 : tensor<1xf32>) outs(%e48 : tensor<1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.constant 7.0 : f32
    %m = arith.divf %a, %n : f32
    %t = arith.truncf %epsilon : f64 to f32
    %s = arith.addf %m, %t : f32
    %r = math.rsqrt %s : f32
    linalg.yield %r : f32
  } -> tensor<1xf32>
  %e49 = tensor.empty() : tensor<1x7xf32>
  %v49 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v45, %v48 : tensor<1x7xf32>, tensor<1xf32>) outs(%e49 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.mulf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %e50 = tensor.empty() : tensor<1x7xf32>
  %v50 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v49, %w16 : tensor<1x7xf32>, tensor<7xf32>) outs(%e50 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.mulf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %e51 = tensor.empty() : tensor<1x7xf32>
  %v51 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v50, %w17 : tensor<1x7xf32>, tensor<7xf32>) outs(%e51 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.addf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %e52 = tensor.empty() : tensor<1x7xf32>
  %f52 = linalg.fill ins(%zero : f32) outs(%e52 : tensor<1x7xf32>) -> tensor<1x7xf32>
  %v52 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%v51, %w18 : tensor<1x7xf32>, tensor<7x7xf32>) outs(%f52 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %p, %o : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %e53 = tensor.empty() : tensor<1x7xf32>
  %v53 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v52, %w19 : tensor<1x7xf32>, tensor<7xf32>) outs(%e53 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.addf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %v54 = tensor.expand_shape %v53 [[0], [1, 2]] output_shape [1, 1, 7] : tensor<1x7xf32> into tensor<1x1x7xf32>
  %e55 = tensor.empty() : tensor<1x1x7xf32>
  %v55 = linalg.transpose ins(%v54 : tensor<1x1x7xf32>) outs(%e55 : tensor<1x1x7xf32>) permutation = [1, 0, 2]
  %e56 = tensor.empty() : tensor<1x7xf32>
  %f56 = linalg.fill ins(%zero : f32) outs(%e56 : tensor<1x7xf32>) -> tensor<1x7xf32>
  %v56 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%v51, %w20 : tensor<1x7xf32>, tensor<7x7xf32>) outs(%f56 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %p, %o : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %v57 = tensor.expand_shape %v56 [[0], [1, 2]] output_shape [1, 1, 7] : tensor<1x7xf32> into tensor<1x1x7xf32>
  %e58 = tensor.empty() : tensor<1x1x7xf32>
  %v58 = linalg.transpose ins(%v57 : tensor<1x1x7xf32>) outs(%e58 : tensor<1x1x7xf32>) permutation = [1, 0, 2]
  %e59 = tensor.empty() : tensor<1x7xf32>
  %f59 = linalg.fill ins(%zero : f32) outs(%e59 : tensor<1x7xf32>) -> tensor<1x7xf32>
  %v59 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%v51, %w21 : tensor<1x7xf32>, tensor<7x7xf32>) outs(%f59 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %p, %o : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %v60 = tensor.expand_shape %v59 [[0], [1, 2]] output_shape [1, 1, 7] : tensor<1x7xf32> into tensor<1x1x7xf32>
  %e61 = tensor.empty() : tensor<1x1x7xf32>
  %v61 = linalg.transpose ins(%v60 : tensor<1x1x7xf32>) outs(%e61 : tensor<1x1x7xf32>) permutation = [1, 0, 2]
  %v62 = tensor.concat dim(1) %w22, %v58 : (tensor<1x5x7xf32>, tensor<1x1x7xf32>) -> tensor<1x6x7xf32>
  %v63 = tensor.concat dim(1) %w23, %v61 : (tensor<1x5x7xf32>, tensor<1x1x7xf32>) -> tensor<1x6x7xf32>
  %e64 = tensor.empty() : tensor<1x1x6xf32>
  %f64 = linalg.fill ins(%zero : f32) outs(%e64 : tensor<1x1x6xf32>) -> tensor<1x1x6xf32>
  %v64 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%v55, %v62 : tensor<1x1x7xf32>, tensor<1x6x7xf32>) outs(%f64 : tensor<1x1x6xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %p, %o : f32
    linalg.yield %r : f32
  } -> tensor<1x1x6xf32>
  %e65 = tensor.empty() : tensor<1x1x6xf32>
  %v65 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%v64 : tensor<1x1x6xf32>) outs(%e65 : tensor<1x1x6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.mulf %a, %half : f32
    linalg.yield %r : f32
  } -> tensor<1x1x6xf32>
  %e66 = tensor.empty() : tensor<1x1x1xf32>
  %f66 = linalg.fill ins(%low : f32) outs(%e66 : tensor<1x1x1xf32>) -> tensor<1x1x1xf32>
  %v66 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, 0)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%v65 : tensor<1x1x6xf32>) outs(%f66 : tensor<1x1x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.maximumf %a, %o : f32
    linalg.yield %r : f32
  } -> tensor<1x1x1xf32>
  %e67 = tensor.empty() : tensor<1x1x6xf32>
  %v67 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, 0)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%v65, %v66 : tensor<1x1x6xf32>, tensor<1x1x1xf32>) outs(%e67 : tensor<1x1x6xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.subf %a, %b : f32
    %r = math.exp %s : f32
    linalg.yield %r : f32
  } -> tensor<1x1x6xf32>
  %e68 = tensor.empty() : tensor<1x1x1xf32>
  %f68 = linalg.fill ins(%zero : f32) outs(%e68 : tensor<1x1x1xf32>) -> tensor<1x1x1xf32>
  %v68 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, 0)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%v67 : tensor<1x1x6xf32>) outs(%f68 : tensor<1x1x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %a, %o : f32
    linalg.yield %r : f32
  } -> tensor<1x1x1xf32>
  %e69 = tensor.empty() : tensor<1x1x6xf32>
  %v69 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, 0)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%v67, %v68 : tensor<1x1x6xf32>, tensor<1x1x1xf32>) outs(%e69 : tensor<1x1x6xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.divf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<1x1x6xf32>
  %e70 = tensor.empty() : tensor<1x1x7xf32>
  %f70 = linalg.fill ins(%zero : f32) outs(%e70 : tensor<1x1x7xf32>) -> tensor<1x1x7xf32>
  %v70 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%v69, %v63 : tensor<1x1x6xf32>, tensor<1x6x7xf32>) outs(%f70 : tensor<1x1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %p, %o : f32
    linalg.yield %r : f32
  } -> tensor<1x1x7xf32>
  %e71 = tensor.empty() : tensor<1x1x7xf32>
  %v71 = linalg.transpose ins(%v70 : tensor<1x1x7xf32>) outs(%e71 : tensor<1x1x7xf32>) permutation = [1, 0, 2]
  %v72 = tensor.collapse_shape %v71 [[0], [1, 2]] : tensor<1x1x7xf32> into tensor<1x7xf32>
  %e73 = tensor.empty() : tensor<1x7xf32>
  %f73 = linalg.fill ins(%zero : f32) outs(%e73 : tensor<1x7xf32>) -> tensor<1x7xf32>
  %v73 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%v72, %w24 : tensor<1x7xf32>, tensor<7x7xf32>) outs(%f73 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %p, %o : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %e74 = tensor.empty() : tensor<1x7xf32>
  %v74 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v43, %v73 : tensor<1x7xf32>, tensor<1x7xf32>) outs(%e74 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.addf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %e75 = tensor.empty() : tensor<1x17xf32>
  %f75 = linalg.fill ins(%zero : f32) outs(%e75 : tensor<1x17xf32>) -> tensor<1x17xf32>
  %v75 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%v74, %w25 : tensor<1x7xf32>, tensor<17x7xf32>) outs(%f75 : tensor<1x17xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %p, %o : f32
    linalg.yield %r : f32
  } -> tensor<1x17xf32>
  %e76 = tensor.empty() : tensor<1x17xf32>
  %v76 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v75 : tensor<1x17xf32>) outs(%e76 : tensor<1x17xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = math.erf %a : f32
    %s = arith.addf %t, %half : f32
    %r = arith.mulf %a, %s : f32
    linalg.yield %r : f32
  } -> tensor<1x17xf32>
  %e77 = tensor.empty() : tensor<1x7xf32>
  %f77 = linalg.fill ins(%zero : f32) outs(%e77 : tensor<1x7xf32>) -> tensor<1x7xf32>
  %v77 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%v76, %w26 : tensor<1x17xf32>, tensor<7x17xf32>) outs(%f77 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %p, %o : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %e78 = tensor.empty() : tensor<1x7xf32>
  %v78 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v77, %w27 : tensor<1x7xf32>, tensor<7xf32>) outs(%e78 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.addf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %e79 = tensor.empty() : tensor<1x7xf32>
  %v79 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v74, %v78 : tensor<1x7xf32>, tensor<1x7xf32>) outs(%e79 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.addf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %e80 = tensor.empty() : tensor<1xf32>
  %f80 = linalg.fill ins(%zero : f32) outs(%e80 : tensor<1xf32>) -> tensor<1xf32>
  %v80 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%v79 : tensor<1x7xf32>) outs(%f80 : tensor<1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %a, %o : f32
    linalg.yield %r : f32
  } -> tensor<1xf32>
  %e81 = tensor.empty() : tensor<1x7xf32>
  %v81 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v79, %v80 : tensor<1x7xf32>, tensor<1xf32>) outs(%e81 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %n = arith.constant 7.0 : f32
    %m = arith.divf %b, %n : f32
    %r = arith.subf %a, %m : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %e82 = tensor.empty() : tensor<1x7xf32>
  %v82 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v81 : tensor<1x7xf32>) outs(%e82 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.mulf %a, %a : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %e83 = tensor.empty() : tensor<1xf32>
  %f83 = linalg.fill ins(%zero : f32) outs(%e83 : tensor<1xf32>) -> tensor<1xf32>
  %v83 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%v82 : tensor<1x7xf32>) outs(%f83 : tensor<1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %a, %o : f32
    linalg.yield %r : f32
  } -> tensor<1xf32>
  %e84 = tensor.empty() : tensor<1xf32>
  %v84 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%v83 : tensor<1xf32>) outs(%e84 : tensor<1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.constant 7.0 : f32
    %m = arith.divf %a, %n : f32
    %t = arith.truncf %epsilon : f64 to f32
    %s = arith.addf %m, %t : f32
    %r = math.rsqrt %s : f32
    linalg.yield %r : f32
  } -> tensor<1xf32>
  %e85 = tensor.empty() : tensor<1x7xf32>
  %v85 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v81, %v84 : tensor<1x7xf32>, tensor<1xf32>) outs(%e85 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.mulf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %e86 = tensor.empty() : tensor<1x7xf32>
  %v86 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v85, %w28 : tensor<1x7xf32>, tensor<7xf32>) outs(%e86 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.mulf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %e87 = tensor.empty() : tensor<1x7xf32>
  %v87 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v86, %w29 : tensor<1x7xf32>, tensor<7xf32>) outs(%e87 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.addf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %e88 = tensor.empty() : tensor<1x7xf32>
  %f88 = linalg.fill ins(%zero : f32) outs(%e88 : tensor<1x7xf32>) -> tensor<1x7xf32>
  %v88 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%v87, %w30 : tensor<1x7xf32>, tensor<7x7xf32>) outs(%f88 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %p, %o : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %e89 = tensor.empty() : tensor<1x7xf32>
  %v89 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v88, %w31 : tensor<1x7xf32>, tensor<7xf32>) outs(%e89 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.addf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %v90 = tensor.expand_shape %v89 [[0], [1, 2]] output_shape [1, 1, 7] : tensor<1x7xf32> into tensor<1x1x7xf32>
  %e91 = tensor.empty() : tensor<1x1x7xf32>
  %v91 = linalg.transpose ins(%v90 : tensor<1x1x7xf32>) outs(%e91 : tensor<1x1x7xf32>) permutation = [1, 0, 2]
  %e92 = tensor.empty() : tensor<1x7xf32>
  %f92 = linalg.fill ins(%zero : f32) outs(%e92 : tensor<1x7xf32>) -> tensor<1x7xf32>
  %v92 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%v87, %w32 : tensor<1x7xf32>, tensor<7x7xf32>) outs(%f92 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %p, %o : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %v93 = tensor.expand_shape %v92 [[0], [1, 2]] output_shape [1, 1, 7] : tensor<1x7xf32> into tensor<1x1x7xf32>
  %e94 = tensor.empty() : tensor<1x1x7xf32>
  %v94 = linalg.transpose ins(%v93 : tensor<1x1x7xf32>) outs(%e94 : tensor<1x1x7xf32>) permutation = [1, 0, 2]
  %e95 = tensor.empty() : tensor<1x7xf32>
  %f95 = linalg.fill ins(%zero : f32) outs(%e95 : tensor<1x7xf32>) -> tensor<1x7xf32>
  %v95 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%v87, %w33 : tensor<1x7xf32>, tensor<7x7xf32>) outs(%f95 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %p, %o : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %v96 = tensor.expand_shape %v95 [[0], [1, 2]] output_shape [1, 1, 7] : tensor<1x7xf32> into tensor<1x1x7xf32>
  %e97 = tensor.empty() : tensor<1x1x7xf32>
  %v97 = linalg.transpose ins(%v96 : tensor<1x1x7xf32>) outs(%e97 : tensor<1x1x7xf32>) permutation = [1, 0, 2]
  %v98 = tensor.concat dim(1) %w34, %v94 : (tensor<1x5x7xf32>, tensor<1x1x7xf32>) -> tensor<1x6x7xf32>
  %v99 = tensor.concat dim(1) %w35, %v97 : (tensor<1x5x7xf32>, tensor<1x1x7xf32>) -> tensor<1x6x7xf32>
  %e100 = tensor.empty() : tensor<1x1x6xf32>
  %f100 = linalg.fill ins(%zero : f32) outs(%e100 : tensor<1x1x6xf32>) -> tensor<1x1x6xf32>
  %v100 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%v91, %v98 : tensor<1x1x7xf32>, tensor<1x6x7xf32>) outs(%f100 : tensor<1x1x6xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %p, %o : f32
    linalg.yield %r : f32
  } -> tensor<1x1x6xf32>
  %e101 = tensor.empty() : tensor<1x1x6xf32>
  %v101 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%v100 : tensor<1x1x6xf32>) outs(%e101 : tensor<1x1x6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.mulf %a, %half : f32
    linalg.yield %r : f32
  } -> tensor<1x1x6xf32>
  %e102 = tensor.empty() : tensor<1x1x1xf32>
  %f102 = linalg.fill ins(%low : f32) outs(%e102 : tensor<1x1x1xf32>) -> tensor<1x1x1xf32>
  %v102 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, 0)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%v101 : tensor<1x1x6xf32>) outs(%f102 : tensor<1x1x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.maximumf %a, %o : f32
    linalg.yield %r : f32
  } -> tensor<1x1x1xf32>
  %e103 = tensor.empty() : tensor<1x1x6xf32>
  %v103 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, 0)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%v101, %v102 : tensor<1x1x6xf32>, tensor<1x1x1xf32>) outs(%e103 : tensor<1x1x6xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.subf %a, %b : f32
    %r = math.exp %s : f32
    linalg.yield %r : f32
  } -> tensor<1x1x6xf32>
  %e104 = tensor.empty() : tensor<1x1x1xf32>
  %f104 = linalg.fill ins(%zero : f32) outs(%e104 : tensor<1x1x1xf32>) -> tensor<1x1x1xf32>
  %v104 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, 0)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%v103 : tensor<1x1x6xf32>) outs(%f104 : tensor<1x1x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %a, %o : f32
    linalg.yield %r : f32
  } -> tensor<1x1x1xf32>
  %e105 = tensor.empty() : tensor<1x1x6xf32>
  %v105 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, 0)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%v103, %v104 : tensor<1x1x6xf32>, tensor<1x1x1xf32>) outs(%e105 : tensor<1x1x6xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.divf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<1x1x6xf32>
  %e106 = tensor.empty() : tensor<1x1x7xf32>
  %f106 = linalg.fill ins(%zero : f32) outs(%e106 : tensor<1x1x7xf32>) -> tensor<1x1x7xf32>
  %v106 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%v105, %v99 : tensor<1x1x6xf32>, tensor<1x6x7xf32>) outs(%f106 : tensor<1x1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %p, %o : f32
    linalg.yield %r : f32
  } -> tensor<1x1x7xf32>
  %e107 = tensor.empty() : tensor<1x1x7xf32>
  %v107 = linalg.transpose ins(%v106 : tensor<1x1x7xf32>) outs(%e107 : tensor<1x1x7xf32>) permutation = [1, 0, 2]
  %v108 = tensor.collapse_shape %v107 [[0], [1, 2]] : tensor<1x1x7xf32> into tensor<1x7xf32>
  %e109 = tensor.empty() : tensor<1x7xf32>
  %f109 = linalg.fill ins(%zero : f32) outs(%e109 : tensor<1x7xf32>) -> tensor<1x7xf32>
  %v109 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%v108, %w36 : tensor<1x7xf32>, tensor<7x7xf32>) outs(%f109 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %p, %o : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %e110 = tensor.empty() : tensor<1x7xf32>
  %v110 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v79, %v109 : tensor<1x7xf32>, tensor<1x7xf32>) outs(%e110 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.addf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %e111 = tensor.empty() : tensor<1x17xf32>
  %f111 = linalg.fill ins(%zero : f32) outs(%e111 : tensor<1x17xf32>) -> tensor<1x17xf32>
  %v111 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%v110, %w37 : tensor<1x7xf32>, tensor<17x7xf32>) outs(%f111 : tensor<1x17xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %p, %o : f32
    linalg.yield %r : f32
  } -> tensor<1x17xf32>
  %e112 = tensor.empty() : tensor<1x17xf32>
  %v112 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v111 : tensor<1x17xf32>) outs(%e112 : tensor<1x17xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = math.erf %a : f32
    %s = arith.addf %t, %half : f32
    %r = arith.mulf %a, %s : f32
    linalg.yield %r : f32
  } -> tensor<1x17xf32>
  %e113 = tensor.empty() : tensor<1x7xf32>
  %f113 = linalg.fill ins(%zero : f32) outs(%e113 : tensor<1x7xf32>) -> tensor<1x7xf32>
  %v113 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%v112, %w38 : tensor<1x17xf32>, tensor<7x17xf32>) outs(%f113 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %p, %o : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %e114 = tensor.empty() : tensor<1x7xf32>
  %v114 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v113, %w39 : tensor<1x7xf32>, tensor<7xf32>) outs(%e114 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.addf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %e115 = tensor.empty() : tensor<1x7xf32>
  %v115 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v110, %v114 : tensor<1x7xf32>, tensor<1x7xf32>) outs(%e115 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.addf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %e116 = tensor.empty() : tensor<1xf32>
  %f116 = linalg.fill ins(%zero : f32) outs(%e116 : tensor<1xf32>) -> tensor<1xf32>
  %v116 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%v115 : tensor<1x7xf32>) outs(%f116 : tensor<1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %a, %o : f32
    linalg.yield %r : f32
  } -> tensor<1xf32>
  %e117 = tensor.empty() : tensor<1x7xf32>
  %v117 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v115, %v116 : tensor<1x7xf32>, tensor<1xf32>) outs(%e117 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %n = arith.constant 7.0 : f32
    %m = arith.divf %b, %n : f32
    %r = arith.subf %a, %m : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %e118 = tensor.empty() : tensor<1x7xf32>
  %v118 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v117 : tensor<1x7xf32>) outs(%e118 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.mulf %a, %a : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %e119 = tensor.empty() : tensor<1xf32>
  %f119 = linalg.fill ins(%zero : f32) outs(%e119 : tensor<1xf32>) -> tensor<1xf32>
  %v119 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%v118 : tensor<1x7xf32>) outs(%f119 : tensor<1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %a, %o : f32
    linalg.yield %r : f32
  } -> tensor<1xf32>
  %e120 = tensor.empty() : tensor<1xf32>
  %v120 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%v119 : tensor<1xf32>) outs(%e120 : tensor<1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.constant 7.0 : f32
    %m = arith.divf %a, %n : f32
    %t = arith.truncf %epsilon : f64 to f32
    %s = arith.addf %m, %t : f32
    %r = math.rsqrt %s : f32
    linalg.yield %r : f32
  } -> tensor<1xf32>
  %e121 = tensor.empty() : tensor<1x7xf32>
  %v121 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v117, %v120 : tensor<1x7xf32>, tensor<1xf32>) outs(%e121 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.mulf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %e122 = tensor.empty() : tensor<1x7xf32>
  %v122 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v121, %w40 : tensor<1x7xf32>, tensor<7xf32>) outs(%e122 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.mulf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %e123 = tensor.empty() : tensor<1x7xf32>
  %v123 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v122, %w41 : tensor<1x7xf32>, tensor<7xf32>) outs(%e123 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.addf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %e124 = tensor.empty() : tensor<1x7xf32>
  %f124 = linalg.fill ins(%zero : f32) outs(%e124 : tensor<1x7xf32>) -> tensor<1x7xf32>
  %v124 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%v123, %w42 : tensor<1x7xf32>, tensor<7x7xf32>) outs(%f124 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %p, %o : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %e125 = tensor.empty() : tensor<1x7xf32>
  %v125 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v124, %w43 : tensor<1x7xf32>, tensor<7xf32>) outs(%e125 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.addf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %v126 = tensor.expand_shape %v125 [[0], [1, 2]] output_shape [1, 1, 7] : tensor<1x7xf32> into tensor<1x1x7xf32>
  %e127 = tensor.empty() : tensor<1x1x7xf32>
  %v127 = linalg.transpose ins(%v126 : tensor<1x1x7xf32>) outs(%e127 : tensor<1x1x7xf32>) permutation = [1, 0, 2]
  %e128 = tensor.empty() : tensor<1x7xf32>
  %f128 = linalg.fill ins(%zero : f32) outs(%e128 : tensor<1x7xf32>) -> tensor<1x7xf32>
  %v128 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%v123, %w44 : tensor<1x7xf32>, tensor<7x7xf32>) outs(%f128 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %p, %o : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %v129 = tensor.expand_shape %v128 [[0], [1, 2]] output_shape [1, 1, 7] : tensor<1x7xf32> into tensor<1x1x7xf32>
  %e130 = tensor.empty() : tensor<1x1x7xf32>
  %v130 = linalg.transpose ins(%v129 : tensor<1x1x7xf32>) outs(%e130 : tensor<1x1x7xf32>) permutation = [1, 0, 2]
  %e131 = tensor.empty() : tensor<1x7xf32>
  %f131 = linalg.fill ins(%zero : f32) outs(%e131 : tensor<1x7xf32>) -> tensor<1x7xf32>
  %v131 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%v123, %w45 : tensor<1x7xf32>, tensor<7x7xf32>) outs(%f131 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %p, %o : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %v132 = tensor.expand_shape %v131 [[0], [1, 2]] output_shape [1, 1, 7] : tensor<1x7xf32> into tensor<1x1x7xf32>
  %e133 = tensor.empty() : tensor<1x1x7xf32>
  %v133 = linalg.transpose ins(%v132 : tensor<1x1x7xf32>) outs(%e133 : tensor<1x1x7xf32>) permutation = [1, 0, 2]
  %v134 = tensor.concat dim(1) %w46, %v130 : (tensor<1x5x7xf32>, tensor<1x1x7xf32>) -> tensor<1x6x7xf32>
  %v135 = tensor.concat dim(1) %w47, %v133 : (tensor<1x5x7xf32>, tensor<1x1x7xf32>) -> tensor<1x6x7xf32>
  %e136 = tensor.empty() : tensor<1x1x6xf32>
  %f136 = linalg.fill ins(%zero : f32) outs(%e136 : tensor<1x1x6xf32>) -> tensor<1x1x6xf32>
  %v136 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%v127, %v134 : tensor<1x1x7xf32>, tensor<1x6x7xf32>) outs(%f136 : tensor<1x1x6xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %p, %o : f32
    linalg.yield %r : f32
  } -> tensor<1x1x6xf32>
  %e137 = tensor.empty() : tensor<1x1x6xf32>
  %v137 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%v136 : tensor<1x1x6xf32>) outs(%e137 : tensor<1x1x6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.mulf %a, %half : f32
    linalg.yield %r : f32
  } -> tensor<1x1x6xf32>
  %e138 = tensor.empty() : tensor<1x1x1xf32>
  %f138 = linalg.fill ins(%low : f32) outs(%e138 : tensor<1x1x1xf32>) -> tensor<1x1x1xf32>
  %v138 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, 0)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%v137 : tensor<1x1x6xf32>) outs(%f138 : tensor<1x1x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.maximumf %a, %o : f32
    linalg.yield %r : f32
  } -> tensor<1x1x1xf32>
  %e139 = tensor.empty() : tensor<1x1x6xf32>
  %v139 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, 0)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%v137, %v138 : tensor<1x1x6xf32>, tensor<1x1x1xf32>) outs(%e139 : tensor<1x1x6xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.subf %a, %b : f32
    %r = math.exp %s : f32
    linalg.yield %r : f32
  } -> tensor<1x1x6xf32>
  %e140 = tensor.empty() : tensor<1x1x1xf32>
  %f140 = linalg.fill ins(%zero : f32) outs(%e140 : tensor<1x1x1xf32>) -> tensor<1x1x1xf32>
  %v140 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, 0)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%v139 : tensor<1x1x6xf32>) outs(%f140 : tensor<1x1x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %a, %o : f32
    linalg.yield %r : f32
  } -> tensor<1x1x1xf32>
  %e141 = tensor.empty() : tensor<1x1x6xf32>
  %v141 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, 0)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%v139, %v140 : tensor<1x1x6xf32>, tensor<1x1x1xf32>) outs(%e141 : tensor<1x1x6xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.divf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<1x1x6xf32>
  %e142 = tensor.empty() : tensor<1x1x7xf32>
  %f142 = linalg.fill ins(%zero : f32) outs(%e142 : tensor<1x1x7xf32>) -> tensor<1x1x7xf32>
  %v142 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%v141, %v135 : tensor<1x1x6xf32>, tensor<1x6x7xf32>) outs(%f142 : tensor<1x1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %p, %o : f32
    linalg.yield %r : f32
  } -> tensor<1x1x7xf32>
  %e143 = tensor.empty() : tensor<1x1x7xf32>
  %v143 = linalg.transpose ins(%v142 : tensor<1x1x7xf32>) outs(%e143 : tensor<1x1x7xf32>) permutation = [1, 0, 2]
  %v144 = tensor.collapse_shape %v143 [[0], [1, 2]] : tensor<1x1x7xf32> into tensor<1x7xf32>
  %e145 = tensor.empty() : tensor<1x7xf32>
  %f145 = linalg.fill ins(%zero : f32) outs(%e145 : tensor<1x7xf32>) -> tensor<1x7xf32>
  %v145 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%v144, %w48 : tensor<1x7xf32>, tensor<7x7xf32>) outs(%f145 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %p, %o : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %e146 = tensor.empty() : tensor<1x7xf32>
  %v146 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v115, %v145 : tensor<1x7xf32>, tensor<1x7xf32>) outs(%e146 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.addf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %e147 = tensor.empty() : tensor<1x17xf32>
  %f147 = linalg.fill ins(%zero : f32) outs(%e147 : tensor<1x17xf32>) -> tensor<1x17xf32>
  %v147 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%v146, %w49 : tensor<1x7xf32>, tensor<17x7xf32>) outs(%f147 : tensor<1x17xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %p, %o : f32
    linalg.yield %r : f32
  } -> tensor<1x17xf32>
  %e148 = tensor.empty() : tensor<1x17xf32>
  %v148 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v147 : tensor<1x17xf32>) outs(%e148 : tensor<1x17xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = math.erf %a : f32
    %s = arith.addf %t, %half : f32
    %r = arith.mulf %a, %s : f32
    linalg.yield %r : f32
  } -> tensor<1x17xf32>
  %e149 = tensor.empty() : tensor<1x7xf32>
  %f149 = linalg.fill ins(%zero : f32) outs(%e149 : tensor<1x7xf32>) -> tensor<1x7xf32>
  %v149 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%v148, %w50 : tensor<1x17xf32>, tensor<7x17xf32>) outs(%f149 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %p, %o : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %e150 = tensor.empty() : tensor<1x7xf32>
  %v150 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v149, %w51 : tensor<1x7xf32>, tensor<7xf32>) outs(%e150 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.addf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %e151 = tensor.empty() : tensor<1x7xf32>
  %v151 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v146, %v150 : tensor<1x7xf32>, tensor<1x7xf32>) outs(%e151 : tensor<1x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.addf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<1x7xf32>
  %e152 = tensor.empty() : tensor<1x515xf32>
  %f152 = linalg.fill ins(%zero : f32) outs(%e152 : tensor<1x515xf32>) -> tensor<1x515xf32>
  %v152 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%v147, %w52 : tensor<1x17xf32>, tensor<515x17xf32>) outs(%f152 : tensor<1x515xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %p, %o : f32
    linalg.yield %r : f32
  } -> tensor<1x515xf32>
  %e153 = tensor.empty() : tensor<1x515xf32>
  %v153 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v152, %w53 : tensor<1x515xf32>, tensor<515xf32>) outs(%e153 : tensor<1x515xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.addf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<1x515xf32>
  return %v153, %v86, %v93, %v22, %v25, %v58, %v61, %v94, %v97, %v130, %v133 : tensor<1x515xf32>, tensor<1x7xf32>, tensor<1x1x7xf32>, tensor<1x1x7xf32>, tensor<1x1x7xf32>, tensor<1x1x7xf32>, tensor<1x1x7xf32>, tensor<1x1x7xf32>, tensor<1x1x7xf32>, tensor<1x1x7xf32>, tensor<1x1x7xf32>
}
