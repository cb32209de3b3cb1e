"""Chapter 07. Optimizers: update rules for weights.

Defines: `SGD`, `NAG`, `Adam`, `AdamW`, `RMSProp`, `AdaGrad`, `AdaDelta`, `Adamax`,
         `Nadam`, `FTML`, `Ftrl`, `Signum`, `LAMB`, `LARS`, `DCASGD`, `SGLD`,
         `GroupAdaGrad`, `LBSGD`; `create`, `register`, `Updater`.

An optimizer is one `rule`, written with operators: it runs eagerly on the arrays of one
weight, and the Trainer traces it over all weights into one compiled call.
Source:  the rules, names, defaults and results are those of MXNet 1.9.1.
Not supported: sparse gradients.
"""

import math
from types import SimpleNamespace

import numpy as np

from minihybrid.core import nd
from minihybrid.core.array import arrays
from minihybrid.core.checked_call import Settings
from minihybrid.core.hooks import own_names
from minihybrid.core.nd import NDArray
from minihybrid.core.op import (
    AttrError,
    ShapeError,
    checked,
    choice,
    count,
    finite,
    length,
    not_negative,
    optional,
    positive,
    rate,
    share,
    unfit,
)
from minihybrid.ops.elementwise import abs_, clip, ones_like, sign, sqrt, square, where, zeros_like
from minihybrid.ops.infix import FUNCTIONS, absent
from minihybrid.ops.layout import reshape
from minihybrid.ops.reduce import mean, sum_
from minihybrid.runtime.overwrites import overwrite

maximum, minimum = FUNCTIONS["maximum"], FUNCTIONS["minimum"]


def _names(value):
    """A dict from index to name."""
    if not all(isinstance(name, str) for name in dict(value).values()):
        raise ValueError
    return dict(value)


def moving_mean(mean, new, share):
    """Return the updated moving mean of values, of which the old one has this share."""
    return mean * share + new * (1 - share)


