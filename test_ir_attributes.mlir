"builtin.module"() ({
  "func.func"() ({
    "func.return"() : () -> ()
  }) {function_type = () -> (), stream.a = {"odd name" = array<i64>, z}, stream.b = "a \22quote\22, a \5C and \0A", stream.z, sym_name = "main"} : () -> ()
}) {stream.level = "tensor"} : () -> ()
