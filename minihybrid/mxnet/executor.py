"""Executor: a symbol bound to arrays, to run repeatedly.

Defines: `Executor`, which `Symbol.bind`, `simple_bind` and `eval` create.

In the symbolic style, you define the whole program, bind it to memory, then run it. A
symbol goes through the same passes and code generation as a hybridized block. The only
difference is memory: an executor reads and writes the bound arrays, which their owner
may change between calls.
Source:  MXNet's mxnet.executor.Executor; here without devices for parts of a graph.
"""

import numpy as np

from minihybrid.core import nd, tape
from minihybrid.core.array import NDArray
from minihybrid.core.compiled import CompiledOp
from minihybrid.core.context import check_context
from minihybrid.core.hooks import own_names
from minihybrid.core.op import AttrError, HybridError, ShapeError, Spec, described
from minihybrid.core.passes.gradient import seed_names
from minihybrid.core.pipeline import Job
from minihybrid.core.plan import active_plan, write_states
from minihybrid.core.sym import Symbol, replay, trace
from minihybrid.core.targets import best_target, target_of
from minihybrid.mxnet.sym_extras import inferred
from minihybrid.passes import expand
from minihybrid.runtime.overwrites import overwrite


class Executor:
    """A symbol with the arrays that it reads and writes, created by `Symbol.bind`.

    arg_arrays, grad_arrays, aux_arrays, outputs:  lists of NDArray, in the symbol's
             order; arg_dict, grad_dict, aux_dict, output_dict: the same by name.

    The array objects never change: a call reads the bound ones and overwrites
    `outputs`; `backward` writes into the gradients.

    >>> from minihybrid import cpu
    >>> from minihybrid.core import sym
    >>> e = (sym.var("a") * 2).bind(cpu(), {"a": nd.array([1, 2])})
    >>> e.forward()[0].asnumpy()
    array([2., 4.], dtype=float32)
    """

    def __init__(self, symbol, ctx, args, grads, reqs, states):
        self._symbol, self._ctx, self._reqs = symbol, ctx, reqs
        self.arg_dict, self.grad_dict, self.aux_dict = args, grads, states
        self.arg_arrays, self.aux_arrays = list(args.values()), list(states.values())
        self.grad_arrays = list(grads.values())
        self._wrt = [
            name for name, req in reqs.items() if req != "null" and grads[name] is not None
        ]
        self._arrays = {name: a.data for name, a in (args | states).items()}
        self._target = next(map(target_of, self._arrays.values()), best_target())
        self._monitor = None
        self._watch([])
        self.outputs = [
            nd.zeros(n.specs[i].shape, ctx, n.specs[i].dtype) for n, i in self._graph.heads
        ]

    def _watch(self, watched):
        """Retrace the symbol with additional outputs."""
        variables = self._symbol._variables()
        inputs = {n.name: n for part in variables for n in part}
        specs = {name: Spec(self._arrays[name].shape, self._arrays[name].dtype) for name in inputs}
        refs = [*self._symbol.refs, *watched]
        self._graph, _ = trace(
            lambda *values: replay(refs, dict(zip(inputs.values(), values, strict=True))), specs
        )
        self._plans, self._ops = {}, {}  # training mode -> plan, operator
        self._mode, self._saved = None, None

    def __reduce__(self):
        state = (self._symbol, self._ctx, self.arg_dict, self.grad_dict, self._reqs, self.aux_dict)
        return Executor, state, {"outputs": self.outputs}

    # -- running
    def forward(self, is_train=False, **kwargs):
        """Compute the outputs, after copying in the arrays given by name.

        Returns: `outputs`, which the next call overwrites.
        Raises:  AttrError or ShapeError for a value that doesn't match the bound array.
        """
        for name, value in kwargs.items():
            if name not in self.arg_dict:
                raise AttrError(
                    f"forward: no argument is called '{name}'; there are {', '.join(self.arg_dict)}"
                )
            _copy_in("forward", self.arg_dict[name], name, value)
        training = bool(is_train)
        self._mode, self._saved = training, None
        if training and self._wrt:
            outs = self._run_and_keep()
        else:
            bound = self._plans.get(training) or self._plan(training)
            outs = bound(())
            write_states(bound.tiers.states, outs, self._arrays)
        for array, out in zip(self.outputs, outs, strict=False):
            overwrite(array, out)
        if self._monitor:
            self._report(outs)
        return self.outputs

    def _job(self, graph, training):
        return Job(graph, (), training, self._target, self._title)

    def _plan(self, training):
        """Return the plan of a forward pass that saves nothing for `backward`."""
        tiers = active_plan(self._job(self._graph, training))
        self._plans[training] = bound = tiers.bind(self._arrays)
        return bound

    def _op(self):
        """Return the operator with a backward plan, which reads the saved values."""
        if self._mode not in self._ops:
            graph = expand(self._graph, self._mode).check("expand")
            self._ops[self._mode] = CompiledOp(self._job(graph, self._mode), taped=self._wrt)
        return self._ops[self._mode]

    def _run_and_keep(self):
        op = self._op()
        outs = op.eager(*(self._arrays[name] for name in op.names))
        outs = outs if isinstance(outs, tuple) else (outs,)
        self._saved = [NDArray(out) for out in outs]
        return outs

    def backward(self, out_grads=None, is_train=True):
        """Write the gradients into the bound arrays, each according to its `grad_req`.

        out_grads: the gradients of the outputs: an array, a list, or a dict by output
                 name. Outputs that are losses (make_loss, SoftmaxOutput) need none.
        is_train: the mode, if `forward` wasn't called before.
        Raises:  HybridError if an output needs a gradient and none is given.
        """
        if not self._wrt:
            return
        if self._mode is None:
            self._mode = bool(is_train)
        if self._saved is None:  # the last `forward` saved nothing
            self._run_and_keep()
        op = self._op()
        no_grads = [None] * (len(self._saved) - len(self.outputs))
        with tape.pause():
            gs = [
                out.zeros_like() if g is None else g  # never read for a loss
                for g, out in zip(self._out_grads(out_grads, op), self.outputs, strict=True)
            ]
            inputs = [NDArray(self._arrays[name]) for name in op.names]
            grads = op.grad((*gs, *no_grads), tuple(self._saved), *inputs)
            grads = dict(zip(op.names, grads, strict=True))
        for name in self._wrt:
            _write(self.grad_dict[name], self._reqs[name], grads.get(name))

    def _out_grads(self, grads, op):
        """Return an array or None per output."""
        names = self._symbol.list_outputs()
        if isinstance(grads, dict):
            grads = [grads.get(name) for name in names]
        grads = [grads] if isinstance(grads, NDArray) else list(grads or ())
        grads += [None] * (len(names) - len(grads))
        read = {n.name for n in op.backward.variables}
        for name, out, g, seed in zip(
            names, self.outputs, grads, seed_names(self._graph), strict=False
        ):
            if g is None and seed in read:
                raise HybridError(
                    f"backward: the output '{name}' is no loss, so its gradient is needed; pass "
                    "out_grads=[...], or make it a loss with sym.make_loss"
                )
            if g is not None and not isinstance(g, NDArray):
                raise AttrError(
                    f"backward: the gradient of '{name}' is {described(g)}, but an NDArray "
                    "is needed"
                )
            if g is not None and g.shape != out.shape:
                raise ShapeError(
                    f"backward: the gradient of '{name}' has shape "
                    f"{g.shape}, but the output has {out.shape}"
                )
        if len(grads) > len(names):
            raise AttrError(
                f"backward: {len(grads)} gradients are given, but there "
                f"are {len(names)} outputs ({', '.join(names)})"
            )
        return grads

    # -- inspection
    @property
    def output_dict(self):
        """Output name -> array."""
        return dict(zip(self._symbol.list_outputs(), self.outputs, strict=True))

    @property
    def _title(self):
        return f"executor of {self._symbol!r}"

    @property
    def plan(self):
        """The plan of a call in prediction mode."""
        return (self._plans.get(False) or self._plan(False)).tiers.plan

    def debug_str(self):
        """Return the symbol's nodes and the plan's memory, as text."""
        plan = self.plan
        return (
            f"{self._symbol.debug_str()}Total {plan.nbytes_planned} bytes allocated"
            f"\nTotal {plan.n_kernels} kernels\n"
        )

    def get_optimized_symbol(self):
        """Return the optimized symbol, before operators are fused into kernels."""
        outputs = dict(self.plan.stages)["dce"].outputs
        return Symbol(outputs[: len(self.outputs)])

    def set_monitor_callback(self, callback, monitor_all=False):
        """Call `callback(name, array)` on every operator's output in each `forward`.

        monitor_all: also on the values of variables.

        Every value becomes an output, so none stays inside a fused kernel.
        """
        internals = self._symbol.get_internals()
        watched = [
            (s.refs[0], s.list_outputs()[0])
            for s in internals
            if monitor_all or s.refs[0][0].op is not None
        ]
        self._watch([ref for ref, _ in watched])
        self._monitor = callback, [name for _, name in watched]

    def _report(self, outs):
        callback, names = self._monitor
        for name, out in zip(names, outs[len(self.outputs) :], strict=False):
            callback(name, NDArray(out))

    # -- other arrays
    def copy_params_from(self, arg_params, aux_params=None, allow_extra_params=False):
        """Copy arrays, given by name, into the bound ones.

        Raises:  AttrError for a name that isn't bound, unless `allow_extra_params` is set.
        """
        for params, bound, what in (
            (arg_params, self.arg_dict, "argument"),
            (aux_params or {}, self.aux_dict, "state"),
        ):
            for name, array in params.items():
                if name in bound:
                    _copy_in("copy_params_from", bound[name], name, array)
                elif not allow_extra_params:
                    raise AttrError(
                        f"copy_params_from: no {what} is called '{name}'; there are "
                        f"{', '.join(bound)}; or pass allow_extra_params=True"
                    )

    def reshape(self, partial_shaping=False, allow_up_sizing=False, **kwargs):
        """Return an executor of the same symbol for other shapes that shares memory.

        kwargs:  argument name -> new shape; arrays that shrink use the first part of
                 their memory, unchanged ones are shared.
        partial_shaping: let the shapes of other arguments change as well.
        allow_up_sizing: let arrays grow; these get new memory.
        """
        arguments, _, states = self._symbol.infer_shape(
            **{
                **(kwargs if partial_shaping else {n: a.shape for n, a in self.arg_dict.items()}),
                **kwargs,
            }
        )
        if arguments is None:
            raise ShapeError(
                "reshape: the other shapes do not follow from "
                f"{', '.join(kwargs) or 'nothing'}; give more of them"
            )
        shapes = dict(zip(self.arg_dict, arguments, strict=True))
        part = {"allow_up_sizing": allow_up_sizing}
        args = {n: _resized(n, a, shapes[n], **part) for n, a in self.arg_dict.items()}
        grads = {
            n: None if g is None else _resized(n, g, shapes[n], **part)
            for n, g in self.grad_dict.items()
        }
        aux = {
            n: _resized(n, a, s, **part)
            for (n, a), s in zip(self.aux_dict.items(), states, strict=True)
        }
        new = Executor(self._symbol, self._ctx, args, grads, self._reqs, aux)
        new.outputs = [
            _resized(name, old, out.shape, True)
            for (name, old), out in zip(self.output_dict.items(), new.outputs, strict=True)
        ]
        return new


