"""Module: MXNet's API for training a symbol, from before Gluon.

Uses:    a symbol, data iterators (`io.NDArrayIter`), an optimizer, a metric.
Defines: `Module`: bind and initialize it, then call `fit`, `score` and `predict`; or
         `forward`, `backward` and `update` step by step.

    for batch in data:     one epoch of `fit`
        forward            batch -> outputs, in executors, one per device
        backward           -> the gradients of all parameters, summed over the batch
        update             the optimizer's step, with gradients divided by the batch size

Source:  MXNet's mxnet.module.Module, with the same names, order and constants.
Not supported: several symbols that share parameters (`BucketingModule`,
         `SequentialModule`), states kept across batches, sparse rows.
"""

import logging
import re
import time
import warnings

import numpy as np

from minihybrid.core import initial, lazy, nd
from minihybrid.core.checked_call import CheckedCall
from minihybrid.core.context import CPU, check_context
from minihybrid.core.files import FileError, parsed_json
from minihybrid.core.hooks import INITIALIZERS, own_names
from minihybrid.core.initial import Uniform
from minihybrid.core.nd import NDArray
from minihybrid.core.op import AttrError, HybridError, ShapeError, checked, described, length, unfit
from minihybrid.core.sym import Symbol
from minihybrid.gluon.metric import EvalMetric
from minihybrid.gluon.metric import create as create_metric
from minihybrid.gluon.optimizer import Optimizer, get_updater, states_in
from minihybrid.gluon.optimizer import create as create_optimizer
from minihybrid.mxnet.callback import BatchEndParam
from minihybrid.mxnet.io import DataBatch, DataDesc, DataIter
from minihybrid.mxnet.kvstore import KVStore
from minihybrid.mxnet.kvstore import create as create_kvstore
from minihybrid.mxnet.model import load_checkpoint, named_arrays, read_params, save_checkpoint

LEARNING_RATE = (("learning_rate", 0.01),)
INSTEAD = {  # MXNet's other modules: name -> the alternative
    "BaseModule": "Module is the only one",
    "BucketingModule": "pad sequences to one length and bind one Module, whose forward takes "
    "batches of other shapes, too, or write a Gluon block, which has a plan for each shape",
    "SequentialModule": "compose the symbols, as in second(data=first), and bind one Module",
    "PythonModule": "write a Gluon block",
    "PythonLossModule": "use sym.make_loss",
}
__getattr__ = lazy.face(globals(), {}, INSTEAD)


