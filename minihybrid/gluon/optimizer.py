"""Chapter 07. Optimisers: how a gradient changes a weight.

Takes:   weights, gradients, and an optimiser's memory of earlier steps (its state).
Gives:   `SGD`, `NAG`, `Adam`, `AdamW`, `RMSProp`, `AdaGrad`, `AdaDelta`, `Adamax`,
         `Nadam`, `FTML`, `Ftrl`, `Signum`, `LAMB`, `LARS`, `DCASGD`, `SGLD`,
         `GroupAdaGrad`, `LBSGD`; `create`, `register`, `Updater`.

An optimiser is one `rule`, written with operators: it computes on arrays, one weight
after the other, and the Trainer traces it over all weights into one compiled call.
Source:  the rules, names and defaults are those of MXNet 1.9.1, whose numbers they
         give; here without sparse gradients.
"""

import math
from types import SimpleNamespace

import numpy as np

from minihybrid.core import nd
from minihybrid.core.checked_call import Settings
from minihybrid.core.hooks import own_names
from minihybrid.core.nd import NDArray
from minihybrid.core.op import (
    AttrError,
    ShapeError,
    choice,
    count,
    described,
    finite,
    length,
    not_negative,
    optional,
    positive,
    rate,
    share,
)
from minihybrid.ops.elementwise import abs_, clip, ones_like, sign, sqrt, square, where, zeros_like
from minihybrid.ops.infix import FUNCTIONS, absent
from minihybrid.ops.layout import reshape
from minihybrid.ops.reduce import mean, sum_
from minihybrid.runtime.overwrites import overwrite

maximum, minimum = FUNCTIONS["maximum"], FUNCTIONS["minimum"]


