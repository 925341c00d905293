// stc compile --platform u55c -o %o
module attributes {stream.level = "gate"} {
}
