"""Samples of operators: normalisation, embedding, activations."""

SAMPLES = {}
