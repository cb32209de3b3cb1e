"""Loops that are written for the threads of a GPU."""
