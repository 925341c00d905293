// stc compile -o %o
void scale(float y[4], const float x[4])
{
	for (int i = 0; i < 4; i++)
		y[i] = 2.0f * x[i];
}

void shift(float y[4], const float x[4])
{
	for (int i = 0; i < 4; i++)
		y[i] = 2.0f + x[i];
}
