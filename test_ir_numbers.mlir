"builtin.module"() ({
  "func.func"() ({
    %0 = "arith.constant"() {value = 0.0 : f32} : () -> f32
    %1 = "arith.constant"() {value = 0.0 : f64} : () -> f64
    %2 = "arith.constant"() {value = -0.0 : f32} : () -> f32
    %3 = "arith.constant"() {value = -0.0 : f64} : () -> f64
    %4 = "arith.constant"() {value = 1.0 : f32} : () -> f32
    %5 = "arith.constant"() {value = 1.0 : f64} : () -> f64
    %6 = "arith.constant"() {value = -1.5 : f32} : () -> f32
    %7 = "arith.constant"() {value = -1.5 : f64} : () -> f64
    %8 = "arith.constant"() {value = 0.1 : f32} : () -> f32
    %9 = "arith.constant"() {value = 0.10000000149011612 : f64} : () -> f64
    %10 = "arith.constant"() {value = 1.0e-05 : f32} : () -> f32
    %11 = "arith.constant"() {value = 9.999999747378752e-06 : f64} : () -> f64
    %12 = "arith.constant"() {value = 1.0e+20 : f32} : () -> f32
    %13 = "arith.constant"() {value = 1.0000000200408773e+20 : f64} : () -> f64
    %14 = "arith.constant"() {value = 3.4028235e+38 : f32} : () -> f32
    %15 = "arith.constant"() {value = 3.4028234663852886e+38 : f64} : () -> f64
    %16 = "arith.constant"() {value = 1.0e-45 : f32} : () -> f32
    %17 = "arith.constant"() {value = 1.401298464324817e-45 : f64} : () -> f64
    %18 = "arith.constant"() {value = 16777216.0 : f32} : () -> f32
    %19 = "arith.constant"() {value = 16777217.0 : f64} : () -> f64
    %20 = "arith.constant"() {value = 0x7F800000 : f32} : () -> f32
    %21 = "arith.constant"() {value = 0x7FF0000000000000 : f64} : () -> f64
    %22 = "arith.constant"() {value = 0xFF800000 : f32} : () -> f32
    %23 = "arith.constant"() {value = 0xFFF0000000000000 : f64} : () -> f64
    %24 = "arith.constant"() {value = 0x7FC00000 : f32} : () -> f32
    %25 = "arith.constant"() {value = 0x7FF8000000000000 : f64} : () -> f64
    %26 = "arith.constant"() {value = 0xFC00 : f16} : () -> f16
    %27 = "arith.constant"() {value = 0x7F80 : bf16} : () -> bf16
    %28 = "arith.constant"() {value = 0.0999755859375 : f16} : () -> f16
    %29 = "arith.constant"() {value = -9223372036854775808 : i64} : () -> i64
    %30 = "arith.constant"() {value = -3 : i8} : () -> i8
    %31 = "arith.constant"() {value = true} : () -> i1
    %32 = "arith.constant"() {value = dense<"0x0000803F00002040000000806042A20D"> : tensor<4xf32>} : () -> tensor<4xf32>
    %33 = "arith.constant"() {value = dense<0.5> : tensor<3xf32>} : () -> tensor<3xf32>
    %34 = "arith.constant"() {value = dense<"0x8D01"> : tensor<9xi1>} : () -> tensor<9xi1>
    %35 = "arith.constant"() {value = dense<"0xFFFFFFFFFFFFFFFF0700000000000000"> : tensor<2xi64>} : () -> tensor<2xi64>
    %36 = "arith.constant"() {value = dense<"0xFFFFFFFFFFFFFFFF0700000000000000"> : tensor<2xindex>} : () -> tensor<2xindex>
    %37 = "arith.constant"() {value = dense<2.5> : tensor<1xf32>} : () -> tensor<1xf32>
    %38 = "arith.constant"() {value = dense<> : tensor<0xf32>} : () -> tensor<0xf32>
    "func.return"() : () -> ()
  }) {function_type = () -> (), sym_name = "main"} : () -> ()
}) {stream.level = "tensor"} : () -> ()
