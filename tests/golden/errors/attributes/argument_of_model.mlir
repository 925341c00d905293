// stc check
// A model's own attributes mean nothing here, whatever they are called; ours have kinds.
module {
  func.func @main(%x: tensor<4xf32> {my.axis = "first", stream.axis = "first"}) -> tensor<4xf32> {
    %y = tensor.empty() {lanes = "many"} : tensor<4xf32>
    return %x : tensor<4xf32>
  }
}
