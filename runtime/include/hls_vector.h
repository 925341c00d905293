/*
 * hls::vector<T, N>: N elements that travel as one word.  Aligned to the greatest power of two
 * that divides its size, as the vendor's type is; a power-of-two size has no padding.
 */
#ifndef ST_HLS_VECTOR_H
#define ST_HLS_VECTOR_H

#include <cstddef>

namespace hls
{

template <class T, std::size_t N> class alignas((sizeof(T) * N) & (~(sizeof(T) * N) + 1)) vector
{
	static_assert(N > 0, "a vector has at least one element");

      public:
	using value_type = T;

	vector() = default;

	vector(const T &every)
	{
		for (std::size_t i = 0; i < N; ++i)
			element[i] = every;
	}

	T &operator[](std::size_t i)
	{
		return element[i];
	}

	const T &operator[](std::size_t i) const
	{
		return element[i];
	}

	static constexpr std::size_t size()
	{
		return N;
	}

#define ST_VECTOR_OPERATOR(op)                                                                     \
	vector &operator op##=(const vector & other)                                               \
	{                                                                                          \
		for (std::size_t i = 0; i < N; ++i)                                                \
			element[i] = static_cast<T>(element[i] op other[i]);                       \
		return *this;                                                                      \
	}                                                                                          \
	friend vector operator op(const vector &a, const vector &b)                                \
	{                                                                                          \
		vector result;                                                                     \
                                                                                                   \
		for (std::size_t i = 0; i < N; ++i)                                                \
			result[i] = static_cast<T>(a[i] op b[i]);                                  \
		return result;                                                                     \
	}

	ST_VECTOR_OPERATOR(+)
	ST_VECTOR_OPERATOR(-)
	ST_VECTOR_OPERATOR(*)
	ST_VECTOR_OPERATOR(/)
#undef ST_VECTOR_OPERATOR

      private:
	T element[N];
};

} // namespace hls

#endif
