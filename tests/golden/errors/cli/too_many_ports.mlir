// stc compile --platform xc7z020 -o %o
func.func @main(%a: tensor<1048576xf32>, %b: tensor<1048576xf16>, %c: tensor<1048576xi8>, %d: tensor<1048576xi64>, %e: tensor<1048576xi16>) -> (tensor<1048576xf32>, tensor<1048576xf16>, tensor<1048576xi8>, tensor<1048576xi64>, tensor<1048576xi16>) {
  %0 = math.exp %a : tensor<1048576xf32>
  %1 = math.exp %b : tensor<1048576xf16>
  %2 = arith.addi %c, %c : tensor<1048576xi8>
  %3 = arith.addi %d, %d : tensor<1048576xi64>
  %4 = arith.addi %e, %e : tensor<1048576xi16>
  return %0, %1, %2, %3, %4 : tensor<1048576xf32>, tensor<1048576xf16>, tensor<1048576xi8>, tensor<1048576xi64>, tensor<1048576xi16>
}
