"""Reads the weights that people have on disk, quantized ones with their integers."""
