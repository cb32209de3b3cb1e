"""Loops that are written for a processor's registers and caches."""
