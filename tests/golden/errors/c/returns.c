// stc compile -o %o
float f(const float x[8])
{
	float sum = 0.0f;
	for (int i = 0; i < 8; i++)
		sum += x[i];
	return sum;
}
