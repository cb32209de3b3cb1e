"""Chapter 07. Trainer: update parameters by their gradients.

Defines: `Trainer`, whose `step(batch_size)` updates every parameter once.

The optimizer's rule is traced over all parameters into one plan, which reads weights,
gradients, states and learning rates by address. So a step is one compiled call per device.
If parameters have copies on several devices, each copy's gradient covers its part of the
batch. A step sums these gradients (all-reduce), so that the copies stay equal. With
`kvstore="dist_sync"`, it also sums those of several processes (`kvstore`).
Not supported: communication that overlaps with the backward pass.
"""

import copy
import re
import warnings
from dataclasses import replace

import numpy as np

from minihybrid.core import nd
from minihybrid.core.cache_entry import MAX_CONSTANTS, MAX_PLANS
from minihybrid.core.checked_call import CheckedCall, signed
from minihybrid.core.files import FileError
from minihybrid.core.hooks import own_names
from minihybrid.core.lru_cache import LRUCache
from minihybrid.core.nd import load, save
from minihybrid.core.op import AttrError, HybridError, Spec, checked, positive, unfit
from minihybrid.core.parameter import Parameter
from minihybrid.core.pipeline import Job
from minihybrid.core.placement import copy_to
from minihybrid.core.plan import active_plan
from minihybrid.core.sym import trace
from minihybrid.core.targets import target_of
from minihybrid.gluon.optimizer import Optimizer, Updater, create, states_in
from minihybrid.ops.infix import absent
from minihybrid.passes import expand
from minihybrid.passes.lift_constants import lift, same
from minihybrid.runtime.launch import VECTOR_BYTES


class CompiledUpdate:
    """One step for several weights as a single plan.

    weights:  [(weight, gradient, states)], NDArrays, which are updated in place.
    numbers:  [name -> scalar] for each weight: learning rate, weight decay, ...
    programs: graph key -> plans to share, in which settings such as momentum are inputs.
              Without it, settings are constants of the plan.

    In loops:   for each weight: for each element: weight, states = rule(...)
    """

    def __init__(self, optimizer, weights, numbers, programs=None):
        self.memory, self.n_states = memory(weights), [len(w[2]) for w in weights]
        self.rule, names = optimizer.watched()
        self._gather(weights, numbers)
        self.targets, arrays = {}, {}  # arrays: the plan's inputs by name
        for i, ((weight, grad, states), scalars) in enumerate(zip(weights, self.read, strict=True)):
            written = {f"weight{i}": weight.data}
            written |= {f"state{i}_{k}": state.data for k, state in enumerate(states)}
            self.targets |= written
            arrays[f"weight{i}"], arrays[f"grad{i}"] = weight.data, grad.data
            arrays |= written
            arrays |= {f"{name}{i}": number for name, number in scalars.items()}
        specs = {name: Spec(a.shape, a.dtype) for name, a in arrays.items()}
        graph, _ = trace(self.steps, specs, False)
        self.names = tuple(sorted(names))  # of the settings that are constants of the plan
        self.settings, self.rule = optimizer.settings(self.names), None
        title = f"{type(optimizer).__name__} of {len(weights)} parameters"
        target, into = target_of(weights[0][0].data), dict(enumerate(self.targets))
        job = Job(graph, (), target=target, title=title, into=into)
        if programs is None:
            tiers = active_plan(job)
        else:
            graph, inside = lift(expand(graph))
            context = weights[0][0].context
            key = same(graph), context
            job = replace(job, graph=graph, expanded=True)
            tiers = programs.lookup(key) or programs.put(key, active_plan(job))
            arrays |= {name: copy_to(a, context) for name, a in inside.items()}
        self.bound = tiers.bind(arrays)

    def _gather(self, weights, numbers):
        """Gather all scalars of a step in one array, so that a device gets them in one copy.

        Each has a row as wide as the widest vector load, aligned for any kernel.
        """
        places = [(i, name) for i, scalars in enumerate(numbers) for name in scalars]
        self.host = np.zeros((len(places), VECTOR_BYTES), np.uint8)
        context = weights[0][0].context
        self.rows = self.host if context.device_type == "cpu" else copy_to(self.host, context)
        self.numbers = [{} for _ in numbers]  # written by each step
        self.read = [{} for _ in numbers]  # inputs of the plan: the same memory, or a device copy
        for row, (i, name) in enumerate(places):
            dtype = weights[i][0].data.dtype
            self.numbers[i][name] = number = self.host[row].view(dtype)[:1]
            self.read[i][name] = (
                number if self.rows is self.host else self.rows[row].view((1,), dtype)
            )

    @property
    def plan(self):
        """The current plan."""
        return self.bound.tiers.plan

    def steps(self, *symbols):
        """The optimizer's rule on the symbols of each weight."""
        rest, news = list(symbols), []
        for scalars, n_states in zip(self.numbers, self.n_states, strict=True):
            weight, grad, *states = rest[: 2 + n_states]
            numbers = dict(zip(scalars, rest[2 + n_states :], strict=False))
            rest = rest[2 + n_states + len(scalars) :]
            news += self.rule.apply(weight, grad, states, numbers)
        return news

    def __call__(self, numbers):
        """Update all weights and states, with new `numbers`."""
        before = self.host.tobytes()
        for scalars, new in zip(self.numbers, numbers, strict=True):
            for name, value in new.items():
                scalars[name][0] = value
        if self.rows is not self.host and self.host.tobytes() != before:
            self.rows[...] = self.host
        for old, new in zip(self.targets.values(), self.bound(()), strict=True):
            if new is not old:  # most are written in place
                old[...] = new

    def reads(self, arrays):
        """Return whether the plan reads the memory of these ndarrays."""
        return all(a is b for a, b in zip(self.memory, arrays, strict=True))


