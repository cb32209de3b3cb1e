"""Random programs beside MXNet 1.9.1: differences, and their reasons."""
