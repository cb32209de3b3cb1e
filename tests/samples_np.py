"""Samples of operators: those of the np and npx namespaces."""

SAMPLES = {}