def _is_fresh(param):
    """Return whether backward has written a gradient of the parameter since the last step."""
    return param.grad_req != "null" and any(
        array.node.info.fresh for array in (param.list_data() if param._arrays else ())
    )


def memory(weights):
    """Return the ndarrays of [(weight, gradient, states)], in order."""
    return [a.data for weight, grad, states in weights for a in (weight, grad, *states)]


class Trainer(metaclass=CheckedCall):
    """Update parameters by their gradients.

    params:            a ParameterDict, or a dict or list of parameters.
    optimizer:         a name such as "sgd", with `optimizer_params` as its settings, or
                       an `Optimizer`.
    update_on_kvstore: `False`: each device's copy of a parameter is updated by its own
                       gradient, which `allreduce_grads` has summed. Otherwise, `step`
                       updates the first copy and copies it to the others.
    kvstore:           "dist_sync": every MPI process has the same network, and `step` uses
                       the sum of their gradients.
    compression_params: ignored, because gradients are sent uncompressed.

    Several processes all start with the values of rank 0. Values that don't exist yet are
    broadcast in the first step, as in MXNet.

    >>> from minihybrid.gluon import nn
    >>> net = nn.Dense(1, in_units=2); net.initialize()
    >>> Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1}).learning_rate
    0.1
    """

    __getattr__ = absent

    def __init__(
        self,
        params,
        optimizer,
        optimizer_params=None,
        kvstore="device",
        compression_params=None,
        update_on_kvstore=None,
    ):
        if hasattr(params, "keys"):
            params = [params[name] for name in sorted(params.keys(), key=_counted)]
        is_list = isinstance(params, (list, tuple))
        if not is_list or not all(isinstance(p, Parameter) for p in params):
            need = "parameters are needed, as net.collect_params() gives"
            raise unfit("Trainer", "params", params, need)
        self._params = list(params)
        if not isinstance(optimizer_params, (dict, type(None))):
            need = "a dict is needed, such as {'learning_rate': 0.1}"
            raise unfit("Trainer", "optimizer_params", optimizer_params, need)
        if isinstance(optimizer, Optimizer):
            if optimizer_params:
                raise AttrError(
                    "Trainer: optimizer_params are for an optimizer's name; the optimizer that "
                    "is given has its settings already"
                )
            self._optimizer = optimizer
        else:
            self._optimizer = create(optimizer, **(optimizer_params or {}))
        self._optimizer.param_dict = dict(enumerate(self._params))
        self._scale = self._optimizer.rescale_grad
        self._scaler = None  # a `LossScaler`, set by `amp.init_trainer`
        self._update_on_kvstore = update_on_kvstore
        self._apart = self._params  # whose copies aren't synchronized yet
        from minihybrid.mxnet.kvstore import processes_of

        self._processes = processes_of(kvstore, compression_params)
        self._unspread = self._params if self._processes.size > 1 else []
        self._elsewhere = ()  # parameters with gradients only in other processes
        self._spread()
        self._updaters = [Updater(self._optimizer)]  # one per copy
        self._counts = [self._optimizer._index_update_count]  # one per copy
        self._compiled = LRUCache(MAX_PLANS)  # copy and indices -> recent CompiledUpdates
        self._programs = LRUCache(MAX_PLANS)  # plans with settings as inputs

    def __getstate__(self):
        """Return the state for pickling and copying, without the compiled updates."""
        return vars(self) | {"_compiled": LRUCache(MAX_PLANS), "_programs": LRUCache(MAX_PLANS)}

    def __repr__(self):
        n = len(self._params)
        return f"Trainer({self._optimizer!r}, {n} parameter{'s' * (n != 1)})"

    @property
    def optimizer(self):
        """The optimizer."""
        return self._optimizer

    @property
    def learning_rate(self):
        """The current learning rate."""
        return self._optimizer.learning_rate

    @learning_rate.setter
    def learning_rate(self, lr):
        raise AttrError("Trainer.learning_rate = lr: write trainer.set_learning_rate(lr)")

    def set_learning_rate(self, lr):
        """Set the learning rate.

        Raises:  AttrError if the optimizer has a schedule.
        """
        self._optimizer.set_learning_rate(lr)

    @property
    def _updater(self):
        """The optimizer's states of the first copies."""
        return self._updaters[0]

    @signed
    def step(self, batch_size, ignore_stale_grad=False):
        """Update every parameter by its gradient divided by the batch size.

        batch_size: the total over all devices and, with "dist_sync", over all processes.
                    The summed gradients are divided by it.

        Raises:  HybridError if backward hasn't written a gradient since the last step;
                 `ignore_stale_grad` skips such parameters.
        """
        self.allreduce_grads()
        self._update(batch_size, ignore_stale_grad, self._update_on_kvstore is not False)

    def allreduce_grads(self):
        """Sum the gradients of all copies of a parameter, and store the sum in each."""
        self._spread(warn=True)
        self._bring_together()
        for param in self._params:
            grads = param._grad or ()
            if len(grads) > 1:
                total = sum(g.as_in_context(grads[0].context) for g in grads)
                for grad in grads:
                    grad[...] = total
        if self._processes.size > 1:
            self._add_up_processes()

    def _add_up_processes(self):
        """Sum the gradients of all processes, with zeros where a process has none."""
        fresh = [_is_fresh(param) for param in self._params]
        counts = self._processes.agree(fresh)
        grad_lists = []  # per parameter with a gradient in any process
        for param, local, n in zip(self._params, fresh, counts, strict=True):
            if n:
                grad_lists.append(param.list_grad())
                for grad in () if local else grad_lists[-1]:
                    grad[...] = 0
        self._processes.add_up([grads[0] for grads in grad_lists])
        for first, *others in grad_lists:
            for grad in others:
                grad[...] = first
        self._elsewhere = {
            i for i, (local, n) in enumerate(zip(fresh, counts, strict=True)) if n and not local
        }

    def _spread(self, warn=False):
        """Broadcast the values of rank 0 once they exist."""
        ready = [param for param in self._unspread if param._arrays]
        if not ready:
            return
        self._unspread = [param for param in self._unspread if not param._arrays]
        before = [param.list_data()[0].asnumpy() for param in ready]
        self._processes.spread([param.list_data()[0] for param in ready])
        for param, old in zip(ready, before, strict=True):
            first, *others = param.list_data()
            for other in others:
                other[...] = first
            if warn and not np.array_equal(first.asnumpy(), old, equal_nan=True):
                warnings.warn(
                    f"Trainer: '{param.name}' was initialized after the Trainer was made, and "
                    f"differently on rank {self._processes.rank}, whose first gradient is of "
                    "values of its own; give sizes such as in_units, call the net once before, "
                    "or use one mx.random.seed on all ranks",
                    stacklevel=5,
                )
                warn = False

    def _bring_together(self):
        """Copy the first copies to all others once, including statistics, as in MXNet."""
        for param in self._apart:
            for other in param.list_data()[1:] if param._arrays else ():
                other[...] = param.list_data()[0]
        self._apart = [param for param in self._apart if not param._arrays]

    @signed
    def update(self, batch_size, ignore_stale_grad=False):
        """Update each copy by its gradient: the second half of `step`, after `allreduce_grads`."""
        self._update(batch_size, ignore_stale_grad, False)

    def _update(self, batch_size, ignore_stale_grad, together):
        """Update all copies, or update the first ones and copy them to the others."""
        self._bring_together()
        batch_size = checked("Trainer.step", "batch_size", batch_size, positive)
        scale = self._scale if self._scaler is None else self._scale / self._scaler.applied
        self._optimizer.rescale_grad = scale / batch_size
        groups, fresh = {}, []  # (index of the copy, device) -> parameter index -> array
        for i, param in enumerate(self._params):
            if param.grad_req == "null":
                continue
            copies = param.list_data()
            for k, array in enumerate(copies):
                if array.node.info.fresh or ignore_stale_grad and i in self._elsewhere:
                    fresh.append(array)
                    if together and len(copies) > 1:
                        k, array = 0, copies[0]
                        self._apart.append(param)
                    groups.setdefault((k, array.data.device), {})[i] = array
                elif not ignore_stale_grad:
                    on = f" on {array.context}" * (len(copies) > 1)
                    raise HybridError(
                        f"Trainer.step: backward has not written the gradient of '{param.name}'"
                        f"{on} since the last step; is the parameter part of the loss? "
                        "step(..., ignore_stale_grad=True) leaves it as it is"
                    )
        grads = [array.grad.asnumpy() for array in fresh if self._scaler]
        if self._scaler is None or self._scaler.update(grads):
            for (k, _), group in groups.items():  # one compiled call per device
                self._step(k, group)
        self._bring_together()
        for array in fresh:
            array.node.info.fresh = False

    def _step(self, k, copies):
        """Update the copies with index k, in one compiled call if the optimizer is a rule."""
        opt, indices = self._optimizer, list(copies)
        while len(self._updaters) <= k:
            self._updaters.append(Updater(opt))
            self._counts.append({})
        opt._index_update_count = self._counts[k]
        updater = self._updaters[k]
        weights = [
            (array, array.grad, states_in(updater.state(i, array))) for i, array in copies.items()
        ]
        methods = type(opt).update, type(opt).update_multi_precision, type(opt).create_state
        ours = Optimizer.update, Optimizer.update_multi_precision, Optimizer.create_state
        if methods != ours or opt.multi_precision:  # not a rule alone
            ws, gs, _ = zip(*weights, strict=True)
            return updater(indices, gs, ws)
        opt._update_count(indices)
        numbers = [opt.numbers(i) for i in indices]
        for weight, *_ in weights:
            weight._preserve()  # for a retained tape
        self._update_for((k, *indices), weights, numbers)(numbers)

    def _update_for(self, key, weights, numbers):
        """Return the compiled update for these weights and the current settings."""
        opt, now = self._optimizer, memory(weights)
        updates = self._compiled.lookup(key)
        if updates is None or updates and not updates[0].reads(now):
            updates = self._compiled.put(key, [])
        for cached in updates:
            if cached.settings == opt.settings(cached.names):
                return cached
        programs = self._programs if len(updates) >= MAX_CONSTANTS else None
        updates.append(CompiledUpdate(opt, weights, numbers, programs))
        del updates[: -2 * MAX_CONSTANTS]
        return updates[-1]

    # -- files
    def save_states(self, fname):
        """Write the states, the counts of updates and the learning rate to a file.

        The file has the format of `nd.save`. It doesn't contain the optimizer's other
        settings.
        """
        opt, arrays = self._optimizer, {}
        for i, state in self._updater.states.items():
            arrays |= {f"state:{i}:{k}": s for k, s in enumerate(states_in(state))}
            count = self._counts[0].get(i, opt.begin_num_update)
            arrays[f"count:{i}"] = nd.array([count], dtype="int64")
        arrays["num_update"] = nd.array([opt.num_update], dtype="int64")
        arrays["learning_rate"] = nd.array([opt.lr], dtype="float64")
        save(fname, arrays)

    def load_states(self, fname):
        """Load states written by `save_states`, for the same parameters and optimizer class.

        Raises:  FileError if the file is for other parameters or another optimizer.
        """
        entries, opt = load(fname), self._optimizer
        if not isinstance(entries, dict) or not {"num_update", "learning_rate"} <= entries.keys():
            raise FileError(f"'{fname}' holds no states of a Trainer")
        counts = {
            int(name[len("count:") :]): _number(fname, entries, name, "int64")
            for name in entries
            if re.fullmatch("count:[0-9]{1,9}", name)
        }
        num_update = _number(fname, entries, "num_update", "int64")
        learning_rate = _number(fname, entries, "learning_rate", "float64")
        states = {}
        for i in counts:
            if i >= len(self._params):
                raise FileError(
                    f"'{fname}' has states of parameter {i}, but there are "
                    f"{len(self._params)} parameters"
                )
            weight = self._params[i].list_data()[0]
            states[i] = opt.create_state_multi_precision(i, weight)
            arrays = states_in(states[i])
            values = [entries[n] for n in sorted(entries) if n.startswith(f"state:{i}:")]
            if [a.shape for a in arrays] != [a.shape for a in values]:
                raise FileError(
                    f"'{fname}': the states of '{self._params[i].name}' have shapes "
                    f"{[a.shape for a in values]}, but {type(opt).__name__} with these "
                    f"parameters needs {[a.shape for a in arrays]}"
                )
            for array, value in zip(arrays, values, strict=True):
                array[...] = value
        n_copies = max([1, *(len(p.list_ctx()) for p in self._params)])
        self._counts = [dict(counts) for _ in range(n_copies)]
        self._updaters[1:] = [Updater(opt) for _ in range(n_copies - 1)]
        for updater in self._updaters:  # which moves states to its copy's device
            updater.states = copy.deepcopy(states)
        opt._index_update_count = self._counts[0]
        opt.num_update, opt.lr = num_update, learning_rate


def _number(fname, entries, name, dtype):
    """Return the scalar in an array of a states file."""
    array = entries[name].asnumpy()
    if array.size != 1 or array.dtype != dtype or not 0 <= array.item() < np.inf:
        raise FileError(
            f"'{fname}': '{name}' is {array.tolist()!s:.60} of {array.dtype}, but one number of "
            f"{dtype}, not negative, is needed"
        )
    return array.item()


def _counted(name):
    """Return a natural-sort key: states files list parameters in this order.

    >>> sorted(["conv10_bias", "conv9_bias"], key=_counted)
    ['conv9_bias', 'conv10_bias']
    """
    parts = re.split("([0-9]+)", name)
    return [int(part) if i % 2 else part for i, part in enumerate(parts)]


__dir__ = own_names(globals())
