// stc compile --platform u55c -o %o
func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>, %i: tensor<i1>) -> tensor<4xf32> {
  %c = tensor.extract %i[] : tensor<i1>
  %0 = scf.if %c -> tensor<4xf32> {
    %1 = arith.addf %a, %b : tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  } else {
    scf.yield %b : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}