class Optimizer(Settings):
    """The base class: learning rate, weight decay, and update counts.

    rescale_grad:   a factor for every gradient, usually 1 / batch size.
    clip_gradient:  then each element is clipped to [-clip_gradient, clip_gradient].
    wd:             weight decay: wd * weight is added to the gradient.
    lr_scheduler:   the learning rate as a function of the number of updates.
    param_dict:     index -> Parameter, whose lr_mult and wd_mult apply.

    A subclass defines `n_states`, `rule` and, if scalars change over time, `rates`. A
    subclass may override `update` and `create_state` instead, and isn't compiled then.
    With `decay_first`, the weight decay is added before clipping.

    >>> w, g = nd.array([1.0]), nd.array([0.5])
    >>> SGD(learning_rate=0.1).update(0, w, g, None); w.asnumpy()
    array([0.95], dtype=float32)
    """

    n_states, decay_first = 0, False
    KINDS = {
        **dict.fromkeys("lr wd rescale_grad".split(), finite),
        "momentum": share,
        **dict.fromkeys("clip_gradient clip_weights".split(), optional(positive)),
        **dict.fromkeys("beta1 beta2".split(), rate),
        **dict.fromkeys("gamma1 gamma2 rho".split(), share),
        "epsilon": not_negative,
        "begin_num_update": length,
        "idx2name": _names,
    }
    CALLED = {"lr": "learning_rate", "idx2name": "param_idx2name"}
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
        self.idx2name = {} if param_idx2name is None else param_idx2name
        self.param_dict = param_dict or {}
        self._symbol_attrs = sym.attr_dict() if sym is not None else {}
        self.set_lr_mult({})
        self.set_wd_mult({})

    def __repr__(self):
        fields = {"learning_rate": self.learning_rate}
        fields |= {name: vars(self).get(name) for name in self.KINDS if name not in self.CALLED}
        usual = {"rescale_grad": 1}  # the others default to 0 (off)
        settings = [
            f"{k}={v if isinstance(v, str) else format(v, 'g')}"
            for k, v in fields.items()
            if v and v != usual.get(k)
        ]
        if self.lr_scheduler is not None:
            settings.append(f"lr_scheduler={type(self.lr_scheduler).__name__}")
        return f"{type(self).__name__}({', '.join(settings)})"

    # -- update rule
    def rule(self, weight, grad, *states, lr, wd):
        """Return (new weight, *new states), computed with operators.

        grad:    already rescaled and clipped; with `decay_first`, it includes the weight
                 decay, and the rule has no `wd`.
        lr, wd:  inputs of shape (1,), like all `rates`, so that new values don't retrace.
        """
        raise NotImplementedError(
            f"{type(self).__name__}: write rule(self, weight, grad, *states, lr, wd)"
        )

    def rates(self, index):
        """Return name -> scalar: the inputs of `rule` that depend on time or weight."""
        return {"lr": self._get_lr(index), "wd": self._get_wd(index)}

    def numbers(self, index):
        """Return name -> scalar: all scalar inputs of one compiled step."""
        return {"rescale_grad": self.rescale_grad, **self.rates(index)}

    def apply(self, weight, grad, states, numbers):
        """Rescale and clip the gradient, then apply the rule, on arrays or symbols."""
        numbers = dict(numbers)
        grad = grad * numbers.pop("rescale_grad")
        if self.decay_first:
            grad = grad + weight * numbers.pop("wd")
        if self.clip_gradient:
            grad = clip(grad, -self.clip_gradient, self.clip_gradient)
        return self.rule(weight, grad, *states, **numbers)

    def settings(self, names):
        """Return a snapshot of these attributes, for guards."""
        attrs = vars(self)
        return tuple([frozen(attrs.get(name)) for name in names])

    def watched(self):
        """Return (a proxy of the optimizer, the set of its attributes that were read).

        A traced rule contains their values as constants; if one changes, it is retraced.
        """

        class Watched(type(self)):
            __slots__ = ("read",)  # per instance, because classes are freed late

            def __getattribute__(self, name):
                if name in object.__getattribute__(self, "__dict__"):
                    object.__getattribute__(self, "read").add(name)
                return super().__getattribute__(name)

        twin = object.__new__(Watched)
        object.__setattr__(twin, "__dict__", vars(self))
        object.__setattr__(twin, "read", set())
        return twin, twin.read

    # -- update of one weight
    def create_state(self, index, weight):
        """Return the state of one weight: None, an array or a tuple, initially zeros."""
        like = weight.shape, weight.context, weight.dtype
        states = tuple(nd.zeros(*like) for _ in range(self.n_states))
        return states if len(states) > 1 else states[0] if states else None

    def update(self, index, weight, grad, state):
        """Update one weight and its `state` (from `create_state`) in place."""
        grad = self._gradient(weight, grad)
        self._update_count(index)
        self._apply_to(weight, grad, state, self.numbers(index))

    def _gradient(self, weight, grad):
        """Return a weight's gradient, off the tape.

        Raises:  AttrError unless both are arrays; ShapeError unless they have one shape.
        """
        weight, grad = arrays(f"{type(self).__name__}.update", [weight, grad])
        if grad.shape != weight.shape:
            raise ShapeError(
                f"{type(self).__name__}.update: the gradient has shape {grad.shape}, but the "
                f"weight's shape {weight.shape} is needed"
            )
        return grad.detach()

    def _apply_to(self, weight, grad, state, numbers):
        """Apply the rule to a weight and its state, in place."""
        numbers = {k: nd.array([v], weight.context, weight.dtype) for k, v in numbers.items()}
        states = states_in(state)
        new = self.apply(weight.detach(), grad, states, numbers)
        # States first: a new state may alias the old weight.
        for array, value in reversed(list(zip((weight, *states), new, strict=True))):
            overwrite(array, value.data)

    def create_state_multi_precision(self, index, weight):
        """Return the state; for a 16-bit weight in mixed precision, (float32 copy, state)."""
        if not self._is_mixed(weight):
            return self.create_state(index, weight)
        master = weight.detach().astype("float32")
        return master, self.create_state(index, master)

    def update_multi_precision(self, index, weight, grad, state):
        """Update one weight; in mixed precision, 16-bit weights are updated in float32."""
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
        """The current learning rate, from the schedule if there is one."""
        return self.lr_scheduler(self.num_update) if self.lr_scheduler else self.lr

    def set_learning_rate(self, lr):
        """Set the learning rate.

        Raises:  AttrError if there's a schedule.
        """
        if self.lr_scheduler is not None:
            raise AttrError(
                "set_learning_rate: the optimizer's lr_scheduler decides "
                "the learning rate; change the scheduler's base_lr instead"
            )
        self.lr = lr

    def set_lr_mult(self, args_lr_mult):
        """Set factors of the learning rate, by weight name or index."""
        self.lr_mult = self._from_symbol("__lr_mult__") | args_lr_mult

    def set_wd_mult(self, args_wd_mult):
        """Set factors of the weight decay, by weight name or index.

        The factor is 0 for known names that end neither in _weight nor in _gamma.
        """
        plain = {n: 0.0 for n in self.idx2name.values() if not n.endswith(("_weight", "_gamma"))}
        self.wd_mult = plain | self._from_symbol("__wd_mult__") | args_wd_mult

    def _from_symbol(self, key):
        return {name: float(a[key]) for name, a in self._symbol_attrs.items() if key in a}

    def _factor(self, index, kind):
        """Return a weight's lr_mult or wd_mult: its Parameter's, or by index or name."""
        factors = getattr(self, kind)
        if index in self.param_dict:
            return getattr(self.param_dict[index], kind)
        return factors.get(index, factors.get(self.idx2name.get(index), 1.0))

    def _get_lr(self, index):
        return self.learning_rate * self._factor(index, "lr_mult")

    def _get_wd(self, index):
        return self.wd * self._factor(index, "wd_mult")

    def _update_count(self, index):
        """Increment the update count of a weight, or of each in a list."""
        for i in index if isinstance(index, (list, tuple)) else [index]:
            count = self._index_update_count.get(i, self.begin_num_update) + 1
            self._index_update_count[i] = count
            self.num_update = max(count, self.num_update)

    # -- by name
    opt_registry = {}

    @staticmethod
    def register(klass):
        """Register a class under its lower-case name (a decorator)."""
        if not isinstance(klass, type):
            raise unfit("optimizer.register", "", klass, "a class is needed")
        Optimizer.opt_registry[klass.__name__.lower()] = klass
        return klass

    @staticmethod
    def create_optimizer(name, **kwargs):
        """Create an optimizer by its case-insensitive name, with these settings.

        Raises:  AttrError for an unknown name or setting.
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
    """Return a hashable snapshot of a setting, equal only for identical values.

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
    return value or repr(value)  # distinguishes 0.0 from -0.0


