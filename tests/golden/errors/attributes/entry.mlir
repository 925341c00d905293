// stc check
// Entries of dictionaries are in the table as well, by the attribute that holds them.
"builtin.module"() ({
  "func.func"() ({
  ^bb0:
    "func.return"() : () -> ()
  }) {function_type = () -> (), stream.inputs = [{name = "x", role = "input", step = "one", type = tensor<4xf32>}], stream.outputs = [], sym_name = "main"} : () -> ()
}) {stream.level = "hardware"} : () -> ()