class Module(metaclass=CheckedCall):
    """A symbol with its parameters, and the executors that train it.

    symbol:       for training, its outputs are losses, such as `sym.SoftmaxOutput`.
    data_names, label_names:  its variables that aren't parameters.
    context:      a device, or a list of devices that share every batch.
    fixed_param_names:  parameters that aren't trained.
    work_load_list:     must be the same for all devices.

    Raises:  HybridError for a call out of order: `bind`, then `init_params`, then
             `init_optimizer`; `fit` calls them.

    >>> from minihybrid.core import sym
    >>> from minihybrid.mxnet.io import NDArrayIter
    >>> x = nd.array([[0.0], [1.0], [2.0]])
    >>> line = sym.FullyConnected(sym.var("data"), num_hidden=1, name="line")
    >>> net = sym.LinearRegressionOutput(line, name="out")
    >>> made = Module(net, label_names=["out_label"])
    >>> made.fit(NDArrayIter(x, 2 * x + 1, 3, label_name="out_label"), num_epoch=200,
    ...          eval_metric="mse", optimizer_params={"learning_rate": 0.3})
    >>> made.predict(NDArrayIter(nd.array([[10.0]]))).asnumpy().round(2)
    array([[21.]], dtype=float32)
    """

    def __init__(
        self,
        symbol,
        data_names=("data",),
        label_names=("softmax_label",),
        logger=logging,
        context=CPU,
        work_load_list=None,
        fixed_param_names=None,
    ):
        if not isinstance(symbol, Symbol):
            need = "a symbol is needed, such as sym.SoftmaxOutput's, or a net called with one"
            raise unfit("Module", "symbol", symbol, need)
        self.symbol, self.logger = symbol, logger
        contexts = context if isinstance(context, (list, tuple)) else [context]
        self._contexts = [check_context(c) for c in contexts]
        if not contexts or len(set(work_load_list or [1])) > 1:
            raise AttrError(
                f"Module: context={described(context)} with work_load_list={work_load_list}; "
                "needed: a device or some, which get equal parts of a batch"
            )
        arguments = symbol.list_arguments()
        self.data_names, self.label_names = list(data_names or ()), list(label_names or ())
        self._fixed = list(fixed_param_names or ())
        for what, names in (("data", self.data_names), ("fixed_param", self._fixed)):
            for name in names:
                if name not in arguments:
                    raise AttrError(
                        f"Module: {what}_names has '{name}', but the symbol's variables are "
                        f"{', '.join(arguments):.300}"
                    )
        inputs = self.data_names + self.label_names
        self._param_names = [name for name in arguments if name not in inputs]
        self.output_names = symbol.list_outputs()
        self.binded = self.for_training = self.inputs_need_grad = False
        self.params_initialized = self.optimizer_initialized = False
        self._arg_params = self._aux_params = self._states_file = None
        self._is_stale = False  # the executors' parameters are newer than these

    def __repr__(self):
        shapes = [f"{d.name}={d.shape}" for d in self.data_shapes] if self.binded else ["not bound"]
        return f"Module({self.symbol!r}, {', '.join(shapes)})"

    def _need(self, method, *states):
        """Refuse a call before the module has reached the required states."""
        calls = {"binded": "bind", "params_initialized": "init_params"}
        for state in states:
            if not getattr(self, state):
                call = calls.get(state, "init_optimizer")
                raise HybridError(f"Module.{method}: call {call}(...) first, or fit(...)")

    # -- memory
    def bind(
        self,
        data_shapes,
        label_shapes=None,
        for_training=True,
        inputs_need_grad=False,
        force_rebind=False,
        shared_module=None,
        grad_req="write",
    ):
        """Allocate memory for batches of these shapes: one executor per device.

        data_shapes, label_shapes:  [(name, shape)], as in an iterator's `provide_data`.
        inputs_need_grad:  for `get_input_grads`.
        force_rebind:      bind again; otherwise, a second call does nothing.
        shared_module:     a Module whose parameters of the same names are shared.
        grad_req:          "add" accumulates the gradients of several `backward` calls.
        """
        if self.binded and not force_rebind:
            self.logger.warning("Already bound, ignoring bind()")
            return
        if inputs_need_grad and not for_training:
            raise AttrError("Module.bind: inputs_need_grad=True needs for_training=True")
        if self.binded and self._is_stale:
            self.get_params()
        if shared_module is not None:
            shared_module._need("bind(shared_module=...)", "binded", "params_initialized")
        self.for_training, self.inputs_need_grad = for_training, inputs_need_grad
        # The names of a batch's labels in order, including those not in the symbol.
        self._labels = _descs(label_shapes) or [DataDesc(name, ()) for name in self.label_names]
        self._describe(data_shapes, label_shapes)
        trained = [n for n in self._param_names if n not in self._fixed] if for_training else []
        requests = dict.fromkeys(self.symbol.list_arguments(), "null")
        requests |= dict.fromkeys(trained, grad_req)
        requests |= dict.fromkeys(self.data_names if inputs_need_grad else (), grad_req)
        types = {d.name: d.dtype for d in self.data_shapes + self.label_shapes}
        inputs = {*self.data_names, *self.label_names}
        others = [None] * len(self._contexts) if shared_module is None else shared_module._first
        self._first = self._execs = [
            self.symbol.simple_bind(
                context,
                requests,
                types,
                shared_arg_names=other and {*other.arg_dict, *other.aux_dict} - inputs,
                shared_exec=other,
                **self._shapes_of(part),
            )
            for context, part, other in zip(self._contexts, self._slices, others, strict=True)
        ]
        self._bound_execs = {self._key(): self._execs}  # shapes -> executors that share parameters
        self._trained = [n for n in trained if requests[n] != "null"]
        self.binded = True
        if shared_module is not None:
            self._arg_params, self._aux_params = shared_module.get_params()
            self.params_initialized = True
        elif self.params_initialized:
            self._to_executors(self._arg_params, self._aux_params)
        else:
            first = self._execs[0]
            self._arg_params = {n: _zeros_like(first.arg_dict[n]) for n in self._param_names}
            self._aux_params = {n: _zeros_like(a) for n, a in first.aux_dict.items()}

    def _describe(self, data_shapes, label_shapes):
        """Store the shapes of a batch, and each device's slice of it."""
        self.data_shapes, labels = _descs(data_shapes), _descs(label_shapes)
        if sorted(d.name for d in self.data_shapes) != sorted(self.data_names):
            raise AttrError(
                f"Module: data is given for {[d.name for d in self.data_shapes]}, but data_names "
                f"are {self.data_names}; give the iterator these names, or Module others"
            )
        arguments = self.symbol.list_arguments()
        self.label_shapes = [d for d in labels if d.name in arguments]
        sizes = {d.shape[_axis(d)] for d in self.data_shapes + labels if _axis(d) >= 0}
        if len(sizes) != 1:
            raise ShapeError(
                f"Module: data and labels of one batch size are needed, found "
                f"{[(d.name, d.shape) for d in self.data_shapes + labels]}"
            )
        self._batch_size = sizes.pop()
        n, share = len(self._contexts), round(self._batch_size / len(self._contexts))
        ends = [min(share * (k + 1), self._batch_size) for k in range(n - 1)]
        begins = [0, *ends]
        self._slices = list(map(slice, begins, [*ends, self._batch_size]))
        if any(part.stop <= part.start for part in self._slices):
            raise ShapeError(
                f"Module: a batch of {self._batch_size} samples does not reach for {n} devices; "
                "use larger batches, or fewer devices"
            )

    def _shapes_of(self, part):
        """Return name -> shape of the inputs of the executor of a slice of the batch."""
        shapes = {}
        for d in self.data_shapes + self.label_shapes:
            shape, axis = list(d.shape), _axis(d)
            if axis >= 0:
                shape[axis] = part.stop - part.start
            shapes[d.name] = tuple(shape)
        return shapes

    def _key(self):
        return tuple((d.name, *d.shape) for d in self.data_shapes + self.label_shapes)

    def reshape(self, data_shapes, label_shapes=None):
        """Switch to batches of other shapes; the parameters are kept."""
        self._need("reshape", "binded")
        self._describe(data_shapes, label_shapes)
        if self._key() not in self._bound_execs:
            execs = [
                old.reshape(True, True, **self._shapes_of(part))
                for old, part in zip(self._first, self._slices, strict=True)
            ]
            for name in self._param_names:
                old, new = (e[0].arg_dict[name] for e in (self._first, execs))
                if old is not new:
                    raise ShapeError(
                        f"Module: for data {data_shapes} the parameter '{name}' would have the "
                        f"shape {new.shape}, but it has {old.shape}"
                    )
            self._bound_execs[self._key()] = execs
        self._execs = self._bound_execs[self._key()]

    @property
    def output_shapes(self):
        """[(name, shape)] of the outputs for a whole batch."""
        self._need("output_shapes", "binded")
        outputs = self._execs[0].outputs
        shapes = [(self._batch_size, *a.shape[1:]) if a.ndim else () for a in outputs]
        return list(zip(self.output_names, shapes, strict=True))

    # -- parameters
    def init_params(
        self,
        initializer=Uniform(0.01),  # noqa: B008  (never modified; `help` shows MXNet's default)
        arg_params=None,
        aux_params=None,
        allow_missing=False,
        force_init=False,
        allow_extra=True,
    ):
        """Initialize parameters and auxiliary states.

        arg_params, aux_params:  name -> array; unknown names are ignored.
        allow_missing:  use the initializer for missing ones.
        force_init:     also if they are already initialized.
        """
        if self.params_initialized and not force_init:
            if arg_params or aux_params:
                _warn("Module.init_params: there are parameters already; or pass force_init=True")
            return
        self._need("init_params", "binded")
        if not allow_extra:
            self._refuse_extra(arg_params, aux_params)
        attrs = self.symbol.attr_dict()
        for params, values in ((self._arg_params, arg_params), (self._aux_params, aux_params)):
            for name, array in sorted(params.items()):
                if values is not None and name in values:
                    _copy("init_params", name, values[name], array)
                elif values is not None and not allow_missing:
                    raise AttrError(
                        f"Module.init_params: '{name}' is not among what is given "
                        f"({', '.join(values)[:200] or 'nothing'}); or pass allow_missing=True"
                    )
                elif "__init__" in attrs.get(name, {}):
                    _initializer_of(attrs[name]["__init__"]).init_array(name, array, chosen=True)
                elif initializer is not None:
                    initial.create(initializer)(name, array)
        self.params_initialized, self._is_stale = True, False
        self._to_executors(self._arg_params, self._aux_params)

    def set_params(
        self, arg_params, aux_params, allow_missing=False, force_init=True, allow_extra=False
    ):
        """Copy arrays, by name, into parameters and auxiliary states.

        allow_missing:  keep the values of missing ones.
        allow_extra:    ignore names that the symbol doesn't have.
        """
        self._need("set_params", "binded")
        if self.params_initialized and not force_init:
            return _warn("Module.set_params: there are parameters already, and force_init=False")
        if not allow_extra:
            self._refuse_extra(arg_params, aux_params)
        if allow_missing and self.params_initialized:
            old_args, old_aux = self.get_params()
            arg_params, aux_params = old_args | (arg_params or {}), old_aux | (aux_params or {})
        self.init_params(None, arg_params or {}, aux_params or {}, allow_missing, True)

    def _refuse_extra(self, *sources):
        for params, declared in zip(sources, (self._arg_params, self._aux_params), strict=True):
            extra = [name for name in params or () if name not in declared]
            if extra:
                raise AttrError(
                    f"Module: the symbol has no '{extra[0]:.60}', but {', '.join(declared):.300}; "
                    "allow_extra=True leaves it out"
                )

    def get_params(self):
        """Return (parameters, states): name -> array, averaged over devices."""
        self._need("get_params", "params_initialized")
        if self._is_stale:
            for pool, params in (("arg_dict", self._arg_params), ("aux_dict", self._aux_params)):
                for name, array in params.items():
                    copies = [getattr(e, pool)[name].as_in_context(CPU) for e in self._first]
                    array[:] = sum(copies[1:], copies[0]) / len(copies)
            self._is_stale = False
        return self._arg_params, self._aux_params

    def _to_executors(self, arg_params, aux_params):
        for executor in self._first:
            for dest, source in ((executor.arg_dict, arg_params), (executor.aux_dict, aux_params)):
                for name in dest.keys() & source.keys():
                    _copy("bind", name, source[name], dest[name])

    # -- optimizer
    def init_optimizer(
        self, kvstore="local", optimizer="sgd", optimizer_params=LEARNING_RATE, force_init=False
    ):
        """Set the optimizer; gradients are divided by the batch size.

        kvstore:    with "dist_sync", all MPI processes sum their gradients, which are divided
                    by the total batch size.
        optimizer:  a name, with its settings, or an Optimizer, which keeps its rescale_grad.
        """
        self._need("init_optimizer", "binded", "params_initialized")
        if self.optimizer_initialized and not force_init:
            self.logger.warning("optimizer already initialized, ignoring...")
            return
        arg_params, _ = self.get_params()
        alone = len(self._contexts) == 1 and (
            kvstore is None or isinstance(kvstore, str) and "dist" not in kvstore
        )
        if not alone and not isinstance(kvstore, KVStore):
            kvstore = create_kvstore("local" if kvstore is None else kvstore)
        self._kvstore = None if alone else kvstore
        workers = 1 if alone or "dist" not in kvstore.type else kvstore.num_workers
        scale = 1 / (self._batch_size * workers)
        names = dict(enumerate(self._param_names))
        if isinstance(optimizer, Optimizer):
            if optimizer.rescale_grad != scale:
                _warn(
                    f"Module: the optimizer has rescale_grad={optimizer.rescale_grad}, not "
                    f"1/{self._batch_size * workers}, one by the number of samples; is it intended?"
                )
            optimizer.idx2name = optimizer.idx2name or names
        else:
            settings = {"rescale_grad": scale} | dict(optimizer_params)
            optimizer = create_optimizer(
                optimizer, sym=self.symbol, param_idx2name=names, **settings
            )
        self._optimizer = optimizer
        if alone:
            self._updater = get_updater(optimizer)
        else:  # the store owns the weights and updates them
            kvstore.set_optimizer(optimizer)
            self._updater = kvstore._updater
            for name in self._param_names:
                kvstore.init(name, arg_params[name])
                kvstore.pull(name, [e.arg_dict[name] for e in self._first])
            self._is_stale = True
        self.optimizer_initialized = True
        if self._states_file is not None:
            self.load_optimizer_states(self._states_file)
            self._states_file = None

    def update(self):
        """Update parameters with the gradients of the last `backward`."""
        self._need("update", "binded", "params_initialized", "optimizer_initialized")
        self._is_stale = True
        if self._kvstore is not None:
            grads = [[e.grad_dict[name] for e in self._execs] for name in self._trained]
            weights = [[e.arg_dict[name] for e in self._execs] for name in self._trained]
            self._kvstore.pushpull(self._trained, grads, weights)
            return
        executor = self._execs[0]
        for i, name in enumerate(self._param_names):
            if name in self._trained:
                self._updater(i, executor.grad_dict[name], executor.arg_dict[name])

    # -- one batch
    def forward(self, data_batch, is_train=None):
        """Compute the outputs of a batch, whose shapes may differ from earlier ones.

        data_batch:  a DataBatch, or any object with `data` and `label`.
        is_train:    by default, whether it was bound for training.
        """
        self._need("forward", "binded", "params_initialized")
        data, label = list(data_batch.data), list(getattr(data_batch, "label", None) or ())
        if len(data) != len(self.data_shapes):
            raise AttrError(
                f"Module.forward: the batch has {len(data)} arrays of data, but "
                f"{len(self.data_shapes)} are needed: {[d.name for d in self.data_shapes]}"
            )
        shapes = [d.shape for d in self.data_shapes]
        if [a.shape for a in data] != shapes:
            self._reshape_for(data_batch, data, label)
        arrays = dict(zip([d.name for d in self.data_shapes], data, strict=True))
        arrays |= dict(zip([d.name for d in self._labels], label, strict=False))
        is_train = self.for_training if is_train is None else is_train
        for executor, part in zip(self._execs, self._slices, strict=True):
            inputs = {}
            for d in self.data_shapes + self.label_shapes:
                if d.name in arrays:
                    array = _part(arrays[d.name], _axis(d), part, self._batch_size)
                    inputs[d.name] = array.astype(executor.arg_dict[d.name].dtype, copy=False)
            executor.forward(is_train, **inputs)

    def _reshape_for(self, batch, data, label):
        """Reshape to a batch, if its shapes differ."""

        def renewed(provided, old, arrays):
            return provided or [
                DataDesc(d.name, a.shape, d.dtype, d.layout)
                for d, a in zip(old, arrays, strict=False)
            ]

        self.reshape(
            renewed(getattr(batch, "provide_data", None), self.data_shapes, data),
            renewed(getattr(batch, "provide_label", None), self._labels, label),
        )

    def backward(self, out_grads=None):
        """Compute the gradients of the last `forward`.

        out_grads:  the gradients of outputs that aren't losses.
        """
        self._need("backward", "binded", "params_initialized")
        if not self.for_training:
            raise HybridError("Module.backward: bind with for_training=True")
        grads = [out_grads] if isinstance(out_grads, NDArray) else list(out_grads or ())
        for executor, part in zip(self._execs, self._slices, strict=True):
            executor.backward([_part(g, 0, part, self._batch_size) for g in grads])

    def forward_backward(self, data_batch):
        """`forward` in training, then `backward`."""
        self.forward(data_batch, is_train=True)
        self.backward()

    def get_outputs(self, merge_multi_context=True):
        """Return the last outputs; unmerged, each is a list with one array per device."""
        self._need("get_outputs", "binded", "params_initialized")
        return self._merged(
            zip(*(e.outputs for e in self._execs), strict=True), merge_multi_context
        )

    def get_input_grads(self, merge_multi_context=True):
        """Return the gradients of the data, after `bind(..., inputs_need_grad=True)`."""
        self._need("get_input_grads", "binded", "params_initialized")
        if not self.inputs_need_grad:
            raise HybridError("Module.get_input_grads: bind with inputs_need_grad=True")
        grads = [[e.grad_dict[d.name] for e in self._execs] for d in self.data_shapes]
        return self._merged(grads, merge_multi_context, [_axis(d) for d in self.data_shapes])

    def _merged(self, groups, merge, axes=None):
        if not merge:
            return [list(arrays) for arrays in groups]
        merged = []
        for k, arrays in enumerate(groups):
            arrays = [a.as_in_context(self._contexts[0]) for a in arrays]
            merged.append(
                arrays[0] if len(arrays) == 1 else nd.concat(*arrays, dim=axes[k] if axes else 0)
            )
        return merged

    def update_metric(self, eval_metric, labels):
        """Update a metric with the last outputs and the labels of their batch."""
        self._need("update_metric", "binded", "params_initialized")
        for executor, part in zip(self._execs, self._slices, strict=True):
            parts = [_part(a, 0, part, self._batch_size) for a in labels or ()]
            by_name = dict(zip([d.name for d in self._labels], parts, strict=False))
            eval_metric.update_dict(by_name, executor.output_dict)

    # -- epochs
    def install_monitor(self, mon):
        """Install a `monitor.Monitor` in the executors of the bound shapes."""
        self._need("install_monitor", "binded")
        for executor in self._execs:
            mon.install(executor)

    def fit(
        self,
        train_data,
        eval_data=None,
        eval_metric="acc",
        epoch_end_callback=None,
        batch_end_callback=None,
        kvstore="local",
        optimizer="sgd",
        optimizer_params=LEARNING_RATE,
        eval_end_callback=None,
        eval_batch_end_callback=None,
        initializer=Uniform(0.01),  # noqa: B008  (as above)
        arg_params=None,
        aux_params=None,
        allow_missing=False,
        force_rebind=False,
        force_init=False,
        begin_epoch=0,
        num_epoch=None,
        validation_metric=None,
        monitor=None,
    ):
        """Train for epochs `begin_epoch` up to `num_epoch`.

        batch_end_callback:   functions of BatchEndParam, such as `callback.Speedometer`.
        epoch_end_callback:   functions (epoch, symbol, parameters, states), such as
                              `callback.do_checkpoint`.
        eval_data:            validation data, scored after each epoch.
        monitor:              a Monitor, which logs statistics of batches.
        The rest is passed to `bind`, `init_params` and `init_optimizer`. Metrics go to the
        module's logger.
        """
        if num_epoch is None:
            raise AttrError("Module.fit: num_epoch=None; needed: how many rounds, such as 10")
        if not self.binded or force_rebind:
            self.bind(train_data.provide_data, train_data.provide_label, force_rebind=force_rebind)
        if monitor is not None:
            self.install_monitor(monitor)
        self.init_params(initializer, arg_params, aux_params, allow_missing, force_init)
        if not self.optimizer_initialized:
            self.init_optimizer(kvstore, optimizer, optimizer_params)
        validation_metric = eval_metric if validation_metric is None else validation_metric
        eval_metric = _metric(eval_metric)
        for epoch in range(begin_epoch, num_epoch):
            begun = time.time()
            eval_metric.reset()
            for nbatch, batch in enumerate(train_data):
                if monitor is not None:
                    monitor.tic()
                self.forward_backward(batch)
                self.update()
                self.update_metric(eval_metric, batch.label)
                if monitor is not None:
                    monitor.toc_print()
                _tell(batch_end_callback, BatchEndParam(epoch, nbatch, eval_metric, locals()))
            for name, value in eval_metric.get_global_name_value():
                self.logger.info("Epoch[%d] Train-%s=%f", epoch, name, value)
            self.logger.info("Epoch[%d] Time cost=%.3f", epoch, time.time() - begun)
            arg_params, aux_params = self.get_params()
            self._to_executors(arg_params, aux_params)  # averages states over devices
            _tell(epoch_end_callback, epoch, self.symbol, arg_params, aux_params)
            if eval_data is not None:
                callbacks = eval_batch_end_callback, eval_end_callback
                for name, value in self.score(
                    eval_data, validation_metric, None, *callbacks, epoch=epoch
                ):
                    self.logger.info("Epoch[%d] Validation-%s=%f", epoch, name, value)
            train_data.reset()

    def score(
        self,
        eval_data,
        eval_metric,
        num_batch=None,
        batch_end_callback=None,
        score_end_callback=None,
        reset=True,
        epoch=0,
    ):
        """Return [(name, value)] of a metric over all batches, or the first `num_batch`."""
        eval_metric, nbatch = _metric(eval_metric), -1
        eval_metric.reset()
        for nbatch, batch in self._batches("score", eval_data, num_batch, reset):
            self.update_metric(eval_metric, batch.label)
            _tell(batch_end_callback, BatchEndParam(epoch, nbatch, eval_metric, locals()))
        _tell(score_end_callback, BatchEndParam(epoch, nbatch + 1, eval_metric, locals()))
        return eval_metric.get_name_value()

    def _batches(self, method, data, num_batch, reset):
        """Yield (index, batch) after computing its outputs."""
        self._need(method, "binded", "params_initialized")
        if not isinstance(data, DataIter):
            need = "an iterator is needed, such as mx.io.NDArrayIter"
            raise unfit(f"Module.{method}", "", data, need)
        if reset:
            data.reset()
        for nbatch, batch in enumerate(data):
            if nbatch == num_batch:
                break
            self.forward(batch, is_train=False)
            yield nbatch, batch

    def iter_predict(self, eval_data, num_batch=None, reset=True):
        """Yield (outputs, index, batch) of each batch, without the padding of the last."""
        for nbatch, batch in self._batches("iter_predict", eval_data, num_batch, reset):
            yield [out[: len(out) - (batch.pad or 0)] for out in self.get_outputs()], nbatch, batch

    def predict(
        self, eval_data, num_batch=None, merge_batches=True, reset=True, always_output_list=False
    ):
        """Return the concatenated outputs of all batches, or the first output of an array.

        merge_batches=False:  return a list of each batch's outputs.
        """
        if isinstance(eval_data, (NDArray, np.ndarray)):
            data = eval_data if isinstance(eval_data, NDArray) else nd.array(eval_data)
            self.forward(DataBatch([data]), is_train=False)
            return self.get_outputs()[0]
        batches = [
            [out.copy() for out in outputs]
            for outputs, _, _ in self.iter_predict(eval_data, num_batch, reset)
        ]
        if not merge_batches or not batches:
            return batches
        merged = [nd.concat(*parts, dim=0) for parts in zip(*batches, strict=True)]
        return merged[0] if len(merged) == 1 and not always_output_list else merged

    # -- files
    @staticmethod
    def load(prefix, epoch, load_optimizer_states=False, **kwargs):
        """Load a module from a checkpoint, with `Module`'s arguments; then `bind` or `fit` it."""
        symbol, arg_params, aux_params = load_checkpoint(prefix, epoch)
        module = Module(symbol, **kwargs)
        module._arg_params, module._aux_params = arg_params, aux_params
        module.params_initialized = True
        module._states_file = f"{prefix}-{epoch:04d}.states" if load_optimizer_states else None
        return module

    def save_checkpoint(self, prefix, epoch, save_optimizer_states=False):
        """Write `prefix-symbol.json`, `prefix-0001.params` and, on request, `.states`."""
        epoch = checked("save_checkpoint", "epoch", epoch, length)
        save_checkpoint(prefix, epoch, self.symbol, *self.get_params())
        self.logger.info('Saved checkpoint to "%s-%04d.params"', prefix, epoch)
        if save_optimizer_states:
            self.save_optimizer_states(f"{prefix}-{epoch:04d}.states")

    def save_params(self, fname):
        """Write parameters and auxiliary states to a file of arrays."""
        nd.save(fname, named_arrays(*self.get_params()))

    def load_params(self, fname):
        """Read what `save_params` wrote."""
        self.set_params(*read_params(fname))

    def save_optimizer_states(self, fname):
        """Write the optimizer's state of each parameter to a file of arrays (`nd.save`).

        MXNet uses a pickle, which can run code when read; it's neither read nor written here.
        """
        self._need("save_optimizer_states", "optimizer_initialized")
        arrays = {"num_update": nd.array([self._optimizer.num_update], dtype="int64")}
        for name, index in self._indices().items():
            if index in self._updater.states:
                count = self._optimizer._index_update_count[index]
                arrays[f"count:{name}"] = nd.array([count], dtype="int64")
                for k, array in enumerate(states_in(self._updater.states[index])):
                    arrays[f"state{k}:{name}"] = array
        nd.save(fname, arrays)

    def _indices(self):
        """Return parameter name -> the updater's key."""
        by_name = self._kvstore is not None
        return {name: name if by_name else i for i, name in enumerate(self._param_names)}

    def load_optimizer_states(self, fname):
        """Read a file of `save_optimizer_states`, for the same optimizer.

        Raises:  FileError if it's of another optimizer or other parameters.
        """
        self._need("load_optimizer_states", "optimizer_initialized")
        arrays, optimizer = nd.load(fname), self._optimizer
        if not isinstance(arrays, dict) or "num_update" not in arrays:
            raise FileError(f"'{fname}' holds no states that save_optimizer_states wrote")
        states, counts, indices = {}, {}, self._indices()
        for name in (key[6:] for key in arrays if key.startswith("count:")):
            if name not in indices:
                raise FileError(f"'{fname}' has states of '{name:.60}', which is no parameter")
            index, weight = indices[name], self._first[0].arg_dict[name]
            states[index] = optimizer.create_state_multi_precision(index, weight)
            expected = states_in(states[index])
            stored = [
                arrays[k] for k in sorted(arrays) if re.fullmatch(r"state\d+:" + re.escape(name), k)
            ]
            if [a.shape for a in expected] != [a.shape for a in stored]:
                raise FileError(
                    f"'{fname}': states of '{name}' have the shapes {[a.shape for a in stored]}, "
                    f"but {type(optimizer).__name__} needs {[a.shape for a in expected]}"
                )
            for array, value in zip(expected, stored, strict=True):
                array[:] = value
            counts[index] = _count(fname, arrays[f"count:{name}"])
        self._updater.states = states
        optimizer._index_update_count = counts
        optimizer.num_update = _count(fname, arrays["num_update"])


