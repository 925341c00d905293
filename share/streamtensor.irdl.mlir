// The stream dialect: the types and operations of our dumps that are not MLIR's own.  mlir-opt-19 --irdl-file=THIS dump.mlir checks a dump.
// All values of one variadic operand have one type here, so kernel, contract, load, store, concat and join have several, and an
// operand_segment_sizes attribute that says how many operands each one holds: runs of equal types.  So has buffer for its results.
// A type and an operation of one name (fifo, blocks) would be one symbol twice, so the dialect comes in two parts.
module @types {
irdl.dialect @stream {
  // tile or [tile, elements of a word]; trips: numbers, ranges [low, high], dictionaries (known at run time); steps; map
  irdl.type @itensor {
    %0 = irdl.any
    %1 = irdl.any
    %2 = irdl.any
    %3 = irdl.any
    irdl.parameters(%0, %1, %2, %3)
  }
  // word, depth
  irdl.type @fifo {
    %0 = irdl.any
    %1 = irdl.any
    irdl.parameters(%0, %1)
  }
  // block, depth
  irdl.type @block_channel {
    %0 = irdl.any
    %1 = irdl.any
    irdl.parameters(%0, %1)
  }
}
}

module @operations {
irdl.dialect @stream {
  // kernels
  irdl.operation @kernel {
    %a0 = irdl.any
    %a1 = irdl.any
    %a2 = irdl.any
    %a3 = irdl.any
    %a4 = irdl.any
    %a5 = irdl.any
    %a6 = irdl.any
    %a7 = irdl.any
    %a8 = irdl.any
    %a9 = irdl.any
    %a10 = irdl.any
    %a11 = irdl.any
    %a12 = irdl.any
    %a13 = irdl.any
    %a14 = irdl.any
    %a15 = irdl.any
    %a16 = irdl.any
    %a17 = irdl.any
    %a18 = irdl.any
    %a19 = irdl.any
    %a20 = irdl.any
    %a21 = irdl.any
    %a22 = irdl.any
    %a23 = irdl.any
    %a24 = irdl.any
    %a25 = irdl.any
    %a26 = irdl.any
    %a27 = irdl.any
    %a28 = irdl.any
    %a29 = irdl.any
    %a30 = irdl.any
    %a31 = irdl.any
    %r0 = irdl.any
    irdl.operands(variadic %a0, variadic %a1, variadic %a2, variadic %a3, variadic %a4, variadic %a5, variadic %a6, variadic %a7, variadic %a8, variadic %a9, variadic %a10, variadic %a11, variadic %a12, variadic %a13, variadic %a14, variadic %a15, variadic %a16, variadic %a17, variadic %a18, variadic %a19, variadic %a20, variadic %a21, variadic %a22, variadic %a23, variadic %a24, variadic %a25, variadic %a26, variadic %a27, variadic %a28, variadic %a29, variadic %a30, variadic %a31)
    irdl.results(%r0)
  }
  irdl.operation @contract {
    %a0 = irdl.any
    %a1 = irdl.any
    %a2 = irdl.any
    %a3 = irdl.any
    %a4 = irdl.any
    %r0 = irdl.any
    irdl.operands(variadic %a0, variadic %a1, variadic %a2, variadic %a3, variadic %a4)
    irdl.results(%r0)
  }
  irdl.operation @sequential {
    %a0 = irdl.any
    %a1 = irdl.any
    %a2 = irdl.any
    %a3 = irdl.any
    %a4 = irdl.any
    %a5 = irdl.any
    %a6 = irdl.any
    %a7 = irdl.any
    %a8 = irdl.any
    %a9 = irdl.any
    %a10 = irdl.any
    %a11 = irdl.any
    %a12 = irdl.any
    %a13 = irdl.any
    %a14 = irdl.any
    %a15 = irdl.any
    %a16 = irdl.any
    %a17 = irdl.any
    %a18 = irdl.any
    %a19 = irdl.any
    %a20 = irdl.any
    %a21 = irdl.any
    %a22 = irdl.any
    %a23 = irdl.any
    %a24 = irdl.any
    %a25 = irdl.any
    %a26 = irdl.any
    %a27 = irdl.any
    %a28 = irdl.any
    %a29 = irdl.any
    %a30 = irdl.any
    %a31 = irdl.any
    %r0 = irdl.any
    %r1 = irdl.any
    %r2 = irdl.any
    %r3 = irdl.any
    %r4 = irdl.any
    %r5 = irdl.any
    %r6 = irdl.any
    %r7 = irdl.any
    %r8 = irdl.any
    %r9 = irdl.any
    %r10 = irdl.any
    %r11 = irdl.any
    %r12 = irdl.any
    %r13 = irdl.any
    %r14 = irdl.any
    %r15 = irdl.any
    %r16 = irdl.any
    %r17 = irdl.any
    %r18 = irdl.any
    %r19 = irdl.any
    %r20 = irdl.any
    %r21 = irdl.any
    %r22 = irdl.any
    %r23 = irdl.any
    %r24 = irdl.any
    %r25 = irdl.any
    %r26 = irdl.any
    %r27 = irdl.any
    %r28 = irdl.any
    %r29 = irdl.any
    %r30 = irdl.any
    %r31 = irdl.any
    irdl.operands(variadic %a0, variadic %a1, variadic %a2, variadic %a3, variadic %a4, variadic %a5, variadic %a6, variadic %a7, variadic %a8, variadic %a9, variadic %a10, variadic %a11, variadic %a12, variadic %a13, variadic %a14, variadic %a15, variadic %a16, variadic %a17, variadic %a18, variadic %a19, variadic %a20, variadic %a21, variadic %a22, variadic %a23, variadic %a24, variadic %a25, variadic %a26, variadic %a27, variadic %a28, variadic %a29, variadic %a30, variadic %a31)
    irdl.results(variadic %r0, variadic %r1, variadic %r2, variadic %r3, variadic %r4, variadic %r5, variadic %r6, variadic %r7, variadic %r8, variadic %r9, variadic %r10, variadic %r11, variadic %r12, variadic %r13, variadic %r14, variadic %r15, variadic %r16, variadic %r17, variadic %r18, variadic %r19, variadic %r20, variadic %r21, variadic %r22, variadic %r23, variadic %r24, variadic %r25, variadic %r26, variadic %r27, variadic %r28, variadic %r29, variadic %r30, variadic %r31)
    %body = irdl.region
    irdl.regions(%body)
  }
  irdl.operation @pad_tokens {
    %a0 = irdl.any
    %r0 = irdl.any
    irdl.operands(%a0)
    irdl.results(%r0)
  }
  irdl.operation @layer_select {
    %a0 = irdl.any
    %a1 = irdl.any
    %r0 = irdl.any
    irdl.operands(%a0, variadic %a1)
    irdl.results(%r0)
  }
  irdl.operation @layer_row {
    %a0 = irdl.any
    %a1 = irdl.any
    %r0 = irdl.any
    irdl.operands(%a0, %a1)
    irdl.results(%r0)
  }
  irdl.operation @insert_layer {
    %a0 = irdl.any
    %a1 = irdl.any
    %a2 = irdl.any
    %r0 = irdl.any
    irdl.operands(%a0, %a1, %a2)
    irdl.results(%r0)
  }
  irdl.operation @layer_extract {
    %a0 = irdl.any
    %r0 = irdl.any
    irdl.operands(%a0)
    irdl.results(%r0)
  }

  // inside kernel bodies
  irdl.operation @index {
    %r0 = irdl.any
    irdl.results(%r0)
  }
  irdl.operation @active {
    %r0 = irdl.any
    irdl.results(%r0)
  }

  // scalars, inside kernel bodies and on words
  irdl.operation @round_saturate {
    %a0 = irdl.any
    %r0 = irdl.any
    irdl.operands(%a0)
    irdl.results(%r0)
  }
  irdl.operation @absmax {
    %a0 = irdl.any
    %a1 = irdl.any
    %r0 = irdl.any
    irdl.operands(%a0, %a1)
    irdl.results(%r0)
  }

  // stream level
  irdl.operation @load {
    %a0 = irdl.any
    %a1 = irdl.any
    %r0 = irdl.any
    irdl.operands(variadic %a0, variadic %a1)
    irdl.results(%r0)
  }
  irdl.operation @gather {
    %a0 = irdl.any
    %a1 = irdl.any
    %a2 = irdl.any
    %r0 = irdl.any
    irdl.operands(variadic %a0, variadic %a1, variadic %a2)
    irdl.results(%r0)
  }
  irdl.operation @store {
    %a0 = irdl.any
    %a1 = irdl.any
    %a2 = irdl.any
    irdl.operands(variadic %a0, variadic %a1, variadic %a2)
  }
  irdl.operation @convert {
    %a0 = irdl.any
    %r0 = irdl.any
    irdl.operands(%a0)
    irdl.results(%r0)
  }
  irdl.operation @cast {
    %a0 = irdl.any
    %r0 = irdl.any
    irdl.operands(%a0)
    irdl.results(%r0)
  }
  irdl.operation @reassociate {
    %a0 = irdl.any
    %r0 = irdl.any
    irdl.operands(%a0)
    irdl.results(%r0)
  }
  irdl.operation @chunk {
    %a0 = irdl.any
    %r0 = irdl.any
    irdl.operands(%a0)
    irdl.results(%r0)
  }
  irdl.operation @buffer {
    %a0 = irdl.any
    %r0 = irdl.any
    %r1 = irdl.any
    %r2 = irdl.any
    %r3 = irdl.any
    %r4 = irdl.any
    %r5 = irdl.any
    %r6 = irdl.any
    %r7 = irdl.any
    irdl.operands(%a0)
    irdl.results(variadic %r0, variadic %r1, variadic %r2, variadic %r3, variadic %r4, variadic %r5, variadic %r6, variadic %r7)
  }
  irdl.operation @concat {
    %a0 = irdl.any
    %a1 = irdl.any
    %a2 = irdl.any
    %a3 = irdl.any
    %a4 = irdl.any
    %a5 = irdl.any
    %a6 = irdl.any
    %a7 = irdl.any
    %r0 = irdl.any
    irdl.operands(variadic %a0, variadic %a1, variadic %a2, variadic %a3, variadic %a4, variadic %a5, variadic %a6, variadic %a7)
    irdl.results(%r0)
  }
  irdl.operation @join {
    %a0 = irdl.any
    %a1 = irdl.any
    %a2 = irdl.any
    %a3 = irdl.any
    %a4 = irdl.any
    %a5 = irdl.any
    %a6 = irdl.any
    %a7 = irdl.any
    %r0 = irdl.any
    irdl.operands(variadic %a0, variadic %a1, variadic %a2, variadic %a3, variadic %a4, variadic %a5, variadic %a6, variadic %a7)
    irdl.results(%r0)
  }
  irdl.operation @empty_stack {
    %r0 = irdl.any
    irdl.results(%r0)
  }
  irdl.operation @layer_mux {
    %a0 = irdl.any
    %r0 = irdl.any
    irdl.operands(variadic %a0)
    irdl.results(%r0)
  }
  irdl.operation @extent {
    %a0 = irdl.any
    irdl.operands(%a0)
  }
  irdl.operation @fork {
    %a0 = irdl.any
    %r0 = irdl.any
    irdl.operands(%a0)
    irdl.results(variadic %r0)
  }

  // hardware level
  irdl.operation @fifo {
    %r0 = irdl.any
    irdl.results(%r0)
  }
  irdl.operation @block_channel {
    %r0 = irdl.any
    irdl.results(%r0)
  }
  irdl.operation @pop {
    %a0 = irdl.any
    %a1 = irdl.any
    %r0 = irdl.any
    irdl.operands(%a0, %a1)
    irdl.results(%r0)
  }
  irdl.operation @push {
    %a0 = irdl.any
    %a1 = irdl.any
    %a2 = irdl.any
    irdl.operands(%a0, %a1, %a2)
  }
  irdl.operation @acquire {
    %a0 = irdl.any
    %r0 = irdl.any
    irdl.operands(%a0)
    irdl.results(%r0)
  }
  irdl.operation @release {
    %a0 = irdl.any
    %a1 = irdl.any
    irdl.operands(%a0, %a1)
  }
  irdl.operation @tree {
    %a0 = irdl.any
    %r0 = irdl.any
    irdl.operands(%a0)
    irdl.results(%r0)
  }
  irdl.operation @dot {
    %a0 = irdl.any
    %r0 = irdl.any
    irdl.operands(variadic %a0)
    irdl.results(%r0)
  }
  irdl.operation @join_lanes {
    %a0 = irdl.any
    %r0 = irdl.any
    irdl.operands(variadic %a0)
    irdl.results(%r0)
  }
  irdl.operation @split_lanes {
    %a0 = irdl.any
    %a1 = irdl.any
    %r0 = irdl.any
    irdl.operands(%a0, %a1)
    irdl.results(%r0)
  }
  irdl.operation @write {
    %a0 = irdl.any
    %a1 = irdl.any
    %a2 = irdl.any
    %a3 = irdl.any
    irdl.operands(%a0, %a1, %a2, %a3)
  }
}
}