class Optimizer(Settings):
    """The parent: learning rate, weight decay, and how often each weight was updated.

    rescale_grad:   every gradient is multiplied by it, usually 1 / batch size.
    clip_gradient:  then each of its numbers is cut to [-clip_gradient, clip_gradient].
    wd:             weight decay: wd * weight is added to the gradient.
    lr_scheduler:   the learning rate as a function of the number of updates.
    param_dict:     index -> Parameter, whose lr_mult and wd_mult hold.

    A child gives `n_states`, `rule` and, if they change with time, `rates`. A child
    that overrides `update` and `create_state` instead works, too, without being
    compiled. `decay_first` rules want the weight decay in before the clipping.

    >>> w, g = nd.array([1.0]), nd.array([0.5])
    >>> SGD(learning_rate=0.1).update(0, w, g, None); w.asnumpy()
    array([0.95], dtype=float32)
    """

    n_states, decay_first = 0, False
    KINDS = {
        "lr": finite,
        "wd": finite,
        "rescale_grad": finite,
        "momentum": share,
        "clip_gradient": optional(positive),
        "clip_weights": optional(positive),
        "beta1": rate,
        "beta2": rate,
        "gamma1": share,
        "gamma2": share,
        "rho": share,
        "epsilon": not_negative,
        "begin_num_update": length,
    }
    CALLED = {"lr": "learning_rate"}
    __getattr__ = absent

    def __init__(
        self,
        rescale_grad=1.0,
        param_idx2name=None,
        wd=0.0,
        clip_gradient=None,
        learning_rate=None,
        lr_scheduler=None,
        sym=None,
        begin_num_update=0,
        multi_precision=False,
        param_dict=None,
    ):
        if lr_scheduler is not None and learning_rate is not None:
            lr_scheduler.base_lr = learning_rate
        self.lr = 0.01 if learning_rate is None else learning_rate
        self.lr_scheduler, self.wd = lr_scheduler, wd
        self.rescale_grad, self.clip_gradient = rescale_grad, clip_gradient
        self.multi_precision = multi_precision
        self.begin_num_update = self.num_update = begin_num_update
        self._index_update_count = {}
        self.idx2name, self.param_dict = dict(param_idx2name or {}), param_dict or {}
        self._told = sym.attr_dict() if sym is not None else {}
        self.set_lr_mult({})
        self.set_wd_mult({})

    def __repr__(self):
        shown = {"learning_rate": self.learning_rate}
        shown |= {name: vars(self).get(name) for name in self.KINDS if name not in self.CALLED}
        usual = {"rescale_grad": 1}  # others are off where they are 0
        settings = [f"{k}={v:g}" for k, v in shown.items() if v and v != usual.get(k)]
        if self.lr_scheduler is not None:
            settings.append(f"lr_scheduler={type(self.lr_scheduler).__name__}")
        return f"{type(self).__name__}({', '.join(settings)})"

    # -- the rule
    def rule(self, weight, grad, *states, lr, wd):
        """(new weight, *new states), written with operators.

        grad:    multiplied by `rescale_grad` and clipped already; with `decay_first`,
                 it has the weight decay, too, and the rule gets no `wd`.
        lr, wd:  of shape (1,), like all that `rates` gives: new rates, same program.
        """
        raise NotImplementedError

    def rates(self, index):
        """name -> number: what changes with time and with the weight, for `rule`."""
        return {"lr": self._get_lr(index), "wd": self._get_wd(index)}

    def numbers(self, index):
        """Everything that one step passes to the compiled program as numbers."""
        return {"rescale_grad": self.rescale_grad, **self.rates(index)}

    def apply(self, weight, grad, states, numbers):
        """Rescale and clip the gradient, then apply the rule; on arrays or symbols."""
        numbers = dict(numbers)
        grad = grad * numbers.pop("rescale_grad")
        if self.decay_first:
            grad = grad + weight * numbers.pop("wd")
        if self.clip_gradient:
            grad = clip(grad, -self.clip_gradient, self.clip_gradient)
        return self.rule(weight, grad, *states, **numbers)

    def settings(self, names):
        """The values of these attributes now, to be compared with those of later."""
        own = vars(self)
        return tuple([frozen(own.get(name)) for name in names])

    def watched(self):
        """(the same optimiser, a set): it notes which of its attributes are read.

        A traced rule contains their values: others, and it must be traced again.
        """

        class Watched(type(self)):
            __slots__ = ("read",)  # in the object: a class is dropped late

            def __getattribute__(self, name):
                if name in object.__getattribute__(self, "__dict__"):
                    object.__getattribute__(self, "read").add(name)
                return super().__getattribute__(name)

        twin = object.__new__(Watched)
        object.__setattr__(twin, "__dict__", vars(self))
        object.__setattr__(twin, "read", set())
        return twin, twin.read

    # -- one weight
    def create_state(self, index, weight):
        """The memory of one weight: None, an array, or a tuple; zeros at first."""
        states = tuple(
            nd.zeros(weight.shape, weight.context, weight.dtype) for _ in range(self.n_states)
        )
        return states if len(states) > 1 else states[0] if states else None

    def update(self, index, weight, grad, state):
        """One step of one weight, in place; `state` is what `create_state` gave."""
        self._update_count(index)
        states = states_in(state)
        numbers = {
            name: nd.array([value], weight.context, weight.dtype)
            for name, value in self.numbers(index).items()
        }
        new = self.apply(weight.detach(), grad.detach(), states, numbers)
        # States first: the new one may be the old weight itself.
        for array, value in reversed(list(zip((weight, *states), new, strict=True))):
            overwrite(array, value.data)

    def create_state_multi_precision(self, index, weight):
        """The state; of a 16-bit weight in mixed precision, (float32 copy, state)."""
        if not self._is_mixed(weight):
            return self.create_state(index, weight)
        master = weight.detach().astype("float32")
        return master, self.create_state(index, master)

    def update_multi_precision(self, index, weight, grad, state):
        """One step; in mixed precision, 16-bit weights are computed in float32."""
        if not self._is_mixed(weight):
            return self.update(index, weight, grad, state)
        master, state = state
        self.update(index, master, grad.detach().astype("float32"), state)
        overwrite(weight, master.astype(weight.dtype).data)

    def _is_mixed(self, weight):
        return self.multi_precision and np.dtype(weight.dtype).name in ("float16", "bfloat16")

    # -- rates
    @property
    def learning_rate(self):
        """The learning rate now: the schedule's, if there is one."""
        return self.lr_scheduler(self.num_update) if self.lr_scheduler else self.lr

    def set_learning_rate(self, lr):
        """Change the learning rate.

        Raises:  AttrError if a schedule decides it.
        """
        if self.lr_scheduler is not None:
            raise AttrError(
                "set_learning_rate: the optimiser's lr_scheduler decides "
                "the learning rate; change the scheduler's base_lr instead"
            )
        self.lr = lr

    def set_lr_mult(self, args_lr_mult):
        """Factors of the learning rate, by a weight's name or index."""
        self.lr_mult = self._from_symbol("__lr_mult__") | args_lr_mult

    def set_wd_mult(self, args_wd_mult):
        """Factors of the weight decay, by a weight's name or index.

        Weights with known names that end neither in _weight nor in _gamma have 0.
        """
        plain = {n: 0.0 for n in self.idx2name.values() if not n.endswith(("_weight", "_gamma"))}
        self.wd_mult = plain | self._from_symbol("__wd_mult__") | args_wd_mult

    def _from_symbol(self, key):
        return {name: float(a[key]) for name, a in self._told.items() if key in a}

    def _factor(self, index, kind):
        """lr_mult or wd_mult of a weight: its Parameter's, or by its index or name."""
        given = getattr(self, kind)
        if index in self.param_dict:
            return getattr(self.param_dict[index], kind)
        return given.get(index, given.get(self.idx2name.get(index), 1.0))

    def _get_lr(self, index):
        return self.learning_rate * self._factor(index, "lr_mult")

    def _get_wd(self, index):
        return self.wd * self._factor(index, "wd_mult")

    def _update_count(self, index):
        """Count one more update of a weight, or of each in a list."""
        for i in index if isinstance(index, (list, tuple)) else [index]:
            count = self._index_update_count.get(i, self.begin_num_update) + 1
            self._index_update_count[i] = count
            self.num_update = max(count, self.num_update)

    # -- by name
    opt_registry = {}

    @staticmethod
    def register(klass):
        """Enter a class under its name in lower case; usable as a decorator."""
        if not isinstance(klass, type):
            raise AttrError(f"optimizer.register: {described(klass)} is no class")
        Optimizer.opt_registry[klass.__name__.lower()] = klass
        return klass

    @staticmethod
    def create_optimizer(name, **kwargs):
        """The optimiser with a name, upper or lower case, and these settings.

        Raises:  AttrError for a name or a setting that does not exist.
        """
        klass = Optimizer.opt_registry.get(str(name).lower())
        if klass is None:
            raise AttrError(
                f"optimizer '{name}' is unknown; there are "
                f"{', '.join(sorted(Optimizer.opt_registry))}"
            )
        return klass(**kwargs)


