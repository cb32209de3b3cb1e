"""Samples of operators: convolution, pooling and their kin."""

SAMPLES = {}
