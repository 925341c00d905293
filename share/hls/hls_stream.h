// Declarations by which a design in HLS C++ is read; nothing here runs.
#pragma once
#include "hls_numbers.h"
namespace hls
{
template <class T, int DEPTH = 0> struct stream {
	T element_[1];
	stream();
	stream(const char *);
	T read();
	void read(T &);
	bool read_nb(T &);
	void write(const T &);
	bool write_nb(const T &);
	bool empty() const;
	bool full() const;
	stream &operator<<(const T &);
	stream &operator>>(T &);
};
} // namespace hls
