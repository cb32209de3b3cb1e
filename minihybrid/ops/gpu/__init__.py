"""Chapter 27. Loops that are written for the threads of a GPU."""
