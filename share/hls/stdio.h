// Declarations by which a design in HLS C++ is read; nothing here runs.
#pragma once
#include "stdint.h"
namespace std
{
}
