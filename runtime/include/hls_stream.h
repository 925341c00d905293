/*
 * Bounded, blocking hls::stream for running an emitted design on the CPU.
 *
 * hls::stream<T, DEPTH> derives from hls::stream<T>, so a process takes hls::stream<T>& whatever
 * the depth.  DEPTH 0 means the hardware's default of 2.
 */
#ifndef ST_HLS_STREAM_H
#define ST_HLS_STREAM_H

#include "st_fibre.h"

#include <new>

namespace hls
{

template <class T, int DEPTH = 0> class stream;

template <class T> class stream<T, 0> : public st::channel
{
	static_assert(std::is_trivially_copyable<T>::value, "stream elements are plain data");

      public:
	using value_type = T;

	explicit stream(const char *title = "stream") : stream(title, 2)
	{
	}

	~stream()
	{
		::operator delete(ring, std::align_val_t(alignof(T)));
	}

	T read()
	{
		if (!await_data())
			return T();
		T element = ring[taken & mask];
		took();
		return element;
	}

	void read(T &element)
	{
		element = read();
	}

	void write(const T &element)
	{
		if (!await_room())
			return;
		ring[written & mask] = element;
		wrote();
	}

	bool empty() const
	{
		return written == taken;
	}

	bool full() const
	{
		return written - taken >= depth;
	}

	std::size_t size() const
	{
		return written - taken;
	}

	std::size_t capacity() const
	{
		return depth;
	}

      protected:
	stream(const char *title, std::size_t elements) : channel(title, elements)
	{
		std::size_t slots = 1;

		while (slots < elements)
			slots *= 2;
		mask = slots - 1;
		ring = static_cast<T *>(
		        ::operator new(slots * sizeof(T), std::align_val_t(alignof(T))));
	}

      private:
	T *ring;            /* a power of two of slots, at least depth */
	std::uint64_t mask; /* slots - 1 */
};

template <class T, int DEPTH> class stream : public stream<T, 0>
{
	static_assert(DEPTH > 0, "a stream holds at least one element");

      public:
	explicit stream(const char *title = "stream") : stream<T, 0>(title, DEPTH)
	{
	}
};

} // namespace hls

#endif
