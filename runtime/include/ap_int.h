/*
 * ap_int<W>, ap_uint<W>: integers of W bits that wrap, for the CPU.  Only what emitted code uses:
 * the vendor's own header takes this one's place in synthesis. Arithmetic happens on the wider
 * integer that it converts to. */
#ifndef ST_AP_INT_H
#define ST_AP_INT_H

#include <cstdint>
#include <type_traits>

template <int W> class ap_int
{
	static_assert(W >= 1 && W <= 64, "a width of 1 to 64 bits");
	using storage = std::conditional_t<W <= 8, std::int8_t,
	        std::conditional_t<W <= 16, std::int16_t,
	                std::conditional_t<W <= 32, std::int32_t, std::int64_t>>>;
	static constexpr int spare = 8 * static_cast<int>(sizeof(storage)) - W;

      public:
	ap_int() = default;

	template <class T>
	ap_int(T x)
	    : value(static_cast<storage>(
	              static_cast<storage>(
	                      static_cast<std::make_unsigned_t<storage>>(x) << spare) >>
	              spare))
	{
	}

	operator storage() const
	{
		return value;
	}

      private:
	storage value;
};

/* As wide as products are; those of other numbers fit the integers that they convert to. */
template <int V, int W> inline ap_int<V + W> operator*(ap_int<V> x, ap_int<W> y)
{
	return static_cast<std::int64_t>(x) * static_cast<std::int64_t>(y);
}

/* A counter. */
template <int W> class ap_uint
{
	static_assert(W >= 1 && W <= 32, "a width of 1 to 32 bits");

      public:
	ap_uint() = default;

	template <class T> ap_uint(T x) : value(static_cast<std::uint32_t>(x) & mask)
	{
	}

	operator std::uint32_t() const
	{
		return value;
	}

	void operator++(int)
	{
		value = (value + 1) & mask;
	}

      private:
	static constexpr std::uint32_t mask = ~std::uint32_t(0) >> (32 - W);
	std::uint32_t value;
};

#endif