def _descs(shapes):
    return [d if isinstance(d, DataDesc) else DataDesc(*d) for d in shapes or ()]


def _axis(desc):
    """Return the batch axis, or -1 if there is none."""
    return DataDesc.get_batch_axis(desc.layout)


def _part(array, axis, part, size):
    """Return a device's slice of a batch."""
    if axis < 0 or part == slice(0, size) or not array.ndim:
        return array
    return array.slice_axis(axis=axis, begin=part.start, end=part.stop)


def _zeros_like(array):
    return nd.zeros(array.shape, CPU, array.dtype)


def _copy(method, name, value, array):
    if not isinstance(value, NDArray) or value.shape != array.shape:
        raise ShapeError(
            f"Module.{method}: '{name}' is {getattr(value, 'shape', described(value))}, but an "
            f"array of shape {array.shape} is needed"
        )
    if value is not array:
        array[:] = value.as_in_context(array.context)


def _initializer_of(text):
    """Return the initializer stored in a variable by `sym.var(init=...)`."""
    if not text.startswith("["):
        return initial.create(text)
    kind, settings = parsed_json(text, "an initializer")
    if kind not in INITIALIZERS or not isinstance(settings, dict):
        raise AttrError(f"initializer {text:.80} is unknown; there are {', '.join(INITIALIZERS)}")
    return INITIALIZERS[kind](**settings)


def _metric(metric):
    return metric if isinstance(metric, EvalMetric) else create_metric(metric)


def _tell(callbacks, *args):
    """Call a function, or each of a list."""
    for call in callbacks if isinstance(callbacks, (list, tuple)) else [callbacks]:
        if call is not None:
            call(*args)


def _count(fname, array):
    value = array.asnumpy()
    if value.size != 1 or value.dtype.kind not in "iu" or value.item() < 0:
        raise FileError(f"'{fname}': {value.tolist()!s:.60} is no number of updates")
    return value.item()


def _warn(text):
    warnings.warn(text, UserWarning, stacklevel=4)


__dir__ = own_names(globals())
