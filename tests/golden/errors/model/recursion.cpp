// stc model
static int f(int n) { return n ? f(n - 1) : 0; }
void top(int a[4]) { a[0] = f(a[1]); }