register, create = Optimizer.register, Optimizer.create_optimizer


def frozen(value):
    """A setting as it is now: equal to a later one only if that says the same.

    >>> frozen([1, 2.5]), frozen(0.0) == frozen(-0.0)
    ((<class 'list'>, 1, 2.5), False)
    """
    if isinstance(value, (list, tuple)):
        return (type(value), *map(frozen, value))
    if isinstance(value, dict):
        return (type(value), *map(frozen, value.items()))
    if isinstance(value, (NDArray, np.ndarray, np.generic)):
        array = np.asarray(value.asnumpy() if isinstance(value, NDArray) else value)
        return type(value), array.dtype, array.shape, array.tobytes()
    return value or repr(value)  # 0.0 is not -0.0


def states_in(state):
    """The arrays of what `create_state` gave: of None, an array, or nested tuples."""
    if state is None or isinstance(state, NDArray):
        return () if state is None else (state,)
    if not isinstance(state, (list, tuple)):
        raise AttrError(
            f"an optimiser's state is {described(state)}, but None, an "
            "NDArray or a tuple of them is needed"
        )
    return tuple(array for part in state for array in states_in(part))


# -- the rules -------------------------------------------------------------------------
@register
class SGD(Optimizer):
    """Stochastic gradient descent: w -= lr (g + wd w).

    With momentum, m = momentum m - lr (g + wd w); w += m.
    """

    def __init__(self, momentum=0.0, lazy_update=True, **kwargs):
        super().__init__(**kwargs)
        self.momentum, self.lazy_update = momentum, lazy_update

    n_states = property(lambda self: int(self.momentum != 0))

    def rule(self, weight, grad, *mom, lr, wd):
        """One step."""
        step = (grad + weight * wd) * lr
        if not mom:
            return (weight - step,)
        m = mom[0] * self.momentum - step
        return weight + m, m


@register
class NAG(SGD):
    """Nesterov's accelerated gradient: SGD that looks one step of momentum ahead.

    g += wd w;   m = momentum m - lr g;   w += momentum m - lr g
    Source:  Sutskever, Martens, Dahl and Hinton, ICML 2013. MXNet 1.9.1 overwrites w
             before it computes m, which decays by the new w then; here by the old one.
    """

    def __init__(self, momentum=0.0, **kwargs):
        super().__init__(momentum, **kwargs)

    def rule(self, weight, grad, *mom, lr, wd):
        """One step."""
        step = (grad + weight * wd) * lr
        if not mom:
            return (weight - step,)
        m = mom[0] * self.momentum - step
        return weight + (m * self.momentum - step), m


@register
class Adam(Optimizer):
    """Steps by the mean of the gradients over the root of the mean of their squares.

    g += wd w;   m = beta1 m + (1 - beta1) g;   v = beta2 v + (1 - beta2) g^2
    w -= lr sqrt(1 - beta2^t) / (1 - beta1^t) m / (sqrt(v) + epsilon)
    Source:  Kingma and Ba, ICLR 2015.
    """

    n_states, decay_first = 2, True

    def __init__(
        self, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, lazy_update=True, **kwargs
    ):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1, self.beta2, self.epsilon = beta1, beta2, epsilon
        self.lazy_update = lazy_update

    def correction(self, index):
        """What makes up for means that began at 0, in update t of this weight."""
        t = self._index_update_count[index]
        return math.sqrt(1 - self.beta2**t) / (1 - self.beta1**t)

    def rates(self, index):
        """The learning rate is corrected for means that began at 0."""
        rates = super().rates(index)
        return rates | {"lr": rates["lr"] * self.correction(index)}

    def moments(self, grad, mean, var):
        """The means of the gradients and of their squares, one step on."""
        return (
            mean * self.beta1 + grad * (1 - self.beta1),
            var * self.beta2 + square(grad) * (1 - self.beta2),
        )

    def rule(self, weight, grad, mean, var, lr):
        """One step."""
        mean, var = self.moments(grad, mean, var)
        return weight - mean * lr / (sqrt(var) + self.epsilon), mean, var


