// stc check
module attributes {stream.level = "hardware"} {
func.func @main() attributes {stream.inputs = [], stream.outputs = [], stream.buffers = []} {
  %a = "stream.fifo"() {name = "s_a", stream.storage = "srl"} : () -> !stream.fifo<f32, 2>
  func.call @first(%a) : (!stream.fifo<f32, 2>) -> ()
  func.call @unit(%a) : (!stream.fifo<f32, 2>) -> ()
  return
}
func.func private @first(%s: !stream.fifo<f32, 2>) attributes {stream.process, stream.style = "flp", stream.die = 0 : i64} {
  %t = arith.constant true
  %x = arith.constant 1.0 : f32
  "stream.push"(%t, %x, %s) : (i1, f32, !stream.fifo<f32, 2>) -> ()
  return
}
func.func private @unit(%s: !stream.fifo<f32, 2>) attributes {stream.process, stream.rewind, stream.style = "flp", stream.die = 0 : i64} {
  %t = arith.constant true
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %c1 step %c1 {
    %x = "stream.pop"(%t, %s) : (i1, !stream.fifo<f32, 2>) -> f32
  } {stream.datapath, stream.pipeline = 2 : i64}
  return
}
}
