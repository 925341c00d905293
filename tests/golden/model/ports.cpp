// stc model --json
/* Sixteen words of a bank that moves need eight cycles; 13 of 15 banks never meet. */
#include "hls_vector.h"
typedef hls::vector<float, 16> float16;
void load(float16 words[26], float out[416], float zero[390])
{
#pragma HLS INTERFACE m_axi port=words bundle=memory
	float v[416];
	float z[390];
#pragma HLS ARRAY_PARTITION variable=v cyclic factor=10 dim=1
#pragma HLS ARRAY_PARTITION variable=z cyclic factor=15 dim=1
	for (int i = 0; i < 416; i += 16) {
		float16 word = words[i / 16];
		for (int k = 0; k < 16; k++)
			v[i + k] = word[k];
	}
	for (int i = 0; i < 30; i++) {
#pragma HLS PIPELINE
		for (int k = 0; k < 13; k++)
			z[i * 13 + k] = 0;
	}
	for (int i = 0; i < 390; i++) {
		out[i] = v[i];
		zero[i] = z[i];
	}
}