@register
class AdamW(Adam):
    """Adam whose weight decay does not pass through the means: w -= lr (step + wd w).

    correct_bias:  correct the step for means that began at 0.
    Source:  Loshchilov and Hutter, ICLR 2019; MXNet 1.9's operator `adamw_update`, with
             the settings of MXNet 2's class.
    """

    decay_first = False

    def __init__(
        self, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-6, correct_bias=True, **kwargs
    ):
        super().__init__(learning_rate, beta1, beta2, epsilon, **kwargs)
        self.correct_bias = correct_bias

    def rates(self, index):
        """The correction is of the step alone, not of the weight decay."""
        return {
            "lr": self._get_lr(index),
            "wd": self._get_wd(index),
            "correct": self.correction(index) if self.correct_bias else 1.0,
        }

    def rule(self, weight, grad, mean, var, lr, wd, correct):
        """One step."""
        mean, var = self.moments(grad, mean, var)
        step = mean * correct / (sqrt(var) + self.epsilon)
        return weight - (step + weight * wd) * lr, mean, var


@register
class RMSProp(Optimizer):
    """Steps by the gradient over the root of the mean of its squares.

    g += wd w;   n = gamma1 n + (1 - gamma1) g^2;   w -= lr g / sqrt(n + epsilon)

    centered:      subtract the square of the gradients' mean from n, and keep a
                   momentum gamma2 of the steps.
    clip_weights:  then cut each weight to [-clip_weights, clip_weights].
    Source:  Tieleman and Hinton 2012; centered: Graves, arXiv:1308.0850.
    """

    def __init__(
        self,
        learning_rate=0.001,
        gamma1=0.9,
        gamma2=0.9,
        epsilon=1e-8,
        centered=False,
        clip_weights=None,
        **kwargs,
    ):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.gamma1, self.gamma2, self.epsilon = gamma1, gamma2, epsilon
        self.centered, self.clip_weights = centered, clip_weights

    n_states, decay_first = property(lambda self: 3 if self.centered else 1), True

    def mean(self, old, new):
        """The running mean, one step on."""
        return new * (1 - self.gamma1) + old * self.gamma1

    def rule(self, weight, grad, n, *rest, lr):
        """One step."""
        n = self.mean(n, square(grad))
        if rest:
            g = self.mean(rest[0], grad)
            # Of equal gradients both squares are the same, but for their last digits.
            spread = sqrt(maximum(n - square(g), 0.0) + self.epsilon)
            step = rest[1] * self.gamma2 - grad * lr / spread
            weight, rest = weight + step, (g, step)
        else:
            weight = weight - grad * lr / sqrt(n + self.epsilon)
        if self.clip_weights:
            weight = clip(weight, -self.clip_weights, self.clip_weights)
        return weight, n, *rest


@register
class AdaGrad(Optimizer):
    """Steps by the gradient over the root of the sum of all its squares.

    h += g^2;   w -= lr (g / sqrt(h + eps) + wd w)
    Source:  Duchi, Hazan and Singer, JMLR 2011.
    """

    n_states = 1

    def __init__(self, eps=1e-7, **kwargs):
        super().__init__(**kwargs)
        self.float_stable_eps = eps

    def rule(self, weight, grad, history, lr, wd):
        """One step."""
        history = history + square(grad)
        step = grad / sqrt(history + self.float_stable_eps)
        return weight - (step + weight * wd) * lr, history


@register
class AdaDelta(Optimizer):
    """Steps of the size of earlier steps, so that no learning rate is needed.

    a = rho a + (1 - rho) g^2;   step = sqrt(d + epsilon) / sqrt(a + epsilon) g
    d = rho d + (1 - rho) step^2;   w -= step + wd w
    Source:  Zeiler, arXiv:1212.5701.
    """

    n_states = 2

    def __init__(self, rho=0.90, epsilon=1e-5, **kwargs):
        super().__init__(**kwargs)
        self.rho, self.epsilon = rho, epsilon

    def rates(self, index):
        """There is no learning rate."""
        return {"wd": self._get_wd(index)}

    def rule(self, weight, grad, acc_g, acc_delta, wd):
        """One step."""
        acc_g = acc_g * self.rho + square(grad) * (1 - self.rho)
        step = sqrt(acc_delta + self.epsilon) / sqrt(acc_g + self.epsilon) * grad
        acc_delta = acc_delta * self.rho + square(step) * (1 - self.rho)
        return weight - (step + weight * wd), acc_g, acc_delta


