"""Chapter 14. Loops in graphs: MXNet's `foreach` as one node, and the primitive below it."""