def _copy_in(what, array, name, value):
    """Overwrite the elements of a bound array."""
    if not isinstance(value, (NDArray, np.ndarray)):
        raise AttrError(f"{what}: {name} is {described(value)}, but an array is needed")
    if value.shape != array.shape:
        raise ShapeError(
            f"{what}: {name} has shape {value.shape}, but the bound array has {array.shape}; "
            f"reshape the executor with reshape({name}={value.shape})"
        )
    overwrite(array, value.data if isinstance(value, NDArray) else value)


def _write(array, req, g):
    if req == "add":
        g = array.detach() if g is None else array.detach() + g
    overwrite(array, 0 if g is None else g.data)  # without a gradient, it is 0


def _resized(name, array, shape, allow_up_sizing):
    """Return an array of another shape, a view of the first part of its memory if possible.

    Raises:  ShapeError if it must grow, but `allow_up_sizing` isn't set.
    """
    if array.shape == shape:
        return array
    size = int(np.prod(shape, dtype=np.int64))
    if size <= array.size:
        return NDArray(array.data.reshape(-1)[:size].reshape(shape))
    if not allow_up_sizing:
        raise ShapeError(
            f"reshape: {name} has shape {array.shape}, which is too small "
            f"for {shape}; pass allow_up_sizing=True to take new memory"
        )
    return nd.zeros(shape, array.context, array.dtype)


