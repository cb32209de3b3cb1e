"""Samples of operators: indexing, ordering and moving data."""

SAMPLES = {}
