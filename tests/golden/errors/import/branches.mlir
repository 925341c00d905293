// stc compile --platform u55c -o %o
func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>, %i: tensor<i1>) -> tensor<4xf32> {
  %c = tensor.extract %i[] : tensor<i1>
  cf.cond_br %c, ^bb1, ^bb2
^bb1:
  %0 = arith.addf %a, %b : tensor<4xf32>
  cf.br ^bb3(%0 : tensor<4xf32>)
^bb2:
  %1 = arith.mulf %a, %b : tensor<4xf32>
  cf.br ^bb3(%1 : tensor<4xf32>)
^bb3(%r: tensor<4xf32>):
  return %r : tensor<4xf32>
}
