"""`nd.random` and `sym.random`: one set of functions for arrays and symbols.

Limits: there is one random stream.
"""

from minihybrid.core.checked_call import naming
from minihybrid.core.context import check_context
from minihybrid.core.op import AttrError, checked, positive
from minihybrid.ops.infix import Value, put, writable
from minihybrid.ops.random import seed
from minihybrid.ops.registry import OPS


class Random:
    """The functions of `random`: distributions, choices, `seed`.

    A parameter may be an array; then each of its elements gets a block of `shape`.
    """

    seed = staticmethod(seed)

    def __init__(self, interpret):
        self._interpret = interpret

    def _draw(self, name, params, shape, dtype, ctx, out):
        if out is not None:
            shape = writable(f"random.{name}", out).shape if shape is None else shape
        attrs = {k: v for k, v in (("shape", shape), ("dtype", dtype)) if v is not None}
        if any(isinstance(v, Value) for v in params.values()):
            if f"_sample_{name}" not in OPS:
                raise AttrError(
                    f"random.{name}: {', '.join(params)} must be numbers, found an array"
                )
            if not all(isinstance(v, Value) for v in params.values()):
                raise AttrError(
                    f"random.{name}: {', '.join(params)} must all be arrays or all be numbers"
                )
            result = OPS[f"_sample_{name}"](*params.values(), **attrs)
        else:
            op = OPS[f"_random_{name}"]
            with check_context(ctx):
                result = self._interpret(op, [], op.normalize(params | attrs))
        return put(f"random.{name}", result, out)

    def uniform(self, low=0.0, high=1.0, shape=None, dtype=None, ctx=None, out=None):
        """Draw from the uniform distribution on [low, high)."""
        return self._draw("uniform", {"low": low, "high": high}, shape, dtype, ctx, out)

    def normal(self, loc=0.0, scale=1.0, shape=None, dtype=None, ctx=None, out=None):
        """Draw from the normal distribution."""
        return self._draw("normal", {"loc": loc, "scale": scale}, shape, dtype, ctx, out)

    def randn(self, *shape, loc=0.0, scale=1.0, dtype=None, ctx=None):
        """Draw from the normal distribution; the shape is given as integers."""
        return self.normal(loc, scale, shape or None, dtype, ctx)

    def randint(self, low, high, shape=None, dtype=None, ctx=None, out=None):
        """Draw integers uniformly from [low, high)."""
        return self._draw("randint", {"low": low, "high": high}, shape, dtype, ctx, out)

    def exponential(self, scale=1.0, shape=None, dtype=None, ctx=None, out=None):
        """Draw from the exponential distribution with mean `scale`."""
        scale = (
            scale
            if isinstance(scale, Value)
            else checked("random.exponential", "scale", scale, positive)
        )
        return self._draw("exponential", {"lam": 1.0 / scale}, shape, dtype, ctx, out)

    def gamma(self, alpha=1.0, beta=1.0, shape=None, dtype=None, ctx=None, out=None):
        """Draw from the gamma distribution with shape alpha and scale beta."""
        return self._draw("gamma", {"alpha": alpha, "beta": beta}, shape, dtype, ctx, out)

    def poisson(self, lam=1.0, shape=None, dtype=None, ctx=None, out=None):
        """Draw from the Poisson distribution with mean lam; float32 by default."""
        return self._draw("poisson", {"lam": lam}, shape, dtype, ctx, out)

    def negative_binomial(self, k=1, p=1, shape=None, dtype=None, ctx=None, out=None):
        """Draw from the negative binomial distribution: failures before k successes."""
        return self._draw("negative_binomial", {"k": k, "p": p}, shape, dtype, ctx, out)

    def generalized_negative_binomial(
        self, mu=1, alpha=1, shape=None, dtype=None, ctx=None, out=None
    ):
        """Draw from a negative binomial with mean mu and variance mu + alpha mu^2."""
        return self._draw(
            "generalized_negative_binomial", {"mu": mu, "alpha": alpha}, shape, dtype, ctx, out
        )

    def multinomial(self, data, shape=(), get_prob=False, out=None, dtype="int32"):
        """Draw indices with the probabilities in each row of the data.

        Shapes:  (K,) or (N, K) -> `shape` per row; a single index if it is ().
        """
        result = OPS["_sample_multinomial"](data, shape=shape, get_prob=get_prob, dtype=dtype)
        return put("random.multinomial", result, out)

    def shuffle(self, data, out=None):
        """Return a copy with the rows (axis 0) in random order."""
        result = OPS["_shuffle"](data)
        return put("random.shuffle", result, out)

    def __getattr__(self, name):
        """Return `uniform_like(data, low, high)` and the other `_like` forms."""
        if name.endswith("_like") and f"_random_{name}" in OPS:
            return OPS[f"_random_{name}"]
        raise AttributeError(f"random has no function '{name}'")


for _name, _draw in list(vars(Random).items()):
    if not _name.startswith("_") and _name != "seed":
        setattr(Random, _name, naming(f"random.{_name}", _draw))
