"""Chapter 03. Exercise checkers, which explain in a sentence what's wrong with an answer.

Uses:    a reader's answer: numbers, words, a function, a pass, a block, an error.
Defines: `Exercise`, which checks it by a function, `Parts` by numbers and words, `Refusal` by
         an error; `judged`; `Verdict`, the result; `tried`, which calls the reader's function
         with a limit on its run time. A chapter's `Parts` and `Refusal`s are tables of a TOML
         file, with these classes' fields.

A checker raises `NotYet` with a sentence, or returns the praise or its own `Verdict`.
Functions are checked by property-based tests, small inputs first; numbers by hashes, so
that the source doesn't reveal the answers.
Limits:  style isn't checked.
"""

import hashlib
import linecache
import re
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

import numpy as np

import minihybrid
from minihybrid.core.array import NDArray
from minihybrid.core.graph import Graph
from minihybrid.core.passes import expand
from minihybrid.view.viz import scrolling

LIBRARIES = (str(Path(linecache.__file__).parent), str(Path(np.__file__).parents[1]))
OURS = tuple(str(Path(file).parent) for file in (minihybrid.__file__, Path(__file__).parent))
OTHERS = ("minihybrid", "minihybrid_course", "numpy")  # their lines aren't counted as the reader's
TURNS, SECONDS = 200_000, 10  # limits: lines of the reader's code; this thread's CPU seconds


class NotYet(Exception):
    """The answer is wrong; the message is a sentence."""


class Endless(BaseException):
    """Raised in an infinite loop of the reader's; `except Exception` doesn't catch it."""


@dataclass(frozen=True)
class Verdict:
    """The result of `check`: whether the answer is right, a sentence, optionally a picture."""

    right: bool
    sentence: str
    picture: object = None  # of a kernel's accesses, with an `svg`

    def __repr__(self):
        return self.sentence

    def _repr_html_(self):
        words = re.sub("`(.*?)`", r"<code>\1</code>", escape(self.sentence)).replace("\n", "<br>")
        picture = (
            ""
            if self.picture is None
            else scrolling(
                f'<div style="width:max-content">{self.picture.svg}</div>', "who uses what"
            )
        )
        return f"<p>{words}</p>{picture}"


class Exercise:
    """The description of an exercise's answer, and the function that checks it."""

    number = ""  # such as "3.2"; the table of all exercises sets it

    def __init__(self, asks: str, judge: Callable):
        self.asks, self.judge = asks, judge

    def __call__(self, answer):
        """Return a `Verdict`, whatever the answer is or raises."""
        if answer is None or answer is ...:
            return Verdict(False, f"not yet: nothing is filled in; hand in {self.asks}")
        return judged("right", self.judge, answer)


def judged(title, judge, *args):
    """Return a checker's `Verdict`, whatever the reader's code does; `title` if right."""
    try:
        with np.errstate(all="ignore"):
            result = limited(judge, *args)
            return result if isinstance(result, Verdict) else Verdict(True, f"{title}: {result}")
    except (NotYet, Endless) as error:
        return Verdict(False, f"not yet: {error}")
    except Exception as error:
        return Verdict(False, f"not yet: {error_text(error)}")


def need(right, sentence):
    """Raise `NotYet` with the sentence unless `right` is true."""
    if not right:
        raise NotYet(sentence)


# A browser page has a single thread, without a CPU clock for it.
clock = getattr(time, "thread_time", time.process_time)


def limited(function, *args):
    """Call a function; raise `Endless` after too many lines of the reader's, or CPU time.

    Lines are counted with `sys.settrace`, which works on every system and thread.
    """
    left, end, before = TURNS, clock() + SECONDS, sys.gettrace()
    calls, is_ours = 0, {}  # calls of library functions; code -> whether it's ours

    def watch(frame, event, arg):
        nonlocal left, calls
        code = frame.f_code
        ours = is_ours.get(code)
        if ours is None:
            name = frame.f_globals.get("__name__", "")  # a named tuple's names its __new__
            ours = name.partition(".")[0] in OTHERS or name.startswith("namedtuple_")
            # Numba compiles, or loops in a library; a kernel's loops have separate limits.
            ours = ours or code.co_filename.startswith(("<kernel ", "<frozen ", *LIBRARIES))
            is_ours[code] = ours
        left -= not ours
        calls += ours
        if left < 0 or not (ours and calls % 64) and clock() > end:
            name = frame.f_code.co_name
            raise Endless(
                f"a loop in {name} does not end" if left < 0 else f"{name} takes too long"
            )
        return None if ours else watch

    sys.settrace(watch)
    try:
        return function(*args)
    finally:
        sys.settrace(before)


