"""Chapter 19. Loops that are written for the threads of a GPU."""
