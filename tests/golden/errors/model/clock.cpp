// stc model --clock fast
void f(float a[4]) { a[0] = 1; }
