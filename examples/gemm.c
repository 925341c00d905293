/* C := beta C + alpha A B. */
enum { ROWS = 64, COLUMNS = 48, TERMS = 32 };

void gemm(float alpha, float beta, float C[ROWS][COLUMNS], const float A[ROWS][TERMS],
        const float B[TERMS][COLUMNS])
{
	for (int i = 0; i < ROWS; i++)
		for (int j = 0; j < COLUMNS; j++) {
			C[i][j] *= beta;
			for (int k = 0; k < TERMS; k++)
				C[i][j] += alpha * A[i][k] * B[k][j];
		}
}
