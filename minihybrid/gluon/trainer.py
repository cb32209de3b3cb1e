"""Chapter 15. Trainer: gradients change parameters.

Takes:   parameters, the name of an optimiser and its settings.
Gives:   `Trainer`, whose `step(batch_size)` updates every parameter once.

What is left out: optimisers other than stochastic gradient descent.
"""

import inspect

from minihybrid.gluon.parameter import Parameter
from minihybrid.op import AttrError


class SGD:
    """Stochastic gradient descent: w -= lr * (g + wd * w), with momentum if asked for.

    Source:  MXNet 1.9 `SGD`: state = momentum * state - lr * (g + wd * w); w += state.
    """

    def __init__(self, learning_rate=0.01, momentum=0.0, wd=0.0):
        self.learning_rate, self.momentum, self.wd = learning_rate, momentum, wd
        self.states = {}  # parameter name -> momentum array

    def update(self, param, scale):
        """Change one parameter by its gradient times `scale`."""
        w, lr = param.data().data, self.learning_rate * param.lr_mult
        change = (-lr * scale) * param.grad().data - (lr * self.wd * param.wd_mult) * w
        if self.momentum:
            state = self.states.get(param.name, 0.0)
            change = self.states[param.name] = self.momentum * state + change
        w += change


OPTIMIZERS = {"sgd": SGD}


class Trainer:
    """Updates parameters from their gradients.

    >>> from minihybrid.gluon import nn
    >>> net = nn.Dense(1, in_units=2); net.initialize()
    >>> Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1}).learning_rate
    0.1
    """

    def __init__(self, params, optimizer, optimizer_params=None, kvstore="device",
                 compression_params=None, update_on_kvstore=None):
        params = list(params.values()) if hasattr(params, "values") else list(params)
        if not all(isinstance(p, Parameter) for p in params):
            raise AttrError("Trainer: parameters are needed, as net.collect_params() gives")
        if isinstance(optimizer, str) and optimizer not in OPTIMIZERS:
            raise AttrError(f"Trainer: optimizer '{optimizer}' is unknown; there are "
                            f"{', '.join(OPTIMIZERS)}")
        try:
            self._optimizer = OPTIMIZERS[optimizer](**(optimizer_params or {})) \
                if isinstance(optimizer, str) else optimizer
        except TypeError as error:
            settings = ", ".join(inspect.signature(OPTIMIZERS[optimizer]).parameters)
            raise AttrError(f"Trainer: {error}; the settings of '{optimizer}' are "
                            f"{settings}") from None
        self._params = [p for p in params if p.grad_req != "null"]

    @property
    def learning_rate(self):
        """The step length."""
        return self._optimizer.learning_rate

    def set_learning_rate(self, lr):
        """Change the step length."""
        self._optimizer.learning_rate = lr

    def step(self, batch_size, ignore_stale_grad=False):
        """Update every parameter by its gradient divided by the batch size."""
        for param in self._params:
            self._optimizer.update(param, 1 / batch_size)
