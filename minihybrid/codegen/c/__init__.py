"""Chapter 23. One file of C99, written from the loops of the target "cpu"."""
