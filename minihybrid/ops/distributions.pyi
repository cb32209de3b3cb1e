"""Made by tools/make_stubs.py of the operators' records; for editors, never run."""

from typing import Any, TypeVar

Same = TypeVar("Same")

class Random:
    """The functions of `random`: distributions, choices, `seed`."""
    @staticmethod
    def seed(seed_state, ctx: Any = "all") -> None:
        """Seed the generator: the same seed reproduces the same samples."""
    def __init__(self, interpret) -> None: ...
    def uniform(
        self, low: Any = 0.0, high: Any = 1.0, shape=None, dtype=None, ctx=None, out=None
    ) -> Any:
        """Draw from the uniform distribution on [low, high)."""
    def normal(
        self, loc: Any = 0.0, scale: Any = 1.0, shape=None, dtype=None, ctx=None, out=None
    ) -> Any:
        """Draw from the normal distribution."""
    def randn(self, *shape, loc: Any = 0.0, scale: Any = 1.0, dtype=None, ctx=None) -> Any:
        """Draw from the normal distribution; the shape is given as integers."""
    def randint(self, low, high, shape=None, dtype=None, ctx=None, out=None) -> Any:
        """Draw integers uniformly from [low, high)."""
    def exponential(self, scale: Any = 1.0, shape=None, dtype=None, ctx=None, out=None) -> Any:
        """Draw from the exponential distribution with mean `scale`."""
    def gamma(
        self, alpha: Any = 1.0, beta: Any = 1.0, shape=None, dtype=None, ctx=None, out=None
    ) -> Any:
        """Draw from the gamma distribution with shape alpha and scale beta."""
    def poisson(self, lam: Any = 1.0, shape=None, dtype=None, ctx=None, out=None) -> Any:
        """Draw from the Poisson distribution with mean lam; float32 by default."""
    def negative_binomial(
        self, k: Any = 1, p: Any = 1, shape=None, dtype=None, ctx=None, out=None
    ) -> Any:
        """Draw from the negative binomial distribution: failures before k successes."""
    def generalized_negative_binomial(
        self, mu: Any = 1, alpha: Any = 1, shape=None, dtype=None, ctx=None, out=None
    ) -> Any:
        """Draw from a negative binomial with mean mu and variance mu + alpha mu^2."""
    def multinomial(
        self, data, shape: Any = (), get_prob: Any = False, out=None, dtype: Any = "int32"
    ) -> Any:
        """Draw indices with the probabilities in each row of the data."""
    def shuffle(self, data, out=None) -> Any:
        """Return a copy with the rows (axis 0) in random order."""
    def __getattr__(self, name) -> Any: ...
