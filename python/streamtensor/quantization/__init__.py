"""Integers for real numbers: the arithmetic of --quant and int8, calibration, rewritten graphs."""
