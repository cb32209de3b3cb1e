"""Made by tools/make_stubs.py of the operators' records; for editors, never run."""

from typing import Any, TypeVar

Same = TypeVar("Same")

class Random:
    """The functions of `random`: distributions, choices, `seed`."""
    @staticmethod
    def seed(seed_state, ctx: Any = "all") -> None:
        """Start the random numbers anew: the same seed gives the same numbers."""
    def __init__(self, interpret) -> None: ...
    def uniform(
        self, low: Any = 0.0, high: Any = 1.0, shape=None, dtype=None, ctx=None, out=None
    ) -> Any:
        """Numbers that are equally likely anywhere in [low, high)."""
    def normal(
        self, loc: Any = 0.0, scale: Any = 1.0, shape=None, dtype=None, ctx=None, out=None
    ) -> Any:
        """Numbers with the normal distribution around loc."""
    def randn(self, *shape, loc: Any = 0.0, scale: Any = 1.0, dtype=None, ctx=None) -> Any:
        """Numbers with the normal distribution, the shape given as numbers."""
    def randint(self, low, high, shape=None, dtype=None, ctx=None, out=None) -> Any:
        """Whole numbers that are equally likely in [low, high)."""
    def exponential(self, scale: Any = 1.0, shape=None, dtype=None, ctx=None, out=None) -> Any:
        """Waiting times with the mean `scale`."""
    def gamma(
        self, alpha: Any = 1.0, beta: Any = 1.0, shape=None, dtype=None, ctx=None, out=None
    ) -> Any:
        """Numbers with the gamma distribution of shape alpha and scale beta."""
    def poisson(self, lam: Any = 1.0, shape=None, dtype=None, ctx=None, out=None) -> Any:
        """Counts of events of which lam are expected, as float32 unless told."""
    def negative_binomial(
        self, k: Any = 1, p: Any = 1, shape=None, dtype=None, ctx=None, out=None
    ) -> Any:
        """Failures before success number k, of probability p each."""
    def generalized_negative_binomial(
        self, mu: Any = 1, alpha: Any = 1, shape=None, dtype=None, ctx=None, out=None
    ) -> Any:
        """Counts with mean mu and variance mu + alpha mu^2."""
    def multinomial(
        self, data, shape: Any = (), get_prob: Any = False, out=None, dtype: Any = "int32"
    ) -> Any:
        """Places drawn with the probabilities in each row of the data."""
    def shuffle(self, data, out=None) -> Any:
        """The rows (axis 0) in random order, as a new array."""
    def __getattr__(self, name) -> Any: ...
