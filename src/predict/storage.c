/* Cost of memories by the true shapes of UltraScale+ primitives: 18 Kb block RAMs of 16K x 1 to 512
 * x 36, URAMs of 4K x 72, LUTRAM of 64 x 1 or 32 x 2 per LUT, shift registers of 32 x 1 or 16 x 2
 * per LUT. */
#include "base/number.h"
#include "predict/resource.h"

const char *const storage_name[] = { "auto", "registers", "lutram", "bram", "uram" };

enum storage storage_find(const char *name)
{
	for (int i = STORAGE_REGISTERS; i <= STORAGE_URAM; i++)
		if (text_same(storage_name[i], name))
			return (enum storage)i;
	return STORAGE_AUTO;
}

static int64_t block_rams(int64_t bits, int64_t depth)
{
	static const int64_t width[] = { 1, 2, 4, 9, 18, 36 };
	static const int64_t words[] = { 16384, 8192, 4096, 2048, 1024, 512 };
	int64_t least = INT64_MAX;
	for (int i = 0; i < 6; i++) {
		int64_t count = ceil_div(bits, width[i]) * ceil_div(depth, words[i]);
		least = count < least ? count : least;
	}
	return least;
}

static int64_t ultra_rams(int64_t bits, int64_t depth)
{
	return ceil_div(bits, 72) * ceil_div(depth, 4096);
}

/* 14 bits of 32 words (RAM32M16) or 7 bits of 64 words (RAM64M8) take 8 LUTs, one of which has the
 * write port (UG574, UG974); deeper memories also take a multiplexer. */
static int64_t lutram_luts(int64_t bits, int64_t depth)
{
	int64_t rows = ceil_div(depth, 64);
	if (depth <= 32)
		return ceil_div(bits * 8, 14);
	return ceil_div(bits * 8, 7) * rows + (rows > 1 ? ceil_div(bits * rows, 4) : 0);
}

/* A URAM holds as many bits as 16 block RAMs, and a card has about a quarter as many: one URAM
 * counts as four block RAMs. */
enum storage storage_choose(int64_t bits, int64_t depth, bool uram)
{
	if (depth <= 1)
		return STORAGE_REGISTERS;
	if (depth <= 64 || bits * depth <= 2048)
		return STORAGE_LUTRAM;
	return uram && ultra_rams(bits, depth) * 4 < block_rams(bits, depth) ? STORAGE_URAM
	                                                                     : STORAGE_BRAM;
}

struct resources storage_cost(enum storage storage, int64_t bits, int64_t depth)
{
	switch (storage == STORAGE_AUTO ? storage_choose(bits, depth, true) : storage) {
	case STORAGE_REGISTERS:
		return (struct resources){ .lut = depth > 1 ? ceil_div(bits * depth, 4) : 0,
			.ff = bits * depth };
	case STORAGE_LUTRAM:
		return (struct resources){ .lut = lutram_luts(bits, depth), .ff = bits };
	case STORAGE_BRAM: return (struct resources){ .bram18 = block_rams(bits, depth) };
	default: return (struct resources){ .uram = ultra_rams(bits, depth) };
	}
}

/* The memory of a block channel holds all its blocks. */
struct memory memory_of(const struct platform *platform, const struct op *op)
{
	const struct type *type = op->result[0]->type;
	const struct type *array = op->code == OP_BLOCK_CHANNEL ? type->element : type;
	enum storage storage = storage_find(attr_text_or(op, KEY_STREAM_STORAGE, NULL));
	if (op->code == OP_FIFO)
		return (struct memory){ 1, type_bits(type->element), type->depth, storage };
	int64_t banks = attr_integer_or(op, KEY_STREAM_PARTITION, 1);
	int64_t words = type_elements(array);
	int64_t copies = op->code == OP_BLOCK_CHANNEL ? type->depth : 1;
	banks = banks > words ? words : banks;
	banks = banks < 1 ? 1 : banks;
	struct memory memory = { banks, type_bits(array->element), ceil_div(words, banks) * copies,
		storage };
	if (storage == STORAGE_AUTO)
		memory.storage = storage_choose(
		        memory.bits, memory.depth, platform_total(platform).uram > 0);
	return memory;
}

/* A FIFO of up to 32 words is a shift register, as synthesis makes it: a LUT stores one bit of 32
 * words or two bits of 16 (UG574, SRL32 and SRL16 with one address). */
static struct resources fifo_cost(const struct platform *platform, struct memory fifo)
{
	struct resources control = { .lut = platform->fifo_word_lut,
		.ff = platform->fifo_word_lut };
	if (fifo.storage == STORAGE_AUTO && fifo.depth <= 32)
		return resources_add(control,
		        (struct resources){
		                .lut = fifo.depth <= 16 ? (fifo.bits + 1) / 2 : fifo.bits,
		                .ff = fifo.bits });
	if (fifo.storage == STORAGE_AUTO)
		fifo.storage =
		        storage_choose(fifo.bits, fifo.depth, platform_total(platform).uram > 0);
	return resources_add(control, storage_cost(fifo.storage, fifo.bits, fifo.depth));
}

static struct resources cost_of(
        const struct platform *platform, const struct op *op, struct memory memory)
{
	if (op->code == OP_FIFO)
		return fifo_cost(platform, memory);
	struct resources bank = storage_cost(memory.storage, memory.bits, memory.depth);
	if (attr_get(op, KEY_STREAM_ROTATION)) /* no word is selected */
		bank.lut = 0;
	if (memory.storage != STORAGE_REGISTERS)
		memory.banks *= attr_integer_or(op, KEY_STREAM_READ_PORTS, 1);
	return (struct resources){ bank.lut * memory.banks, bank.ff * memory.banks, 0,
		bank.bram18 * memory.banks, bank.uram * memory.banks };
}

struct resources memory_cost(const struct platform *platform, const struct op *op)
{
	return cost_of(platform, op, memory_of(platform, op));
}

struct resources memory_cost_as(
        const struct platform *platform, const struct op *op, enum storage storage)
{
	struct memory memory = memory_of(platform, op);
	memory.storage = storage;
	return cost_of(platform, op, memory);
}

int64_t memory_bytes(const struct op *op)
{
	const struct type *type = op->result[0]->type;
	if (op->code == OP_ALLOCA)
		return type_elements(type) * type_bits(type->element) / 8;
	const struct type *item = type->element;
	int64_t bits = op->code == OP_BLOCK_CHANNEL ? type_elements(item) * type_bits(item->element)
	                                            : type_bits(item);
	return bits * type->depth / 8;
}

int64_t needed_bytes(const struct op *op)
{
	int64_t depth = op->result[0]->type->depth;
	return depth
	        ? memory_bytes(op) * attr_integer_or(op, KEY_STREAM_REQUIRED_DEPTH, depth) / depth
	        : 0;
}
