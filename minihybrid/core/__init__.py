"""The core: what one call runs through; it needs NumPy and the records.

Takes:   the operators' records (minihybrid/ops).
Gives:   arrays and their tape, symbols and graphs, the passes that every target needs,
         a plan for NumPy, blocks and parameters, and two files out and in.

All else (compiled code, devices, other formats, pictures) enters itself here, by a hook
(hooks.py) or a registry, and can be taken away: tests/engine/test_core.py does so.
"""

from importlib import import_module


def __getattr__(name):
    """A module of the core, which is imported when it is first asked for."""
    try:
        return import_module(f"{__name__}.{name}")
    except ModuleNotFoundError:
        raise AttributeError(f"{__name__} has no module '{name}'") from None
