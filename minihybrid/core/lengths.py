"""Chapter 29. Symbolic lengths: integers that remember their expression in input lengths.

Defines: `Length`, an int that tracks arithmetic; `symbolic`, inside which it prints as an
         expression; `marked`, input shapes with symbols for the dynamic axes.

A plan is still made for known lengths, so every integer in it has a value. But its kernels
contain `len_batch * 64` where a static plan contains 2048, and take `len_batch` as an
argument: another length yields the same source, which is compiled already. If code converts
a length to a plain integer or branches on it, that kernel's source differs, and is compiled
for this length.
Limits: each new length is traced; without a trace, each such decision would need a guard.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from minihybrid.core.op import AttrError, Spec, legible

SYMBOLS: ContextVar[dict | None] = ContextVar("SYMBOLS", default=None)  # symbols printed so far


@contextmanager
def symbolic() -> Iterator[dict]:
    """Print lengths as expressions in f-strings inside this `with` block.

    Returns: name -> current value of every symbol printed.

    >>> n = Length.of("n", 32)
    >>> with symbolic() as used:
    ...     f"{n * 64 + 1}, {n * 64 // 8}, {n // 5}"
    '(n * 64 + 1), (n * 8), (n // 5)'
    >>> used
    {'n': 32}
    >>> f"{n * 64 + 1}"
    '2049'
    """
    token = SYMBOLS.set({})
    try:
        yield SYMBOLS.get()  # type: ignore[misc]
    finally:
        SYMBOLS.reset(token)


def terms_of(n: int) -> dict:
    """Return the polynomial of an integer."""
    return n.terms if isinstance(n, Length) else {(): int(n)}


def sums(a: dict, b: dict) -> dict:
    """a + b"""
    return a | {factors: a.get(factors, 0) + c for factors, c in b.items()}


def differences(a: dict, b: dict) -> dict:
    """a - b"""
    return sums(a, {factors: -c for factors, c in b.items()})


def products(a: dict, b: dict) -> dict:
    """a * b"""
    out: dict = {}
    for f, c in a.items():
        for g, d in b.items():
            out = sums(out, {tuple(sorted(f + g)): c * d})
    return out


def quotients(a: dict, b: dict) -> dict:
    """a // b: termwise if every term is divisible, else one opaque factor"""
    if len(b) == 1:
        ((divisor, d),) = b.items()
        out: dict | None = {}
        for factors, c in a.items():
            rest = list(factors)
            for factor in divisor:
                if factor in rest:
                    rest.remove(factor)
                else:
                    out = None
            if out is None or c % d:
                break
            out[tuple(rest)] = c // d
        else:
            return out  # type: ignore[return-value]
    return {(f"({polynomial_text(a)} // {polynomial_text(b)})",): 1}


def rests(a: dict, b: dict) -> dict:
    """a % b"""
    return differences(a, products(quotients(a, b), b))


def operation(value: Callable, terms: Callable, reflected: bool = False) -> Callable:
    """Return the method of a `Length` for an operation on two integers.

    value:   computes the result;  terms: the result's polynomial, from those of both.
    """

    def method(self: Any, other: Any) -> Any:
        if not isinstance(other, int):
            return NotImplemented
        a, b = (other, self) if reflected else (self, other)
        symbols = getattr(a, "symbols", {}) | getattr(b, "symbols", {})
        return Length.from_terms(terms(terms_of(a), terms_of(b)), symbols, value(int(a), int(b)))

    return method