def states_in(state):
    """Return the arrays in a state: None, an array, or nested tuples."""
    if state is None or isinstance(state, NDArray):
        return () if state is None else (state,)
    if not isinstance(state, (list, tuple)):
        need = "None, an NDArray or a tuple of them is needed"
        raise unfit("an optimizer", "state", state, need)
    return tuple(array for part in state for array in states_in(part))


# -- the rules -------------------------------------------------------------------------
class SGD(Optimizer):
    """Stochastic gradient descent: w -= lr (g + wd w).

    With momentum, m = momentum m - lr (g + wd w); w += m.
    """

    def __init__(self, momentum=0.0, lazy_update=True, **kwargs):
        super().__init__(**kwargs)
        self.momentum, self.lazy_update = momentum, lazy_update

    n_states = property(lambda self: int(self.momentum != 0))

    def rule(self, weight, grad, *mom, lr, wd):
        """Compute one step."""
        step = (grad + weight * wd) * lr
        if not mom:
            return (weight - step,)
        m = mom[0] * self.momentum - step
        return weight + m, m


class NAG(SGD):
    """Nesterov's accelerated gradient: SGD with a look-ahead of one momentum step.

    g += wd w;   m = momentum m - lr g;   w += momentum m - lr g
    Source:  Sutskever, Martens, Dahl and Hinton, ICML 2013. MXNet 1.9.1 overwrites w
             before it computes m, so m decays by the new w; here, by the old one.
    """

    def rule(self, weight, grad, *mom, lr, wd):
        """Compute one step."""
        step = (grad + weight * wd) * lr
        if not mom:
            return (weight - step,)
        m = mom[0] * self.momentum - step
        return weight + (m * self.momentum - step), m


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
        """Return the bias correction for zero-initialized means, in update t of this weight."""
        t = self._index_update_count[index]
        return math.sqrt(1 - self.beta2**t) / (1 - self.beta1**t)

    def rates(self, index):
        """Return the scalars, with a bias-corrected learning rate."""
        rates = super().rates(index)
        return rates | {"lr": rates["lr"] * self.correction(index)}

    def moments(self, grad, mean, var):
        """Return the updated running means of the gradients and of their squares."""
        mean = moving_mean(mean, grad, self.beta1)
        return mean, moving_mean(var, square(grad), self.beta2)

    def rule(self, weight, grad, mean, var, lr):
        """Compute one step."""
        mean, var = self.moments(grad, mean, var)
        return weight - mean * lr / (sqrt(var) + self.epsilon), mean, var


