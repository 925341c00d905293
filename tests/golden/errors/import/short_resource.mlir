// stc compile --platform u55c -o %o
func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
  %w = arith.constant dense_resource<w0> : tensor<2xf32>
  %0 = arith.addf %a, %w : tensor<2xf32>
  return %0 : tensor<2xf32>
}
{-#
  dialect_resources: {
    builtin: {
      w0: "0x040000000000803F"
    }
  }
#-}
