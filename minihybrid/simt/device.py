"""Chapter 17. Functions of `minihybrid.codegen.device` on the simulated GPU.

Takes:   the imports of a kernel's text.
Gives:   these functions, made again over another `math` and `np`: the simulator's, of
         which float32 stays float32, or compiled.
"""

import ast
from importlib import import_module
from types import FunctionType, ModuleType

MODULE = "minihybrid.codegen.device"


def device_functions(tree, math, numpy, compiled=lambda function: function):
    """The functions that a text imports from the module of device functions, by name.

    math, numpy: what they use under these names;
    compiled:    applied to each of them.

    >>> import math
    >>> device_functions(ast.parse("import math"), math, None)
    {}
    """
    wanted = {alias.asname or alias.name: alias.name for node in ast.walk(tree)
              if isinstance(node, ast.ImportFrom) and node.module == MODULE
              for alias in node.names}
    if not wanted:
        return {}
    functions = rebuilt(import_module(MODULE), math, numpy, compiled)
    return {name: functions[original] for name, original in wanted.items()}


def rebuilt(module, math, numpy, compiled):
    """The names of a module, its functions made again over other `math` and `np`."""
    names = dict(vars(module))
    for name, value in names.items():
        if isinstance(value, FunctionType) and value.__module__ == module.__name__:
            names[name] = compiled(FunctionType(
                value.__code__, names, name, value.__defaults__, value.__closure__))
        elif isinstance(value, ModuleType) and value.__name__ in ("math", "numpy"):
            names[name] = math if value.__name__ == "math" else numpy
    return names