class AdamW(Adam):
    """Adam with decoupled weight decay: w -= lr (step + wd w).

    correct_bias:  correct the step for zero-initialized means.
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
        """Return the scalars; bias correction applies to the step, not to the weight decay."""
        return {
            "lr": self._get_lr(index),
            "wd": self._get_wd(index),
            "correct": self.correction(index) if self.correct_bias else 1.0,
        }

    def rule(self, weight, grad, mean, var, lr, wd, correct):
        """Compute one step."""
        mean, var = self.moments(grad, mean, var)
        step = mean * correct / (sqrt(var) + self.epsilon)
        return weight - (step + weight * wd) * lr, mean, var


class RMSProp(Optimizer):
    """Steps by the gradient over the root of the mean of its squares.

    g += wd w;   n = gamma1 n + (1 - gamma1) g^2;   w -= lr g / sqrt(n + epsilon)

    centered:      subtract the squared mean gradient from n, and use a momentum of
                   gamma2 for the steps.
    clip_weights:  then clip each weight to [-clip_weights, clip_weights].
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

    def rule(self, weight, grad, n, *rest, lr):
        """Compute one step."""
        n = moving_mean(n, square(grad), self.gamma1)
        if rest:
            g = moving_mean(rest[0], grad, self.gamma1)
            # For constant gradients, the difference is 0, or negative by rounding.
            spread = sqrt(maximum(n - square(g), 0.0) + self.epsilon)
            step = rest[1] * self.gamma2 - grad * lr / spread
            weight, rest = weight + step, (g, step)
        else:
            weight = weight - grad * lr / sqrt(n + self.epsilon)
        if self.clip_weights:
            weight = clip(weight, -self.clip_weights, self.clip_weights)
        return weight, n, *rest


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
        """Compute one step."""
        history = history + square(grad)
        step = grad / sqrt(history + self.float_stable_eps)
        return weight - (step + weight * wd) * lr, history


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
        """Return the scalars; there's no learning rate."""
        return {"wd": self._get_wd(index)}

    def rule(self, weight, grad, acc_g, acc_delta, wd):
        """Compute one step."""
        acc_g = moving_mean(acc_g, square(grad), self.rho)
        step = sqrt(acc_delta + self.epsilon) / sqrt(acc_g + self.epsilon) * grad
        acc_delta = moving_mean(acc_delta, square(step), self.rho)
        return weight - (step + weight * wd), acc_g, acc_delta


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
        """Return the scalars, with a learning rate corrected for the zero-initialized mean."""
        rates, t = super().rates(index), self._index_update_count[index]
        return rates | {"lr": rates["lr"] / (1 - self.beta1**t)}

    def rule(self, weight, grad, mean, top, lr):
        """Compute one step."""
        mean = moving_mean(mean, grad, self.beta1)
        top = maximum(top * self.beta2, abs_(grad))
        # Without a gradient so far, both are 0, and the quotient would be NaN from then on.
        step = where(top, mean * lr / top, zeros_like(top))
        return weight - step, mean, top


