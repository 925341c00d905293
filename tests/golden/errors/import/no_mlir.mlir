// stc compile --platform u55c -o %o
# StreamTensor

PyTorch models become stream dataflow designs; 100 % of it.