def uncounted(function, *args):
    """Call a compiled function without counting the compiler's lines."""
    before = sys.gettrace()
    sys.settrace(None)
    try:
        return function(*args)
    finally:
        sys.settrace(before)


def error_text(error):
    """Describe an error with the reader's last line in its traceback."""
    text, where = f"{type(error).__name__}: {' '.join(str(error).split())}", ""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename.startswith((*OURS, *LIBRARIES)):
            continue
        line = (frame.line or linecache.getline(frame.filename, frame.lineno)).strip()
        if line:
            return f"{text} (in {frame.name}, line {frame.lineno}: `{line}`)"
        where = where or f" (in {frame.name}, line {frame.lineno})"  # source run by exec
    return text + where


def tried(what, function, *args, **kwargs):
    """Call the reader's function and return its result; `what` describes the call."""
    need(callable(function), f"expected a function, but got {kind(function)}")
    try:
        result = function(*args, **kwargs)
    except Endless as error:
        raise NotYet(f"{what}: {error}") from None
    except Exception as error:
        raise NotYet(f"{what} raises {error_text(error)}") from None
    there = result is not None and result is not ...
    need(there, f"{what} returns nothing: is a `return` missing?")
    return result


def equal(actual, expected, what):
    """Compare arrays, and name the first wrong element."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    need(
        actual.shape == expected.shape,
        f"{what} has shape {actual.shape} instead of {expected.shape}",
    )
    equal = np.isclose(actual, expected, rtol=1e-4, atol=1e-5)
    if not equal.all():
        k = tuple(map(int, np.argwhere(~equal)[0]))
        where = f" at [{', '.join(map(str, k))}]" if k else ""
        raise NotYet(f"{what} is {actual[k]:g}{where} instead of {expected[k]:g}")


def kind(answer):
    """Describe an answer's type for messages.

    >>> kind("24"), kind([1, 2]), kind(len)
    ("the text '24'", 'a list of 2', 'the function len')
    """
    match answer:
        case str():
            return f"the text {answer!r}"
        case list() | tuple():
            return f"a {type(answer).__name__} of {len(answer)}"
        case bool() | int() | float():
            return f"{answer}"
        case NDArray() | np.ndarray():
            return f"a {type(answer).__name__} of shape {answer.shape}"
    if callable(answer) and hasattr(answer, "__name__"):
        return f"the function {answer.__name__}"
    return f"a {type(answer).__name__}"


# -- numbers and words -------------------------------------------------------------------
def normalized(value):
    """Normalize an answer for comparison: ignore type, case, spaces and quotes.

    >>> normalized(4), normalized("4.0"), normalized((2, "ReLU"))
    ('4', '4', '2,relu')
    """
    try:
        return f"{float(value):.6g}"
    except (TypeError, ValueError):
        return re.sub(r"[^a-z0-9.,+*/=<>_-]", "", str(value).lower()).strip(",")


def fingerprint(salt, value):
    """Return the salted hash that replaces a right answer in the source."""
    return hashlib.blake2s(f"{salt}:{normalized(value)}".encode(), digest_size=5).hexdigest()


def forms(value, name):
    """Return the possible readings of an answer: `True` is yes, "48 bytes" is 48 in bytes.

    >>> forms("48 bytes", "the number of bytes"), forms(False, "the answer")
    (['48 bytes', 48.0], [False, 'no'])
    """
    if isinstance(value, bool):
        return [value, "yes" if value else "no"]
    number, _, unit = str(value).partition(" ")
    plain = unit and unit in name and re.fullmatch(r"[\d.,]+", number)
    return [value, float(number.replace(",", ""))] if plain else [value]


@dataclass(frozen=True)
class Part:
    """One number or word of an answer.

    right:   the fingerprint of the right answer.
    advice:  how to find it, for unexpected answers.
    wrong:   typical wrong answers, as text -> the mistake.
    """

    name: str
    right: str
    advice: str
    wrong: dict[str, str] = field(default_factory=dict)


class Parts(Exercise):
    """An exercise whose answer is numbers and words: each part is right, or typically wrong.

    part:     the fields of each `Part`.
    whole:    wrong answers of several parts, such as "2, 3" -> the mistake.
    ordered:  whether the order of the parts matters.
    """

    def __init__(self, asks, praise, part, whole=None, ordered=True):
        super().__init__(asks, self.compare)
        self.parts = [Part(**fields) for fields in part]
        self.praise, self.whole, self.ordered = praise, whole or {}, ordered

    def compare(self, answer):
        """Check one value, or one for each part."""
        n = len(self.parts)
        data = answer.asnumpy() if isinstance(answer, NDArray) else getattr(answer, "data", None)
        if isinstance(answer, np.ndarray) or isinstance(data, np.ndarray):  # includes nano's arrays
            answer = (answer if isinstance(answer, np.ndarray) else data).reshape(-1).tolist()
        values = list(answer) if isinstance(answer, (list, tuple)) else [answer]
        names = ", ".join(part.name for part in self.parts)
        values = [tuple(v) if isinstance(v, list) else v for v in values]
        fits = all(isinstance(v, (bool, int, float, str, tuple, np.number)) for v in values)
        need(
            fits and len(values) == n,
            f"expected {n} value{'s' * (n != 1)} ({names}), but got {kind(answer)}",
        )
        values = values if self.ordered else sorted(values, key=str)
        key = ", ".join(map(normalized, values))
        need(key not in self.whole, f"{answer}: {self.whole.get(key)}")
        for part, value in zip(self.parts, values, strict=True):
            if part.right in {fingerprint(self.number, form) for form in forms(value, part.name)}:
                continue
            why = {normalized(v): text for v, text in part.wrong.items()}.get(
                normalized(value), part.advice
            )
            raise NotYet(f"{part.name} is not {value}: {why}")
        return self.praise


# -- errors ------------------------------------------------------------------------------
ELSEWHERE = {r"is not defined": "this is Python's own error: run the cells above"}


class Refusal(Exercise):
    """An exercise whose answer is a function that makes the engine raise an error.

    error, words: the expected error's type, and a pattern that its message must match.
    taken:        a sentence for a call that raises nothing, in which `{result}` and `{kind}`
                  are its result; or a table, from the kind of a result, or "otherwise".
    call:         an example of the function's body.
    others:       patterns in messages of other errors -> the mistake.
    """

    def __init__(self, praise, error, words, taken, call="", others=None):
        example = f", such as `lambda: {call}`" * bool(call)
        super().__init__(f"a function that raises the error{example}", self.compare)
        self.praise, self.error, self.words = praise, error, words
        self.taken = {"otherwise": taken} if isinstance(taken, str) else taken
        self.others = (others or {}) | ELSEWHERE

    def compare(self, answer):
        """Check an error, or the one that a function raises."""
        if callable(answer) and not isinstance(answer, type):
            try:
                result = answer()
            except Exception as error:
                answer = error
            else:
                need(result is not ..., "put the call that raises the error in place of the dots")
                taken = self.taken.get(kind(result), self.taken["otherwise"])
                text = taken.format(result=result, kind=kind(result))
                raise NotYet(f"there was no error: {text}")
        need(
            isinstance(answer, Exception),
            f"expected an error, or a function that raises it, such as `lambda: ...`, but got "
            f"{kind(answer)}",
        )
        text = f"{answer}\n{getattr(answer, 'stderr', None) or ''}"  # from another process
        types = [one.__name__ for one in type(answer).__mro__]
        if self.error in types and re.search(self.words, text):
            return self.praise
        for words, why in self.others.items():
            need(not re.search(words, text), f"{error_text(answer)}; {why}")
        raise NotYet(
            f"this is a different error, {error_text(answer)}; the exercise is about {self.error}"
        )


# -- passes ------------------------------------------------------------------------------
def after(pass_, graph, text):
    """Return the result of a pass; raise if it isn't a graph."""
    result = tried(f"{getattr(pass_, '__name__', 'the pass')} of `{text}`", pass_, graph)
    need(
        isinstance(result, Graph),
        f"a pass must return a Graph, but for `{text}` yours returns {kind(result)}",
    )
    seen = set()
    for node in result.nodes:
        for old, _ in node.inputs:
            need(
                old in seen,
                f"in `{text}`, {node.name} reads {old.name}, which doesn't come before it: "
                "use the inputs passed to the rule, not those of the old node",
            )
        seen.add(node)
    missing = {v.name for v in graph.variables} - {v.name for v in result.variables}
    need(not missing, f"in `{text}` the variable {min(missing, default='')} is gone")
    return result


def means_the_same(before, now, text, values):
    """Check that both graphs compute the same values; `given` is name -> array."""
    values = {v.name: values[v.name] for v in before.variables}
    for expected, actual in zip(*(expand(g).evaluate(values) for g in (before, now)), strict=True):
        shapes = f"`{text}` has shape {actual.shape}, but had {expected.shape}"
        need(actual.shape == expected.shape, f"after the pass, {shapes}")
        numbers = ", ".join(f"{name} = {value.tolist()}" for name, value in values.items())
        need(
            np.allclose(actual, expected, rtol=1e-4, atol=1e-5),
            f"the pass changes the semantics of `{text}`: for {numbers}, the result was "
            f"{expected.tolist()} before and is {actual.tolist()} after",
        )
