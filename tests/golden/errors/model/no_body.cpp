// stc model
float g(float);
void f(float a[4]) { a[0] = g(a[1]); }
