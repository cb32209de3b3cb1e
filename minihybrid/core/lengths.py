"""Chapter 29. Symbolic lengths: integers that remember how they follow from an input's shape.

Takes:   the length that an axis has now, and the name of its symbol.
Gives:   `Length`, an int that keeps track of arithmetic; `symbolic`, inside which it prints as
         text; `marked`, the shapes of inputs with symbols for the axes that a user marked.

A plan is still made for lengths that are known, so every integer in it is right. But its
kernels say `len_batch * 64` where a static plan says 2048, and take `len_batch` as an argument:
another length gives the same text, which is compiled already. Where code makes a plain integer
of a length, or decides by it, the text of that kernel differs, and is compiled for this length.
What is left out: plans made without a trace, for which each decision would be a guard.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from minihybrid.core.op import AttrError, Spec, legible

SYMBOLS: ContextVar[dict | None] = ContextVar("SYMBOLS", default=None)  # those that were printed


@contextmanager
def symbolic() -> Iterator[dict]:
    """Inside this `with` block, f-strings print a length as its expression.

    Gives:   name -> value now, of all symbols that were printed.

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


class Length(int):
    """An int, and the polynomial of symbols that it is the value of.

    terms:   (factors, sorted) -> coefficient; a factor is a name, or the text of a quotient.
    symbols: name -> its value now, of those in `terms`.
    """

    terms: dict
    symbols: dict

    @classmethod
    def of(cls, name: str, value: int) -> "Length":
        """The symbol itself."""
        return cls.made({(name,): 1}, {name: int(value)}, value)

    @classmethod
    def made(cls, terms: dict, symbols: dict, value: int) -> Any:
        """The value of a polynomial; a plain int if no symbol is left."""
        terms = {factors: c for factors, c in terms.items() if c}
        if not any(terms):  # only the constant, whose factors are ()
            return int(value)
        self = int.__new__(cls, value)
        self.terms, self.symbols = terms, symbols
        return self

    @property
    def text(self) -> str:
        """The expression, in brackets unless it is a name."""
        parts = []
        for factors, c in sorted(self.terms.items(), key=lambda term: (-len(term[0]), term[0])):
            size = [str(abs(c))] if abs(c) != 1 or not factors else []
            parts.append(f"{'-' if c < 0 else '+'} {' * '.join([*factors, *size])}")
        text = " ".join(parts).removeprefix("+ ")
        ((factors, c), *more) = self.terms.items()  # of a name or a quotient, the text itself
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

    def __add__(self, other: Any) -> Any:
        return combined(self, other, int.__add__, sums)

    def __sub__(self, other: Any) -> Any:
        return combined(self, other, int.__sub__, differences)

    def __rsub__(self, other: Any) -> Any:
        return combined(other, self, int.__sub__, differences)

    def __mul__(self, other: Any) -> Any:
        return combined(self, other, int.__mul__, products)

    def __floordiv__(self, other: Any) -> Any:
        return combined(self, other, int.__floordiv__, quotients)

    def __rfloordiv__(self, other: Any) -> Any:
        return combined(other, self, int.__floordiv__, quotients)

    def __mod__(self, other: Any) -> Any:
        return combined(self, other, int.__mod__, rests)

    def __rtruediv__(self, other: Any) -> float:
        if type(other) not in (int, float):
            return NotImplemented
        with symbolic():
            text = f"({other!r} / {self})"
        return Ratio.of(text, other / int(self), self.symbols)

    @property
    def ratio(self) -> "Ratio":
        """Itself as a float."""
        return Ratio.of(self.text, int(self), self.symbols)

    __radd__, __rmul__ = __add__, __mul__


class Ratio(float):
    """A float that is a length, or a number divided by one: the mean's 1 / n."""

    text: str
    symbols: dict

    @classmethod
    def of(cls, text: str, value: float, symbols: dict) -> "Ratio":
        """A float, and the expression that it is the value of."""
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
    """Whether a number prints as an expression here."""
    return SYMBOLS.get() is not None and isinstance(number, Length | Ratio)


def combined(a: Any, b: Any, value: Any, terms: Any) -> Any:
    """The result of an operation on two integers, at least one of them a `Length`."""
    if not isinstance(a, int) or not isinstance(b, int):
        return NotImplemented
    symbols = getattr(a, "symbols", {}) | getattr(b, "symbols", {})
    return Length.made(terms(terms_of(a), terms_of(b)), symbols, value(int(a), int(b)))


def terms_of(n: int) -> dict:
    """The polynomial of an integer."""
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
    """a // b: each term divided, where all of them can be; else one factor for the quotient."""
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
    return {(f"({shown(a)} // {shown(b)})",): 1}


def rests(a: dict, b: dict) -> dict:
    """a % b"""
    return differences(a, products(quotients(a, b), b))


def shown(terms: dict) -> str:
    """A polynomial as text."""
    plain = terms.get((), 0) if not any(terms) else None
    return str(plain) if plain is not None else Length.made(terms, {}, 0).text


# -- marks -----------------------------------------------------------------------------
def marks_of(dynamic: Any) -> Any:
    """What `hybridize(dynamic=...)` means: axis -> symbol, of every input, or a list of these.

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
    """name -> Spec of each input, with symbols for the axes that are marked.

    Raises:  AttrError if one symbol would have two lengths.
    """
    values: dict = {}
    out = {}
    for i, (name, (shape, dtype)) in enumerate(specs.items()):
        own = marks if isinstance(marks, dict) else marks[i] if i < len(marks) else {}
        lengths = list(shape)
        for axis, symbol in own.items():
            if not -len(shape) <= axis < len(shape):
                continue  # as of the states of a cell
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