class Length(int):
    """An int together with the polynomial in symbols that it is the value of.

    terms:   sorted factors -> coefficient; a factor is a name, or the text of a quotient.
    symbols: name -> current value, for the symbols in `terms`.
    """

    terms: dict
    symbols: dict

    @classmethod
    def of(cls, name: str, value: int) -> "Length":
        """Return the symbol itself."""
        return cls.from_terms({(name,): 1}, {name: int(value)}, value)

    @classmethod
    def from_terms(cls, terms: dict, symbols: dict, value: int) -> Any:
        """Return the value of a polynomial; a plain int if it is constant."""
        terms = {factors: c for factors, c in terms.items() if c}
        if not any(terms):  # only the constant term, ()
            return int(value)
        self = int.__new__(cls, value)
        self.terms, self.symbols = terms, symbols
        return self

    @property
    def text(self) -> str:
        """The expression, in parentheses unless it is a name."""
        parts = []
        for factors, c in sorted(self.terms.items(), key=lambda term: (-len(term[0]), term[0])):
            size = [str(abs(c))] if abs(c) != 1 or not factors else []
            parts.append(f"{'-' if c < 0 else '+'} {' * '.join([*factors, *size])}")
        text = " ".join(parts).removeprefix("+ ")
        ((factors, c), *more) = self.terms.items()  # a lone name or quotient
        return text if (len(factors), c, more) == (1, 1, []) else f"({text})"

    def __format__(self, spec: str) -> str:
        used = SYMBOLS.get()
        if used is None or spec:
            return format(int(self), spec)
        used.update(self.symbols)
        return self.text

    def __repr__(self) -> str:
        return f"{self}"

    __str__ = __repr__

    def __reduce__(self) -> tuple:  # a copy or a pickle is a plain integer
        return int, (int(self),)

    def __neg__(self) -> Any:
        return self * -1

    __add__ = __radd__ = operation(int.__add__, sums)
    __sub__ = operation(int.__sub__, differences)
    __rsub__ = operation(int.__sub__, differences, reflected=True)
    __mul__ = __rmul__ = operation(int.__mul__, products)
    __floordiv__ = operation(int.__floordiv__, quotients)
    __rfloordiv__ = operation(int.__floordiv__, quotients, reflected=True)
    __mod__ = operation(int.__mod__, rests)

    def __rtruediv__(self, other: Any) -> float:
        if type(other) not in (int, float):
            return NotImplemented
        with symbolic():
            text = f"({other!r} / {self})"
        return Ratio.of(text, other / int(self), self.symbols)

    @property
    def ratio(self) -> "Ratio":
        """This length as a float."""
        return Ratio.of(self.text, int(self), self.symbols)


class Ratio(float):
    """A float that is a length or a quotient by one, such as the mean's 1 / n."""

    text: str
    symbols: dict

    @classmethod
    def of(cls, text: str, value: float, symbols: dict) -> "Ratio":
        """Return a float with its expression."""
        self = cls(value)
        self.text, self.symbols = text, symbols
        return self

    def __repr__(self) -> str:
        used = SYMBOLS.get()
        if used is None:
            return float.__repr__(self)
        used.update(self.symbols)
        return self.text

    def __reduce__(self) -> tuple:
        return float, (float.__float__(self),)


def is_symbolic(number: Any) -> bool:
    """Return whether a number now prints as an expression."""
    return SYMBOLS.get() is not None and isinstance(number, Length | Ratio)


def polynomial_text(terms: dict) -> str:
    """Return a polynomial as text."""
    plain = terms.get((), 0) if not any(terms) else None
    return str(plain) if plain is not None else Length.from_terms(terms, {}, 0).text


# -- marks -----------------------------------------------------------------------------
def marks_of(dynamic: Any) -> Any:
    """Normalize `hybridize(dynamic=...)`: axis -> symbol for all inputs, or a list of these.

    Raises:  AttrError for anything else.

    >>> marks_of("batch"), marks_of([{0: "n"}, None])
    ({0: 'batch'}, [{0: 'n'}, {}])
    """
    if dynamic is None or dynamic == "batch":
        return {0: "batch"} if dynamic else None
    if isinstance(dynamic, list | tuple):
        return [marks_of(each) or {} for each in dynamic]
    if isinstance(dynamic, dict) and all(
        type(axis) is int and isinstance(name, str) and name.isidentifier()
        for axis, name in dynamic.items()
    ):
        return dict(dynamic)
    raise AttrError(
        f"hybridize: dynamic={legible(repr(dynamic))}, but 'batch', a dict of axes and names such "
        "as {0: 'n'}, or a list with one of these for each input is needed"
    )


def marked(specs: dict, marks: Any, title: str) -> dict:
    """Return name -> Spec of each input, with symbols for the dynamic axes.

    Raises:  AttrError if one symbol would have two lengths.
    """
    values: dict = {}
    out = {}
    for i, (name, (shape, dtype)) in enumerate(specs.items()):
        axes = marks if isinstance(marks, dict) else marks[i] if i < len(marks) else {}
        lengths = list(shape)
        for axis, symbol in axes.items():
            if not -len(shape) <= axis < len(shape):
                continue  # such as the states of an RNN cell
            n, first = values.setdefault(symbol, (shape[axis], f"{name}.shape[{axis}]"))
            if n != shape[axis]:
                raise AttrError(
                    f"{title}: '{symbol}' is {n} in {first} and {shape[axis]} in "
                    f"{name}.shape[{axis}], but equal symbols need equal lengths; mark the axes of "
                    "each input, as in dynamic=[{0: 'n'}, {1: 'n'}]"
                )
            lengths[axis] = Length.of(f"len_{symbol}", n)
        out[name] = Spec(tuple(lengths), dtype)
    return out