class Nadam(Adam):
    """Adam with Nesterov momentum, which increases over time.

    b(t) = beta1 (1 - 0.96^(t schedule_decay) / 2);   B(t) = b(1) b(2) ... b(t)
    g' = (1 - b(t)) g / (1 - B(t)) + b(t + 1) m / (1 - B(t + 1))
    w -= lr g' / (sqrt(v / (1 - beta2^t)) + epsilon)
    Source:  Dozat, ICLR 2016 workshop. MXNet 1.9.1 shares B among the weights, so that its
             steps depend on their number; here, each weight has its own.
    """

    KINDS = Optimizer.KINDS | {"schedule_decay": not_negative}

    def __init__(self, *args, schedule_decay=0.004, **kwargs):
        super().__init__(*args, **kwargs)
        self.schedule_decay = schedule_decay
        self._products = {}  # index -> (t, B(t)), a cache

    def momentum(self, t):
        """Return b(t) for a scalar or an array."""
        return self.beta1 * (1 - 0.5 * 0.96 ** (t * self.schedule_decay))

    def rates(self, index):
        """Return the factors of the gradient, of the mean and of the mean of squares."""
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
        """Compute one step."""
        mean, var = self.moments(grad, mean, var)
        step = (grad * of_grad + mean * of_mean) * lr
        return weight - step / (sqrt(var * of_var) + self.epsilon), mean, var


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
        """Return the inverse learning rate and the bias correction."""
        rates, t = super().rates(index), self._index_update_count[index]
        return rates | {
            "per_lr": (1 - self.beta1**t) / rates.pop("lr"),
            "of_var": 1 / (1 - self.beta2**t),
        }

    def rule(self, weight, grad, d, v, z, per_lr, of_var):
        """Compute one step."""
        v = moving_mean(v, square(grad), self.beta2)
        new = (sqrt(v * of_var) + self.epsilon) * per_lr
        z = z * self.beta1 + grad * (1 - self.beta1) - (new - d * self.beta1) * weight
        return -z / new, new, v, z


class Ftrl(Optimizer):
    """Follow the regularized leader: small accumulated gradients set weights to exactly 0.

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
        """Compute one step."""
        new = n + square(grad)
        z = z + grad - (sqrt(new) - sqrt(n)) * weight / lr
        step = (sign(z) * self.lamda1 - z) / ((sqrt(new) + self.beta) / lr + wd)
        return where(maximum(abs_(z) - self.lamda1, 0.0), step, zeros_like(step)), z, new


class Signum(Optimizer):
    """Steps of constant size: lr times the sign of the mean gradient.

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
        """Compute one step."""
        if not mom:
            return (weight - (weight * wd + sign(grad)) * lr,)
        m = mom[0] * self.momentum - (grad + weight * wd) * (1 - self.momentum)
        return weight + (sign(m) - weight * self.wd_lh) * lr, m


class LAMB(Adam):
    """Adam with steps proportional to each weight's norm, for large batches.

    g' = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon) + wd w
    w -= lr |w| / |g'| g';   where either is 0, w -= lr g'

    lower_bound, upper_bound:  bounds of |w| in the ratio.
    bias_correction:           correct zero-initialized means.
    Source:  You and others, ICLR 2020.
    """

    BOUNDS = "lower_bound", "upper_bound"
    KINDS = Optimizer.KINDS | dict.fromkeys(BOUNDS, optional(not_negative))
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
        """Return the scalars; bias correction applies to the means, not to the learning rate."""
        t = self._index_update_count[index] if self.bias_correction else math.inf
        corrections = {"of_mean": 1 / (1 - self.beta1**t), "of_var": 1 / (1 - self.beta2**t)}
        return Optimizer.rates(self, index) | corrections

    def rule(self, weight, grad, mean, var, lr, wd, of_mean, of_var):
        """Compute one step."""
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
    """Return the 2-norm, of shape (1,)."""
    return sqrt(sum_(square(reshape(array, shape=(-1,))), axis=0, keepdims=True))