@register
class Adamax(Optimizer):
    """Adam with the largest gradient in place of the root of the mean of squares.

    g += wd w;   m = beta1 m + (1 - beta1) g
    u = max(beta2 u, |g|);   w -= lr / (1 - beta1^t) m / u
    Source:  Kingma and Ba, ICLR 2015, section 7.1.
    """

    n_states, decay_first = 2, True

    def __init__(self, learning_rate=0.002, beta1=0.9, beta2=0.999, **kwargs):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1, self.beta2 = beta1, beta2

    def rates(self, index):
        """The learning rate is corrected for a mean that began at 0."""
        rates, t = super().rates(index), self._index_update_count[index]
        return rates | {"lr": rates["lr"] / (1 - self.beta1**t)}

    def rule(self, weight, grad, mean, top, lr):
        """One step."""
        mean = mean * self.beta1 + grad * (1 - self.beta1)
        top = maximum(top * self.beta2, abs_(grad))
        # Where no gradient was yet, both are 0; their quotient would stay NaN for ever.
        step = where(top, mean * lr / top, zeros_like(top))
        return weight - step, mean, top


@register
class Nadam(Adam):
    """Adam that looks one step of momentum ahead, with a momentum that grows.

    b(t) = beta1 (1 - 0.96^(t schedule_decay) / 2);   B(t) = b(1) b(2) ... b(t)
    g' = (1 - b(t)) g / (1 - B(t)) + b(t + 1) m / (1 - B(t + 1))
    w -= lr g' / (sqrt(v / (1 - beta2^t)) + epsilon)
    Source:  Dozat, ICLR 2016 workshop. MXNet 1.9.1 goes on with B at each weight, so that
             its steps depend on how many there are; here each weight has its own.
    """

    KINDS = Optimizer.KINDS | {"schedule_decay": not_negative}

    def __init__(
        self,
        learning_rate=0.001,
        beta1=0.9,
        beta2=0.999,
        epsilon=1e-8,
        schedule_decay=0.004,
        **kwargs,
    ):
        super().__init__(learning_rate, beta1, beta2, epsilon, **kwargs)
        self.schedule_decay = schedule_decay
        self._products = {}  # index -> (t, B(t)), so that a step does not begin at 1

    def momentum(self, t):
        """b(t), of a number or of several."""
        return self.beta1 * (1 - 0.5 * 0.96 ** (t * self.schedule_decay))

    def rates(self, index):
        """The factors of the gradient, of the mean and of the mean of squares."""
        t = self._index_update_count[index]
        before, product = self._products.get(index, (0, 1.0))
        if before != t - 1:  # after load_states, or out of order
            before, product = 0, 1.0
        product *= math.prod(self.momentum(i) for i in range(before + 1, t + 1))
        self._products[index] = t, product
        now, following = self.momentum(t), self.momentum(t + 1)
        return Optimizer.rates(self, index) | {
            "of_grad": (1 - now) / (1 - product),
            "of_mean": following / (1 - product * following),
            "of_var": 1 / (1 - self.beta2**t),
        }

    def rule(self, weight, grad, mean, var, lr, of_grad, of_mean, of_var):
        """One step."""
        mean, var = self.moments(grad, mean, var)
        step = (grad * of_grad + mean * of_mean) * lr
        return weight - step / (sqrt(var * of_var) + self.epsilon), mean, var


@register
class FTML(Optimizer):
    """Steps that follow the best weight for all gradients so far.

    g += wd w;   v = beta2 v + (1 - beta2) g^2
    e = (1 - beta1^t) / lr (sqrt(v / (1 - beta2^t)) + epsilon)
    z = beta1 z + (1 - beta1) g - (e - beta1 d) w;   d = e;   w = -z / d
    Source:  Zheng and Kwok, ICML 2017.
    """

    n_states, decay_first = 3, True

    def __init__(self, beta1=0.6, beta2=0.999, epsilon=1e-8, **kwargs):
        super().__init__(**kwargs)
        self.beta1, self.beta2, self.epsilon = beta1, beta2, epsilon

    def rates(self, index):
        """The learning rate, and what makes up for means that began at 0."""
        rates, t = super().rates(index), self._index_update_count[index]
        return rates | {
            "per_lr": (1 - self.beta1**t) / rates.pop("lr"),
            "of_var": 1 / (1 - self.beta2**t),
        }

    def rule(self, weight, grad, d, v, z, per_lr, of_var):
        """One step."""
        v = v * self.beta2 + square(grad) * (1 - self.beta2)
        new = (sqrt(v * of_var) + self.epsilon) * per_lr
        z = z * self.beta1 + grad * (1 - self.beta1) - (new - d * self.beta1) * weight
        return -z / new, new, v, z


