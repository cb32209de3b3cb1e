"""Chapter 25. Functions of `minihybrid.codegen.device_math` on the simulated GPU.

A kernel's imports from that module are rebuilt with another `math`, or compiled.
"""

import ast
from collections.abc import Callable
from typing import Any

import minihybrid.codegen.device_math as device


def device_names(tree: ast.Module, make: Callable, **names: Any) -> dict:
    """Return what a kernel's source imports from the device functions, by name.

    make, names: as for `compiled` of that module: a transform of each function, and
                 substitutes for names that they use.

    >>> tree = ast.parse("from minihybrid.codegen.device_math import INF, cbrt")
    >>> device_names(tree, lambda function: function)
    {'INF': inf, 'cbrt': <function cbrt at ...>}
    """
    imported = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == device.__name__
        for alias in node.names
    }
    functions = vars(device) | device.compiled(make, **names) if imported else {}
    return {name: functions[name] for name in sorted(imported)}
