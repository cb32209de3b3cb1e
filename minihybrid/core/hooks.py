"""What is called here and brought later: every such place of the package.

Takes:   functions and names that modules bring which are read later.
Gives:   `Hook`, a function that is still to come, and all there are; `FACES`, the names
         that are still to come in `nd`, `sym` and their parts; `FORMATS`, of files;
         `INITIALIZERS`; `WITHOUT_SCIPY`; `own_names`, what `dir()` of a module shows.

Imports point one way, and no module assigns to another, or to another's class. An array
can be bound, sent to a GPU or differentiated all the same: the method stands in its
class and calls a hook, and the module that explains how does it enters itself here.
What is left out: two answers to one hook.
"""

from minihybrid.core.op import HybridError


class Hook:
    """A function that may be called before the module is read that brings it.

    >>> half = Hook("half", "a number -> half of it")
    >>> @half.implement
    ... def by_division(x):
    ...     return x / 2
    >>> half(3)
    1.5
    """

    def __init__(self, name, meaning, default=None):
        self.name, self.meaning, self.function = name, meaning, None
        self.fetch = nothing  # what may import the module that brings it, and then gives it
        self.default = default  # what is called until a module implements the hook

    def implement(self, function):
        """Enter the function that is called from now on; a decorator.

        Raises:  HybridError if there is one already.
        """
        if self.function is not None:
            raise HybridError(
                f"{self.name}: {self.function.__module__} implements it, so "
                f"{function.__module__} cannot; call that one"
            )
        self.function = function
        return function

    def __call__(self, *args, **kwargs):
        """What the function that was brought gives."""
        function = self.function or self.fetch() or self.default
        if function is None:
            raise HybridError(
                f"{self.name} ({self.meaning}): no module implements it yet; import minihybrid"
            )
        return function(*args, **kwargs)


def nothing(*_):
    """The default where the core alone has nothing to say."""


def first(value, *_):
    """The default where the core alone has nothing to change."""
    return value


def entry(name, table, *_):
    """The default where the core alone looks a name up."""
    return table.get(name)


count_gpus = Hook("count_gpus", "() -> how many real GPUs there are", lambda: 0)
new_on_device = Hook("new_on_device", "shape, dtype, context -> DeviceArray")
wrapper = Hook("wrapper", "class of arrays, context -> what makes one of an output", first)
run_on_device = Hook("run_on_device", "context, op, *DeviceArrays, **attrs -> outputs")
backward = Hook("backward", "array, head gradient, retain_graph, train_mode -> None")
misfit = Hook("misfit", "what wrong arguments are told, or None: Python says it", nothing)
check_names = Hook("check_names", "kind of a block, prefix, params -> None, or an error", nothing)
check_symbols = Hook("check_symbols", "outputs, inputs of a SymbolBlock -> None, or ...", nothing)
instead = Hook("instead", "object or namespace, a name that it lacks -> a sentence", nothing)
refuse_inputs = Hook("refuse_inputs", "block, error, inputs -> None, or an error", nothing)
check_places = Hook("check_places", "title, entry, arrays -> None, or an error", nothing)
many_plans = Hook("many_plans", "hybrid, entry, args, old entry -> None; may share plans", nothing)
listed = Hook("listed", "Plans, whether with guards -> text", lambda plans, _: dict.__repr__(plans))
watched = Hook("watched", "hybrid, args, callback, monitor_all -> the result")
reuse = Hook("reuse", "shape, dtype -> what makes such a result, or None: NumPy does", nothing)
donatable = Hook("donatable", "nodes of a tape, variables, seeds -> State.lent", nothing)
donate = Hook("donate", "CompiledOp, variables -> context of its call")
time_steps = Hook("time_steps", "plan, arrays, bound, repeats -> [(kernel, seconds)]")
written = Hook("written", "text of a NumPy plan, its functions -> whole text, outside")
opened = Hook("opened", "bytes of a file, its name -> the bytes, or an error", first)
replaces = Hook("replaces", "name of a file, its new bytes -> None, or an error", nothing)
lacking = Hook("lacking", "nodes, their file or None -> None; a warning, or an error", nothing)
operator_of = Hook("operator_of", "name in a file, OPS, the node there -> operator, or None", entry)
in_turns = Hook("in_turns", "body, rows, states, order -> outs, states, or None", nothing)
judge = Hook("judge", "name, aliases and fields of a record -> None, or an error", nothing)
upgraded = Hook("upgraded", "attributes in a file, op, version -> today's", first)
pinned = Hook("pinned", "user attributes in an old file -> those of today")
completed = Hook("completed", "inputs, op, name, names, info, version -> all", first)
text = Hook("text", "graph, symbol, memory, plan, plans -> what it shows", object.__repr__)
unpack_sparse = Hook("unpack_sparse", "reader, kind, stored, shape, flag -> array")
save_outline = Hook("save_outline", "block, name of a file -> None")
load_outline = Hook("load_outline", "block, name of a file -> blocks to hybridize")
summary = Hook("summary", "block, inputs -> None; a table is printed")
np_array = Hook("np_array", "numbers, node, index -> np.ndarray")
np_symbol = Hook("np_symbol", "references -> its symbol in np's world")
file_of = Hook("file_of", "frame -> its file or cell", lambda frame: frame.f_code.co_filename)
lines_above = Hook("lines_above", "code to stop at -> ((code, line), ...)", lambda _: ())
of_one = Hook("of_one", "ndarray -> the same; of one element, float() takes it", first)
warn_of_mask = Hook("warn_of_mask", "array, key -> None; a key may look like a mask", nothing)
composed = Hook("composed", "symbol, args, name, kwargs -> symbol of other inputs")
capsule = Hook("capsule", "array, stream, max_version, device, copy -> DLPack's")
inferred = Hook("inferred", "symbol, infer_..., args, kwargs -> specs of arguments, ...")
bind = Hook("bind", "symbol, and what Symbol.bind takes -> Executor")
simple_bind = Hook("simple_bind", "symbol, and what simple_bind takes -> Executor")

FORMATS = {}  # what `net.export` writes: name -> (signature, path, epoch, net) -> files
INITIALIZERS = {}  # what a text such as init="xavier" stands for -> its class
WITHOUT_SCIPY = {}  # name of a function of SciPy's -> another, slower
FACES = {"nd": {}, "sym": {}, "nd.contrib": {}, "sym.contrib": {}}  # -> name -> value


def own_names(names, *more):
    """The public names of a module: those of `__all__`, else of what it defines.

    names:   its `globals()`;  more: names of what it has from others, to be seen, too.
    """
    listed = names.get("__all__") or (
        name
        for name, value in names.items()
        if not name.startswith("_") and getattr(value, "__module__", None) == names["__name__"]
    )
    return sorted({*listed, *more})