@register
class Ftrl(Optimizer):
    """Steps that set weights to 0 where gradients say little.

    z += g - (sqrt(n + g^2) - sqrt(n)) w / lr;   n += g^2
    w = (sign(z) lamda1 - z) / ((beta + sqrt(n)) / lr + wd) where |z| > lamda1, else 0
    Source:  McMahan and others, KDD 2013.
    """

    KINDS = Optimizer.KINDS | {"lamda1": not_negative, "beta": not_negative}
    n_states = 2

    def __init__(self, lamda1=0.01, learning_rate=0.1, beta=1, **kwargs):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.lamda1, self.beta = lamda1, beta

    def rule(self, weight, grad, z, n, lr, wd):
        """One step."""
        new = n + square(grad)
        z = z + grad - (sqrt(new) - sqrt(n)) * weight / lr
        step = (sign(z) * self.lamda1 - z) / ((sqrt(new) + self.beta) / lr + wd)
        return where(maximum(abs_(z) - self.lamda1, 0.0), step, zeros_like(step)), z, new


@register
class Signum(Optimizer):
    """Steps of one length: lr times the sign of the gradients' mean.

    m = momentum m - (1 - momentum) (g + wd w);   w = (1 - lr wd_lh) w + lr sign(m)
    Without momentum, w = (1 - lr wd) w - lr sign(g).
    Source:  Bernstein, Wang, Azizzadenesheli and Anandkumar, ICML 2018.
    """

    KINDS = Optimizer.KINDS | {"wd_lh": not_negative}

    def __init__(self, learning_rate=0.01, momentum=0.9, wd_lh=0.0, **kwargs):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.momentum, self.wd_lh = momentum, wd_lh

    n_states = property(lambda self: int(self.momentum != 0))

    def rule(self, weight, grad, *mom, lr, wd):
        """One step."""
        if not mom:
            return (weight - (weight * wd + sign(grad)) * lr,)
        m = mom[0] * self.momentum - (grad + weight * wd) * (1 - self.momentum)
        return weight + (sign(m) - weight * self.wd_lh) * lr, m


@register
class LAMB(Adam):
    """Adam whose steps are as long as a share of the weight: for large batches.

    g' = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon) + wd w
    w -= lr |w| / |g'| g';   where either is 0, w -= lr g'

    lower_bound, upper_bound:  of |w| in the share.
    bias_correction:           correct means that began at 0.
    Source:  You and others, ICLR 2020.
    """

    KINDS = Optimizer.KINDS | {
        "lower_bound": optional(not_negative),
        "upper_bound": optional(not_negative),
    }
    decay_first = False

    def __init__(
        self,
        learning_rate=0.001,
        beta1=0.9,
        beta2=0.999,
        epsilon=1e-6,
        lower_bound=None,
        upper_bound=None,
        bias_correction=True,
        **kwargs,
    ):
        super().__init__(learning_rate, beta1, beta2, epsilon, **kwargs)
        self.lower_bound, self.upper_bound = lower_bound, upper_bound
        self.bias_correction = bias_correction

    def rates(self, index):
        """The corrections are of the means, not of the learning rate."""
        t = self._index_update_count[index] if self.bias_correction else math.inf
        corrections = {"of_mean": 1 / (1 - self.beta1**t), "of_var": 1 / (1 - self.beta2**t)}
        return Optimizer.rates(self, index) | corrections

    def rule(self, weight, grad, mean, var, lr, wd, of_mean, of_var):
        """One step."""
        mean, var = self.moments(grad, mean, var)
        step = mean * of_mean / (sqrt(var * of_var) + self.epsilon) + weight * wd
        long, wide = norm_of(weight), norm_of(step)
        if self.lower_bound:
            long = maximum(long, self.lower_bound)
        if self.upper_bound:
            long = minimum(long, self.upper_bound)
        share = where(long * wide, long / wide, ones_like(wide))
        return weight - step * (share * lr), mean, var


def norm_of(array):
    """The root of the sum of all squares, of shape (1,)."""
    return sqrt(sum_(square(reshape(array, shape=(-1,))), axis=0, keepdims=True))


