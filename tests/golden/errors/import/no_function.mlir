// stc compile --platform u55c -o %o
module {
}
