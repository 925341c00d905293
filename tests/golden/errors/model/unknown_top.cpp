// stc model --top gem
void gemm(float a[4]) { a[0] = 1; }