@register
class LARS(SGD):
    """SGD with a rate for each weight: steps are a share of its length, for large batches.

    lr' = lr eta |w| / (|g| + wd |w| + eps);   where |w| or |g| is 0, lr' = lr
    Weights whose known names end in gamma, beta or bias keep the learning rate.

    momentum_correction:  where the learning rate changes, momentum does as much, once.
    Source:  You, Gitman and Ginsburg, arXiv:1708.03888; Goyal and others, arXiv:1706.02677.
    """

    KINDS = Optimizer.KINDS | {"eta": not_negative, "eps": not_negative}

    def __init__(
        self, momentum=0.0, lazy_update=True, eta=0.001, eps=0, momentum_correction=True, **kwargs
    ):
        super().__init__(momentum, lazy_update, **kwargs)
        self.eta, self.eps, self.momentum_correction = eta, eps, momentum_correction
        self._lrs = None  # (update, learning rate then, learning rate before)

    def set_wd_mult(self, args_wd_mult):
        """Factors of the weight decay; of known names, only those in _weight have one."""
        plain = {n: 0.0 for n in self.idx2name.values() if not n.endswith("_weight")}
        super().set_wd_mult(plain | args_wd_mult)

    def rates(self, index):
        """Whether the weight has a rate of its own, and how the learning rate changed."""
        now = self.learning_rate
        if self._lrs is None:
            self._lrs = self.num_update, now, now
        elif self._lrs[0] != self.num_update:
            self._lrs = self.num_update, now, self._lrs[1]
        before = self._lrs[2] if self.momentum_correction else 0
        name = self.idx2name.get(index, "")
        return super().rates(index) | {
            "layered": 0.0 if name.endswith(("gamma", "beta", "bias")) else 1.0,
            "change": now / before if before else 1.0,
        }

    def apply(self, weight, grad, states, numbers):
        """The learning rate is that of the weight, by the gradient before it is clipped."""
        numbers = dict(numbers)
        layered, change = numbers.pop("layered"), numbers.pop("change")
        long, steep = norm_of(weight), norm_of(grad * numbers["rescale_grad"])
        share = long * self.eta / (steep + long * numbers["wd"] + self.eps)
        numbers["lr"] = numbers["lr"] * where(long * steep * layered, share, ones_like(share))
        return super().apply(weight, grad, [state * change for state in states], numbers)


@register
class DCASGD(Optimizer):
    """SGD that makes up for gradients of an older weight.

    s = g + wd w + lamda g^2 (w - the weight of the step before);   w -= lr s
    With momentum, m = momentum m - lr s; w += m.
    Source:  Zheng and others, ICML 2017.
    """

    KINDS = Optimizer.KINDS | {"lamda": not_negative}

    def __init__(self, momentum=0.0, lamda=0.04, **kwargs):
        super().__init__(**kwargs)
        self.momentum, self.lamda = momentum, lamda

    def create_state(self, index, weight):
        """The weight of the step before, and the momentum, if there is one."""
        before = weight.detach().copy()
        return (before, nd.zeros_like(before)) if self.momentum else before

    def rule(self, weight, grad, before, *mom, lr, wd):
        """One step."""
        step = (grad + weight * wd + square(grad) * (weight - before) * self.lamda) * lr
        if not mom:
            return weight - step, weight
        m = mom[0] * self.momentum - step
        return weight + m, weight, m


@register
class SGLD(Optimizer):
    """Steps with noise, so that the weights are draws from what the data leave possible.

    w -= lr / 2 (g + wd w) - noise;   noise is normal, of the variance lr
    Source:  Welling and Teh, ICML 2011.
    """

    def update(self, index, weight, grad, state):
        """One step of one weight; it draws, and so it is not compiled."""
        self._update_count(index)
        lr, wd = self._get_lr(index), self._get_wd(index)
        grad = grad.detach() * self.rescale_grad
        if self.clip_gradient:
            grad = clip(grad, -self.clip_gradient, self.clip_gradient)
        step = (grad + weight.detach() * wd) * (lr / 2)
        noise = nd.random.normal(0, math.sqrt(lr), weight.shape, weight.dtype, weight.context)
        overwrite(weight, (weight.detach() - step + noise).data)


@register
class GroupAdaGrad(AdaGrad):
    """AdaGrad with one rate for each row of a weight, such as each word of an embedding.

    h += mean(g^2) of the row;   w -= lr g / sqrt(h + eps)
    Weights have two axes, and no decay.
    Source:  MXNet's mxnet.optimizer.contrib.
    """

    def __init__(self, eps=1e-5, **kwargs):
        super().__init__(eps, **kwargs)

    def create_state(self, index, weight):
        """The sum of each row."""
        if weight.ndim != 2:
            raise ShapeError(
                f"GroupAdaGrad: a weight of shape {weight.shape}, but two axes are needed; other "
                "weights need another optimiser, such as AdaGrad"
            )
        return nd.zeros((weight.shape[0], 1), weight.context, weight.dtype)

    def rule(self, weight, grad, history, lr, wd):
        """One step."""
        history = history + mean(square(grad), axis=1, keepdims=True)
        return weight - grad * lr / sqrt(history + self.float_stable_eps), history

    def rates(self, index):
        """The rate; a decay is refused."""
        rates = super().rates(index)
        if rates["wd"]:
            raise AttrError(f"GroupAdaGrad: wd={rates['wd']}, but it has no weight decay; give 0")
        return rates


