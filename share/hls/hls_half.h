// Declarations by which a design in HLS C++ is read; nothing here runs.
#pragma once
typedef _Float16 half;
