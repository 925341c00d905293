/*
 * hls::stream_of_blocks on the CPU: a FIFO of whole blocks that the producer fills and the
 * consumer drains in place, in any order, while it holds the lock.
 */
#ifndef ST_HLS_STREAMOFBLOCKS_H
#define ST_HLS_STREAMOFBLOCKS_H

#include "st_fibre.h"

#include <new>

namespace hls
{

template <class Block, int DEPTH = 0> class stream_of_blocks;
template <class Block> class write_lock;
template <class Block> class read_lock;

template <class Block> class stream_of_blocks<Block, 0> : public st::channel
{
	static_assert(std::is_trivially_copyable<Block>::value, "blocks are plain data");

      public:
	explicit stream_of_blocks(const char *title = "stream_of_blocks")
	    : stream_of_blocks(title, 2)
	{
	}

	~stream_of_blocks()
	{
		::operator delete(blocks, std::align_val_t(alignof(Block)));
	}

      protected:
	stream_of_blocks(const char *title, std::size_t count)
	    : channel(title, count, true),
	      blocks(static_cast<Block *>(::operator new(
	              (count + 1) * sizeof(Block), std::align_val_t(alignof(Block)))))
	{
	}

      private:
	friend class write_lock<Block>;
	friend class read_lock<Block>;
	Block *blocks; /* depth of them in use, and a spare for accesses after a failed wait */

	Block &slot(std::uint64_t serial, bool usable)
	{
		return blocks[usable ? serial % depth : depth];
	}
};

template <class Block, int DEPTH> class stream_of_blocks : public stream_of_blocks<Block, 0>
{
	static_assert(DEPTH > 0, "a stream of blocks holds at least one block");

      public:
	explicit stream_of_blocks(const char *title = "stream_of_blocks")
	    : stream_of_blocks<Block, 0>(title, DEPTH)
	{
	}
};

/* Holds a free block; hands it to the consumer when it goes out of scope. */
template <class Block> class write_lock
{
      public:
	explicit write_lock(stream_of_blocks<Block> &stream)
	    : owner(stream), usable(stream.await_room()), block(stream.slot(stream.written, usable))
	{
	}

	~write_lock()
	{
		if (usable)
			owner.wrote();
	}

	write_lock(const write_lock &) = delete;
	write_lock &operator=(const write_lock &) = delete;

	template <class B = Block> std::remove_extent_t<B> &operator[](std::size_t index)
	{
		return block[index];
	}

	operator Block &()
	{
		return block;
	}

      private:
	stream_of_blocks<Block> &owner;
	bool usable;
	Block &block;
};

/* Holds the oldest filled block; frees it when it goes out of scope. */
template <class Block> class read_lock
{
      public:
	explicit read_lock(stream_of_blocks<Block> &stream)
	    : owner(stream), usable(stream.await_data()), block(stream.slot(stream.taken, usable))
	{
	}

	~read_lock()
	{
		if (usable)
			owner.took();
	}

	read_lock(const read_lock &) = delete;
	read_lock &operator=(const read_lock &) = delete;

	template <class B = Block> std::remove_extent_t<B> &operator[](std::size_t index)
	{
		return block[index];
	}

	operator Block &()
	{
		return block;
	}

      private:
	stream_of_blocks<Block> &owner;
	bool usable;
	Block &block;
};

} // namespace hls

#endif
