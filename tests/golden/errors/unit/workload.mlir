// stc check
// The engine's workload is recorded where there are contractions.
"builtin.module"() ({
  "func.func"() ({
  ^bb0(%0: tensor<1x128xf32>, %1: tensor<16384xi4>, %2: tensor<128xf16>, %3: tensor<1280xi4>, %4: tensor<10xf16>):
    %5 = "stream.kernel"(%0) {access = [affine_map<(d0) -> (d0)>], init = 0.0 : f32, loops = array<i64: 128>, name = "k0_scale", operand_segment_sizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, ordered, post = @k0_scale.post, reduction = array<i64: 1>, result = affine_map<(d0) -> (0)>, update = @k0_scale.update} : (tensor<1x128xf32>) -> tensor<1xf32>
    %6 = "stream.kernel"(%0, %5) {access = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (0)>], loops = array<i64: 128>, name = "k0_q", operand_segment_sizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, reduction = array<i64: 0>, result = affine_map<(d0) -> (d0)>, update = @k0_q.update} : (tensor<1x128xf32>, tensor<1xf32>) -> tensor<1x128xi8>
    %7 = "stream.contract"(%6, %5, %1, %2) {name = "k0_scaled", operand_segment_sizes = array<i32: 1, 1, 1, 1, 0>} : (tensor<1x128xi8>, tensor<1xf32>, tensor<16384xi4>, tensor<128xf16>) -> tensor<1x128xf32>
    %8 = "stream.kernel"(%7) {access = [affine_map<(d0) -> (d0)>], init = 0.0 : f32, loops = array<i64: 128>, name = "k1_scale", operand_segment_sizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, ordered, post = @k1_scale.post, reduction = array<i64: 1>, result = affine_map<(d0) -> (0)>, update = @k1_scale.update} : (tensor<1x128xf32>) -> tensor<1xf32>
    %9 = "stream.kernel"(%7, %8) {access = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (0)>], loops = array<i64: 128>, name = "k1_q", operand_segment_sizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, reduction = array<i64: 0>, result = affine_map<(d0) -> (d0)>, update = @k1_q.update} : (tensor<1x128xf32>, tensor<1xf32>) -> tensor<1x128xi8>
    %10 = "stream.contract"(%9, %8, %3, %4) {name = "k1_scaled", operand_segment_sizes = array<i32: 1, 1, 1, 1, 0>} : (tensor<1x128xi8>, tensor<1xf32>, tensor<1280xi4>, tensor<10xf16>) -> tensor<1x10xf32>
    "func.return"(%10) : (tensor<1x10xf32>) -> ()
  }) {arg_attrs = [{stream.name = "arg0", stream.role = "input"}, {stream.derived_from = {axis = 1 : i64, base = 0 : i64, bits = 4 : i64, block = 1 : i64, conditions = [], group = 128 : i64, name = "w0", part = "q", runs_per_scale = 1 : i64, strides = array<i64: 16384, 128, 1>, trips = array<i64: 1, 128, 128>, type = tensor<128x128xf32>}, stream.name = "w0.q", stream.role = "weight"}, {stream.derived_from = {axis = 1 : i64, base = 0 : i64, bits = 4 : i64, block = 1 : i64, conditions = [], group = 128 : i64, name = "w0", part = "scale", runs_per_scale = 1 : i64, strides = array<i64: 16384, 128, 1>, trips = array<i64: 1, 128, 128>, type = tensor<128x128xf32>}, stream.name = "w0.scale", stream.role = "weight"}, {stream.derived_from = {axis = 1 : i64, base = 0 : i64, bits = 4 : i64, block = 1 : i64, conditions = [], group = 128 : i64, name = "w1", part = "q", runs_per_scale = 1 : i64, strides = array<i64: 1280, 128, 1>, trips = array<i64: 1, 10, 128>, type = tensor<10x128xf32>}, stream.name = "w1.q", stream.role = "weight"}, {stream.derived_from = {axis = 1 : i64, base = 0 : i64, bits = 4 : i64, block = 1 : i64, conditions = [], group = 128 : i64, name = "w1", part = "scale", runs_per_scale = 1 : i64, strides = array<i64: 1280, 128, 1>, trips = array<i64: 1, 10, 128>, type = tensor<10x128xf32>}, stream.name = "w1.scale", stream.role = "weight"}], function_type = (tensor<1x128xf32>, tensor<16384xi4>, tensor<128xf16>, tensor<1280xi4>, tensor<10xf16>) -> tensor<1x10xf32>, res_attrs = [{stream.name = "result0", stream.role = "output"}], sym_name = "main"} : () -> ()
  "func.func"() ({
  ^bb0(%0: f32, %1: f32):
    %2 = "math.absf"(%0) : (f32) -> f32
    %3 = "arith.maximumf"(%1, %2) : (f32, f32) -> f32
    "func.return"(%3) : (f32) -> ()
  }) {function_type = (f32, f32) -> f32, sym_name = "k0_scale.update", sym_visibility = "private"} : () -> ()
  "func.func"() ({
  ^bb0(%0: f32, %1: f32):
    %2 = "arith.constant"() {value = 0.0 : f32} : () -> f32
    %3 = "arith.constant"() {value = 1.0 : f32} : () -> f32
    %4 = "arith.constant"() {value = 127.0 : f32} : () -> f32
    %5 = "arith.cmpf"(%1, %2) {predicate = 1 : i64} : (f32, f32) -> i1
    %6 = "arith.divf"(%1, %4) : (f32, f32) -> f32
    %7 = "arith.select"(%5, %3, %6) : (i1, f32, f32) -> f32
    "func.return"(%7) : (f32) -> ()
  }) {function_type = (f32, f32) -> f32, sym_name = "k0_scale.post", sym_visibility = "private"} : () -> ()
  "func.func"() ({
  ^bb0(%0: f32, %1: f32):
    %2 = "arith.divf"(%0, %1) : (f32, f32) -> f32
    %3 = "math.roundeven"(%2) : (f32) -> f32
    %4 = "arith.constant"() {value = 127.0 : f32} : () -> f32
    %5 = "arith.constant"() {value = -127.0 : f32} : () -> f32
    %6 = "arith.maximumf"(%3, %5) : (f32, f32) -> f32
    %7 = "arith.minimumf"(%6, %4) : (f32, f32) -> f32
    %8 = "arith.fptosi"(%7) : (f32) -> i8
    "func.return"(%8) : (i8) -> ()
  }) {function_type = (f32, f32) -> i8, sym_name = "k0_q.update", sym_visibility = "private"} : () -> ()
  "func.func"() ({
  ^bb0(%0: f32, %1: f32):
    %2 = "math.absf"(%0) : (f32) -> f32
    %3 = "arith.maximumf"(%1, %2) : (f32, f32) -> f32
    "func.return"(%3) : (f32) -> ()
  }) {function_type = (f32, f32) -> f32, sym_name = "k1_scale.update", sym_visibility = "private"} : () -> ()
  "func.func"() ({
  ^bb0(%0: f32, %1: f32):
    %2 = "arith.constant"() {value = 0.0 : f32} : () -> f32
    %3 = "arith.constant"() {value = 1.0 : f32} : () -> f32
    %4 = "arith.constant"() {value = 127.0 : f32} : () -> f32
    %5 = "arith.cmpf"(%1, %2) {predicate = 1 : i64} : (f32, f32) -> i1
    %6 = "arith.divf"(%1, %4) : (f32, f32) -> f32
    %7 = "arith.select"(%5, %3, %6) : (i1, f32, f32) -> f32
    "func.return"(%7) : (f32) -> ()
  }) {function_type = (f32, f32) -> f32, sym_name = "k1_scale.post", sym_visibility = "private"} : () -> ()
  "func.func"() ({
  ^bb0(%0: f32, %1: f32):
    %2 = "arith.divf"(%0, %1) : (f32, f32) -> f32
    %3 = "math.roundeven"(%2) : (f32) -> f32
    %4 = "arith.constant"() {value = 127.0 : f32} : () -> f32
    %5 = "arith.constant"() {value = -127.0 : f32} : () -> f32
    %6 = "arith.maximumf"(%3, %5) : (f32, f32) -> f32
    %7 = "arith.minimumf"(%6, %4) : (f32, f32) -> f32
    %8 = "arith.fptosi"(%7) : (f32) -> i8
    "func.return"(%8) : (i8) -> ()
  }) {function_type = (f32, f32) -> i8, sym_name = "k1_q.update", sym_visibility = "private"} : () -> ()
}) {stream.fused = array<i64: 2136, 8>, stream.level = "tensor", stream.unfused = array<i64: 552, 2>} : () -> ()
