module attributes {torch.debug_module_name = "M"} {
  ml_program.global private mutable @global_seed(dense<0> : tensor<i64>) : tensor<i64>
  func.func @main(%a: tensor<2x2xf32> {torch.foo = 1 : i64}) -> (tensor<2x2xf32>, tensor<3xi1>, tensor<4xi1>) {
    %w = arith.constant dense_resource<w0> : tensor<2x2xf32>
    %t = arith.constant dense<[true, false, true]> : tensor<3xi1>
    %t2 = arith.constant dense<true> : tensor<4xi1>
    %d = arith.constant dense<[[1.0, 2.0],[3.0,4.0]]> : tensor<2x2xf32>
    %h = arith.constant dense<[[1.0, 2.0],[3.0,4.0]]> : tensor<2x2xbf16>
    %0 = arith.addf %a, %w : tensor<2x2xf32>
    %1 = arith.addf %0, %d : tensor<2x2xf32>
    %2 = arith.extf %h : tensor<2x2xbf16> to tensor<2x2xf32>
    %3 = arith.addf %1, %2 : tensor<2x2xf32>
    return %3, %t, %t2 : tensor<2x2xf32>, tensor<3xi1>, tensor<4xi1>
  }
}
{-#
  dialect_resources: {
    builtin: {
      w0: "0x040000000000803F000000400000404000008040"
    }
  }
#-}
