// stc model --clock 4
/* The sum through memory, a sum in a register, and one of the iteration 26 before. */
void sums(const float a[26][64], float s[26], float *total)
{
	float sum = 0;
through_memory:
	for (int i = 0; i < 26; i++)
		for (int j = 0; j < 64; j++) {
#pragma HLS PIPELINE II=1
			s[i] += a[i][j];
		}
in_register:
	for (int j = 0; j < 64; j++) {
#pragma HLS PIPELINE II=1
		sum += a[0][j];
	}
far:
	for (int j = 0; j < 64; j++)
		for (int i = 0; i < 26; i++) {
#pragma HLS PIPELINE II=1
			s[i] += a[i][j];
		}
	*total = sum;
}
