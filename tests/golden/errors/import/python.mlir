// stc compile --platform u55c -o %o
// a comment, which is MLIR so far
  import torch
