"""Run `python -m beside` in the folder tests/."""

from beside.compare import main

main()
