// Declarations by which a design in HLS C++ is read; nothing here runs.
#pragma once
#include "stdint.h"
namespace std
{
}
extern "C" void *memcpy(void *, const void *, size_t);
extern "C" void *memset(void *, int, size_t);