class LARS(SGD):
    """SGD with steps proportional to each weight's norm, for large batches.

    lr' = lr eta |w| / (|g| + wd |w| + eps);   where |w| or |g| is 0, lr' = lr
    Weights whose known names end in gamma, beta or bias keep the learning rate.

    momentum_correction:  when the learning rate changes, scale the momentum by the ratio.
    Source:  You, Gitman and Ginsburg, arXiv:1708.03888; Goyal and others, arXiv:1706.02677.
    """

    KINDS = Optimizer.KINDS | {"eta": not_negative, "eps": not_negative}

    def __init__(
        self, momentum=0.0, lazy_update=True, eta=0.001, eps=0, momentum_correction=True, **kwargs
    ):
        super().__init__(momentum, lazy_update, **kwargs)
        self.eta, self.eps, self.momentum_correction = eta, eps, momentum_correction
        self._lrs = None  # (update, its learning rate, the previous one)

    def set_wd_mult(self, args_wd_mult):
        """Set factors of the weight decay, 0 for known names that don't end in _weight."""
        plain = {n: 0.0 for n in self.idx2name.values() if not n.endswith("_weight")}
        super().set_wd_mult(plain | args_wd_mult)

    def rates(self, index):
        """Return the scalars, whether to scale by norms, and the learning rate's change."""
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
        """Scale the learning rate by the norms of weight and unclipped gradient; apply the rule."""
        numbers = dict(numbers)
        layered, change = numbers.pop("layered"), numbers.pop("change")
        long, steep = norm_of(weight), norm_of(grad * numbers["rescale_grad"])
        share = long * self.eta / (steep + long * numbers["wd"] + self.eps)
        numbers["lr"] = numbers["lr"] * where(long * steep * layered, share, ones_like(share))
        return super().apply(weight, grad, [state * change for state in states], numbers)


class DCASGD(Optimizer):
    """Delay-compensated SGD, for gradients of an older weight.

    s = g + wd w + lamda g^2 (w - the previous weight);   w -= lr s
    With momentum, m = momentum m - lr s; w += m.
    Source:  Zheng and others, ICML 2017.
    """

    KINDS = Optimizer.KINDS | {"lamda": not_negative}

    def __init__(self, momentum=0.0, lamda=0.04, **kwargs):
        super().__init__(**kwargs)
        self.momentum, self.lamda = momentum, lamda

    def create_state(self, index, weight):
        """Return the previous weight and the momentum, if there is one."""
        before = weight.detach().copy()
        return (before, nd.zeros_like(before)) if self.momentum else before

    def rule(self, weight, grad, before, *mom, lr, wd):
        """Compute one step."""
        step = (grad + weight * wd + square(grad) * (weight - before) * self.lamda) * lr
        if not mom:
            return weight - step, weight
        m = mom[0] * self.momentum - step
        return weight + m, weight, m


class SGLD(Optimizer):
    """Stochastic gradient Langevin dynamics: the weights are samples from the posterior.

    w -= lr / 2 (g + wd w) - noise;   noise is normal with variance lr
    Source:  Welling and Teh, ICML 2011.
    """

    def update(self, index, weight, grad, state):
        """Update one weight, uncompiled because it draws random numbers."""
        super().update(index, weight, grad, state)

    def rule(self, weight, grad, lr, wd):
        """Compute one step."""
        noise = nd.random.normal(0, 1, weight.shape, weight.dtype, weight.context) * sqrt(lr)
        return (weight - (grad + weight * wd) * (lr / 2) + noise,)


class GroupAdaGrad(AdaGrad):
    """AdaGrad with one rate per row of a weight, such as a word's embedding.

    h += mean(g^2) of the row;   w -= lr g / sqrt(h + eps)
    Weights have two axes. Weight decay isn't supported.
    Source:  MXNet's mxnet.optimizer.contrib.
    """

    def __init__(self, eps=1e-5, **kwargs):
        super().__init__(eps, **kwargs)

    def create_state(self, index, weight):
        """Return the sum per row."""
        if weight.ndim != 2:
            raise ShapeError(
                f"GroupAdaGrad: a weight of shape {weight.shape}, but two axes are needed; other "
                "weights need another optimizer, such as AdaGrad"
            )
        return nd.zeros((weight.shape[0], 1), weight.context, weight.dtype)

    def rule(self, weight, grad, history, lr, wd):
        """Compute one step."""
        history = history + mean(square(grad), axis=1, keepdims=True)
        return weight - grad * lr / sqrt(history + self.float_stable_eps), history

    def rates(self, index):
        """Return the learning rate; reject weight decay."""
        rates = super().rates(index)
        if rates["wd"]:
            raise AttrError(f"GroupAdaGrad: wd={rates['wd']}, but it has no weight decay; give 0")
        return rates