# -- from a symbol to an executor ------------------------------------------------------
def _by_name(what, names, arrays, optional=False):
    """Return name -> array, from a list in the symbol's order or a dict.

    Raises:  AttrError for a missing one, unless optional, and for a value of another type.
    """
    if not isinstance(arrays, dict):
        arrays = list(arrays)
        if len(arrays) != len(names):
            raise AttrError(
                f"bind: {what} has {len(arrays)} entries, but {len(names)} "
                f"are needed: {', '.join(names) or 'none'}"
            )
        arrays = dict(zip(names, arrays, strict=True))
    missing = [name for name in names if arrays.get(name) is None]
    if missing and not optional:
        raise AttrError(
            f"bind: {what} has no array for '{missing[0]:.60}'; needed: {', '.join(names):.400}"
        )
    for name in names:
        if not isinstance(arrays.get(name), (NDArray, type(None))):
            raise AttrError(
                f"bind: {what}['{name}'] is {described(arrays[name])}, but an NDArray "
                "is needed; wrap it in nd.array(...)"
            )
    return {name: arrays.get(name) for name in names}


def _requests(names, grad_req):
    """Return name -> write, add or null."""
    if isinstance(grad_req, str):
        grad_req = dict.fromkeys(names, grad_req)
    elif not isinstance(grad_req, dict):
        if len(grad_req) != len(names):
            raise AttrError(
                f"bind: grad_req has {len(grad_req)} entries, but "
                f"{len(names)} are needed: {', '.join(names) or 'none'}"
            )
        grad_req = dict(zip(names, grad_req, strict=True))
    for name, req in grad_req.items():
        if req not in ("write", "add", "null"):
            raise AttrError(f"bind: grad_req of '{name}' is {req!r}; needed: write, add or null")
    return {name: grad_req.get(name, "null") for name in names}


