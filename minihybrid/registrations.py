"""What is imported when it is first used: all that is named here.

Takes:   names, and which module has them: the tables below, and those of packages.
Gives:   nothing of its own. The core's hooks and tables know from here on which module
         to import before they need what it brings.

`import minihybrid` takes little more than `import numpy`: a program pays for the parts
that it uses, when it uses them.
"""

import sys
from functools import partial
from importlib.util import find_spec

from minihybrid.core import hooks
from minihybrid.core.hooks import FACES, FORMATS, INITIALIZERS, WITHOUT_SCIPY
from minihybrid.core.lazy import call, resolve
from minihybrid.core.targets import TARGETS, Target

# A module, and the hooks (core/hooks.py) that it brings.
HOOKS = {
    "formats.foreign": "opened",
    "gluon.pytorch_names": "instead",
    "passes.scan": "in_turns",
    "runtime.device_checks": "check_places",
    "runtime.donation": "donatable reuse",
    "runtime.numbered_cpus": "wrapper",
    "runtime.overwrites": "follow old_values renew share",
    "runtime.shared_plans": "many_plans",
}
# What `nd` and `sym` have beside operators, and where: name -> road, as `resolve` reads it.
ARRAYS = "CSRNDArray concatenate from_numpy histogram onehot_encode reset_arrays sparse"
DLPACK = "from_dlpack to_dlpack_for_read to_dlpack_for_write"
SYMBOLS = "arange eye full histogram linspace ones zeros"
CONTRIB = "boolean_mask cond foreach isfinite isinf isnan while_loop"

# What a notebook shows of a class, and where that is written.
VIEWS = {
    ("core.block", "Block"): "view.notebook:net",
    ("core.sym", "Symbol"): "view.notebook:symbol",
}


def roads(module, names):
    """name -> road, of names that one module has."""
    return {name: f"{module}:{name}" for name in names.split()}


NAMESPACES = {
    "nd": {
        **roads("mxnet.nd_extras", ARRAYS),
        **roads("runtime.interop", DLPACK),
        **roads("gluon.function", "CachedOp"),
        "ndarray": "core.nd",
        "np": "np",
        "npx": "np.npx",
    },
    "sym": {
        **roads("mxnet.sym_extras", SYMBOLS),
        "np": "np:_SYMBOLS",
        "npx": "np.npx:_SYMBOLS",
        "symbol": "core.sym",
    },
    "nd.contrib": roads("gluon.control_flow", CONTRIB),
    "sym.contrib": roads("gluon.control_flow", CONTRIB),
}
# A target, and where its record is.
RUN = {
    "numpy": "core.numpy_target:NUMPY",
    "cpu": "runtime.page_cpu:CPU",
    "gpu": "runtime.launch:GPU",
}
FIELDS = "generate load call bound tiers unsupported usable".split()
# A format, and its writer.
WRITERS = {
    "mxnet": "core.formats:write_mxnet",
    **{name: f"formats.writers:write_{name}" for name in ("numpy", "c")},
    "wasm": "formats.wasm:write_wasm",
    "onnx": "formats.onnx.export.model:write_net",
}
# Functions of SciPy's, for those who lack it.
SPECIAL = roads("codegen.numpy.special", "digamma erf erfinv gamma gammaln zeta")
# Initializers that are not in the core.
INITIAL = {
    "normal": "gluon.init:Normal",
    "gaussian": "gluon.init:Normal",
    "xavier": "gluon.init:Xavier",
    "msraprelu": "gluon.init:MSRAPrelu",
    "orthogonal": "gluon.init:Orthogonal",
    "bilinear": "gluon.init:Bilinear",
    "lstmbias": "gluon.init:LSTMBias",
}


def ask(target, field, *args):
    """What a field of a target gives; from here on its own record stands in the table."""
    TARGETS[target] = resolve(RUN[target])
    return getattr(TARGETS[target], field)(*args)


def compiles() -> bool:
    """Whether the target "cpu" may be the usual one; the compiler itself is not imported.

    In a page there is no compiler, and the target runs its kernels without one.
    """
    return sys.platform == "emscripten" or find_spec("numba") is not None


def tell(ipython):
    """Tell an IPython that runs, if one does, who writes HTML; it asks when it shows one."""
    if shell := getattr(ipython, "get_ipython", lambda: None)():
        html = shell.display_formatter.formatters["text/html"]
        for (module, name), road in VIEWS.items():
            html.for_type_by_name(f"minihybrid.{module}", name, partial(call, road))


class Names(dict):
    """name -> road of what `nd` or `sym` has beside operators; reading replaces it by the thing."""

    def __getitem__(self, name):
        value = super().__getitem__(name)
        if isinstance(value, str):
            self[name] = value = resolve(value)
        return value


for _module, _names in HOOKS.items():
    for _name in _names.split():
        getattr(hooks, _name).fetch = partial(resolve, f"{_module}:{_name}")
for _name, _table in NAMESPACES.items():
    FACES[_name] = Names(_table)
for _name in RUN:
    TARGETS[_name] = Target(**{field: partial(ask, _name, field) for field in FIELDS})
TARGETS["cpu"] = TARGETS["cpu"]._replace(usable=compiles)
TARGETS["gpu"] = TARGETS["gpu"]._replace(here=False)
WITHOUT_SCIPY.update({name: partial(call, road) for name, road in SPECIAL.items()})
FORMATS.update({name: partial(call, road) for name, road in WRITERS.items()})
INITIALIZERS.update({name: partial(call, road) for name, road in INITIAL.items()})
tell(sys.modules.get("IPython"))