class LBSGD(SGD):
    """SGD for large batches: accumulate the gradients of several updates, with a warm-up.

    batch_scale:   the number of updates that accumulate into one step.
    warmup_epochs, updates_per_epoch:  their product is the number of warm-up updates.
    warmup_strategy:  "linear", "power2" or "sqrt": increase the rate by up to batch_scale;
                   "lars": scale it by |w| / sqrt(|g|^2 + wd |w|^2), from 0.01 to 100.
    begin_epoch:   the first epoch;  num_epochs: ignored.
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
        self.init_updates = checked("LBSGD", "begin_epoch", begin_epoch, length) * updates_per_epoch
        self._gathered = {}  # index -> (number of updates, accumulated gradient)

    def update(self, index, weight, grad, state):
        """Accumulate or update one weight, uncompiled because it reads norms."""
        lr, wd = self._get_lr(index), self._get_wd(index)
        self._update_count(index)
        n, total = self._gathered.get(index, (self.init_updates, 0))
        n, total = n + 1, self._gradient(weight, grad) + total
        self._gathered[index] = n, total
        if n % self.batch_scale:
            return
        self._gathered[index] = n, 0
        grad = total / self.batch_scale
        lr = lr * self._grown(n, weight, grad, wd)
        numbers = {"rescale_grad": self.rescale_grad, "lr": lr, "wd": wd}
        self._apply_to(weight, grad, state, numbers)

    def _grown(self, n, weight, grad, wd):
        """Return the factor of the rate at update n."""
        if self.warmup_strategy == "lars":
            long, steep = ((a.detach() ** 2).sum().asscalar() for a in (weight, grad))
            return min(max(math.sqrt(long / (steep + wd * long + 1e-18)), 0.01), 100)
        last = self.warmup_epochs * self.updates_per_epoch
        if n >= last or last <= 1:
            return float(self.batch_scale) if n >= last else 1.0
        power = {"linear": 1, "power2": 2, "sqrt": 0.5}[self.warmup_strategy]
        return 1 + (self.batch_scale - 1) * (n / last) ** power


class ccSGD(SGD):
    """`SGD` under its old name."""


for _kind in list(globals().values()):
    if isinstance(_kind, type) and issubclass(_kind, Optimizer) and _kind is not Optimizer:
        register(_kind)
contrib = SimpleNamespace(GroupAdaGrad=GroupAdaGrad)  # as in MXNet


class Updater:
    """An optimizer with the states of its weights.

    >>> update = Updater(create("sgd", momentum=0.9))
    >>> update(0, nd.array([1.0]), nd.array([2.0])); len(update.states)
    1
    """

    def __init__(self, optimizer):
        self.optimizer, self.states = optimizer, {}

    def __call__(self, index, grad, weight):
        """Update a weight, or each weight in a list."""
        if not isinstance(index, (list, tuple)):
            index, grad, weight = [index], [grad], [weight]
        for i, g, w in zip(index, grad, weight, strict=True):
            self.optimizer.update_multi_precision(i, w, g, self.state(i, w))

    def state(self, index, weight):
        """Return a weight's state, created on first use and kept on the weight's device."""
        if index not in self.states:
            make = self.optimizer.create_state_multi_precision
            self.states[index] = make(index, weight)
        state = self.states[index]
        if any(a.data.device != weight.data.device for a in states_in(state)):
            state = self.states[index] = _moved(state, weight.context)
        return state


def _moved(state, context):
    """Copy a state to another device."""
    if isinstance(state, (list, tuple)):
        return type(state)(_moved(part, context) for part in state)
    return state if state is None else state.as_in_context(context)


def get_updater(optimizer):
    """Return a function (index, gradient, weight) that updates weights with an optimizer."""
    return Updater(optimizer)


__dir__ = own_names(globals())
