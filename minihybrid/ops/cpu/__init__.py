"""Chapter 12. Loops that are written for a processor's registers and caches."""