def bind(symbol, ctx, args, args_grad, grad_req, aux_states):
    """Implement `Symbol.bind`: return an Executor on given arrays."""
    names, states = symbol.list_arguments(), symbol.list_auxiliary_states()
    twice = {name for name in names if (names + states).count(name) > 1}
    if twice:
        raise AttrError(
            f"bind: two variables are called '{min(twice)}'; give each a "
            "name of its own, or use one variable twice"
        )
    arrays = _by_name("args", names, args)
    grads = _by_name("args_grad", names, args_grad or {}, optional=True)
    aux = _by_name("aux_states", states, aux_states or {})
    ctx = check_context(ctx)
    for name, array in [*arrays.items(), *grads.items(), *aux.items()]:
        if array is not None and not ctx.meets(array.context):
            raise HybridError(
                f"bind: the array of '{name}' is on {array.context}, but "
                f"ctx={ctx} is given; move it by x.as_in_context({ctx})"
            )
    for name, g in grads.items():
        if g is not None and g.shape != arrays[name].shape:
            raise ShapeError(
                f"bind: args_grad['{name}'] has shape {g.shape}, but "
                f"args['{name}'] has {arrays[name].shape}"
            )
    return Executor(symbol, ctx, arrays, grads, _requests(names, grad_req), aux)


def simple_bind(symbol, ctx, grad_req, type_dict, shared_arg_names, shared_exec, kwargs):
    """Implement `Symbol.simple_bind`: return an Executor on new arrays."""
    names, states = symbol.list_arguments(), symbol.list_auxiliary_states()
    arg_shapes = {name: shape for name, shape in kwargs.items() if name in names + states}
    arguments, _, aux = inferred(symbol, "infer_shape", (), arg_shapes)
    shapes = {name: spec.shape for name, spec in zip(names + states, arguments + aux, strict=True)}
    unknown = [name for name, shape in shapes.items() if shape is None or -1 in shape]
    if unknown:
        raise ShapeError(
            f"simple_bind: the shapes of {', '.join(unknown)} do not follow from "
            f"{', '.join(arg_shapes) or 'nothing'}; pass them, as in {unknown[0]}=(2, 3)"
        )
    arguments, _, aux = symbol.infer_type_partial(**(type_dict or {}))
    types = dict(zip(names + states, arguments + aux, strict=True))
    reqs = _requests(names, grad_req)
    shared = set(shared_arg_names or ()) if shared_exec else ()

    def array_for(name, pool):
        old = getattr(shared_exec, pool)[name] if name in shared else None
        return old if old is not None else nd.zeros(shapes[name], ctx, types[name] or "float32")

    args = {name: array_for(name, "arg_dict") for name in names}
    grads = {n: None if reqs[n] == "null" else array_for(n, "grad_dict") for n in names}
    return symbol.bind(ctx, args, grads, reqs, {n: array_for(n, "aux_dict") for n in states})


__dir__ = own_names(globals())