@register
class LBSGD(SGD):
    """SGD for large batches: gradients of some updates are one step, whose rate grows first.

    batch_scale:   how many updates are one step; the others change nothing.
    warmup_epochs, updates_per_epoch:  over how many updates the rate grows.
    warmup_strategy:  "linear", "power2" or "sqrt": the rate grows to batch_scale times
                   itself; "lars": it is times |w| / sqrt(|g|^2 + wd |w|^2), 0.01 to 100.
    begin_epoch:   counts updates from there;  num_epochs: not read.
    Source:  MXNet's mxnet.optimizer.LBSGD; You, Gitman and Ginsburg, arXiv:1708.03888.
    """

    KINDS = Optimizer.KINDS | {
        "batch_scale": count,
        "warmup_epochs": length,
        "updates_per_epoch": count,
        "warmup_strategy": choice("linear", "power2", "sqrt", "lars"),
    }

    def __init__(
        self,
        momentum=0.0,
        multi_precision=False,
        warmup_strategy="linear",
        warmup_epochs=5,
        batch_scale=1,
        updates_per_epoch=32,
        begin_epoch=0,
        num_epochs=60,
        **kwargs,
    ):
        super().__init__(momentum, multi_precision=multi_precision, **kwargs)
        self.warmup_strategy, self.warmup_epochs = warmup_strategy, warmup_epochs
        self.batch_scale, self.updates_per_epoch = batch_scale, updates_per_epoch
        self.init_updates = begin_epoch * updates_per_epoch
        self._gathered = {}  # index -> (number of updates, the sum since the last step)

    def update(self, index, weight, grad, state):
        """One update of one weight; it reads lengths, and so it is not compiled."""
        lr, wd = self._get_lr(index), self._get_wd(index)
        self._update_count(index)
        n, total = self._gathered.get(index, (self.init_updates, 0))
        n, total = n + 1, grad.detach() + total
        self._gathered[index] = n, total
        if n % self.batch_scale:
            return
        self._gathered[index] = n, 0
        grad = total / self.batch_scale
        numbers = {"rescale_grad": self.rescale_grad, "lr": lr * self._grown(n, weight, grad, wd)}
        numbers = {k: nd.array([v], weight.context, weight.dtype) for k, v in numbers.items()}
        states = states_in(state)
        decay = nd.array([wd], weight.context, weight.dtype)
        new = self.apply(weight.detach(), grad, states, numbers | {"wd": decay})
        for array, value in reversed(list(zip((weight, *states), new, strict=True))):
            overwrite(array, value.data)

    def _grown(self, n, weight, grad, wd):
        """By what the rate is multiplied at update n."""
        if self.warmup_strategy == "lars":
            long, steep = ((a.detach() ** 2).sum().asscalar() for a in (weight, grad))
            return min(max(math.sqrt(long / (steep + wd * long + 1e-18)), 0.01), 100)
        last = self.warmup_epochs * self.updates_per_epoch
        if n >= last or last <= 1:
            return float(self.batch_scale) if n >= last else 1.0
        power = {"linear": 1, "power2": 2, "sqrt": 0.5}[self.warmup_strategy]
        return 1 + (self.batch_scale - 1) * (n / last) ** power


@register
class ccSGD(SGD):  # noqa: N801  (MXNet's name)
    """The same as `SGD`, under the name of old programs."""


contrib = SimpleNamespace(GroupAdaGrad=GroupAdaGrad)  # where MXNet has it


class Updater:
    """An optimiser together with the states of the weights that it has met.

    >>> update = Updater(create("sgd", momentum=0.9))
    >>> update(0, nd.array([1.0]), nd.array([2.0])); len(update.states)
    1
    """

    def __init__(self, optimizer):
        self.optimizer, self.states = optimizer, {}

    def __call__(self, index, grad, weight):
        """One step of a weight, or of each in a list."""
        if not isinstance(index, (list, tuple)):
            index, grad, weight = [index], [grad], [weight]
        for i, g, w in zip(index, grad, weight, strict=True):
            self.optimizer.update_multi_precision(i, w, g, self.state(i, w))

    def state(self, index, weight):
        """The state of a weight, made when it is met first; it moves with its weight."""
        if index not in self.states:
            make = self.optimizer.create_state_multi_precision
            self.states[index] = make(index, weight)
        state = self.states[index]
        if any(a.data.device != weight.data.device for a in states_in(state)):
            state = self.states[index] = _moved(state, weight.context)
        return state


def _moved(state, context):
    """What `create_state` gave, on another device."""
    if isinstance(state, tuple):
        return tuple(_moved(part, context) for part in state)
    return state if state is None else state.as_in_context(context)


def get_updater(optimizer):
    """The function (index, gradient, weight) that updates weights with an optimiser."""
    return Updater(optimizer)


def __dir__():
    return own_names(globals())
