// Declarations of hls::vector, by which a design is read; nothing here runs.
#pragma once
#include "hls_numbers.h"
namespace hls
{
template <class T, unsigned long N> struct vector {
	T element_[N];
	vector();
	vector(const T &);
	T &operator[](unsigned long);
	const T &operator[](unsigned long) const;
	T reduce_add() const;
};
#define HLS_VECTOR_OPERATOR(sign)                                                                  \
	template <class T, unsigned long N>                                                        \
	vector<T, N> operator sign(const vector<T, N> &, const vector<T, N> &);                    \
	template <class T, unsigned long N>                                                        \
	vector<T, N> operator sign(const vector<T, N> &, const T &);                               \
	template <class T, unsigned long N>                                                        \
	vector<T, N> operator sign(const T &, const vector<T, N> &);                               \
	template <class T, unsigned long N>                                                        \
	vector<T, N> &operator sign##=(vector<T, N> &, const vector<T, N> &);                      \
	template <class T, unsigned long N>                                                        \
	vector<T, N> &operator sign##=(vector<T, N> &, const T &);
HLS_VECTOR_OPERATOR(+)
HLS_VECTOR_OPERATOR(-)
HLS_VECTOR_OPERATOR(*)
HLS_VECTOR_OPERATOR(/)
} // namespace hls
