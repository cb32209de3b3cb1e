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

import contextlib
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
from minihybrid.core.op import legible
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
    except (Exception, SystemExit) as error:
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
    text = legible(f"{type(error).__name__}: {' '.join(str(error).split())}", 600)
    where = ""
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
    except SystemExit as error:
        raise NotYet(f"{what} ends Python: {error_text(error)}; end it by `return`") from None
    except Exception as error:
        raise NotYet(f"{what} raises {error_text(error)}") from None
    there = result is not None and result is not ...
    need(there, f"{what} returns nothing: is a `return` missing?")
    return result


def number(value, what):
    """Return a number of any library as a Python number, or raise; an array of one is one."""
    result = plain(value)
    is_number = isinstance(result, (int, float)) and not isinstance(result, bool)
    need(is_number, f"{what} must be a number, but is {kind(value)}")
    return result


def yes_or_no(value, what):
    """Return a truth value of any library as Python's, or raise; an array of one is one."""
    result = plain(value)
    need(isinstance(result, bool), f"{what} must be True or False, but is {kind(value)}")
    return result


def expect(value, kinds, what, case="", length=None):
    """Return a value of these types, perhaps of a length; raise for others."""
    right = isinstance(value, kinds) and (length is None or len(value) == length)
    need(right, f"{case}expected {what}, but got {kind(value)}")
    return value


def same(actual, expected, what, hint=""):
    """Compare two values, such as shapes, names or integers."""
    need(actual == expected, f"{what} is {actual} instead of {expected}{hint and f': {hint}'}")


def equal(actual, expected, what, hint="", rtol=1e-4, atol=1e-5):
    """Compare arrays, and name the first wrong element."""
    expected, hint = np.asarray(expected), hint and f": {hint}"
    try:
        numbers = np.asarray(actual)
    except ValueError:  # of different lengths
        numbers = np.asarray(None)
    need(
        numbers.dtype.kind in "biufc",
        f"{what} must be an array of shape {expected.shape}, but is {kind(actual)}",
    )
    actual = numbers
    need(
        actual.shape == expected.shape,
        f"{what} has shape {actual.shape} instead of {expected.shape}{hint}",
    )
    near = np.isclose(actual, expected, rtol=rtol, atol=atol)
    if not near.all():
        k = tuple(map(int, np.argwhere(~near)[0]))
        where = f" at [{', '.join(map(str, k))}]" if k else ""
        raise NotYet(f"{what} is {actual[k]:g}{where} instead of {expected[k]:g}{hint}")


def equal_each(names, actual, expected, what):
    """Compare arrays one by one; `what` has braces for the name of each."""
    for name, a, b in zip(names, actual, expected, strict=True):
        equal(a, b, what.format(name))


def with_article(noun):
    """Return the name of a type after "a" or "an".

    >>> with_article("list"), with_article("ndarray")
    ('a list', 'an ndarray')
    """
    return f"{'an' if re.match('[aeio]|nd', noun, re.IGNORECASE) else 'a'} {noun}"


def kind(answer):
    """Describe an answer's type for messages.

    >>> kind("24"), kind([1, 2]), kind(len), kind(np.ones((2, 3)))
    ("the text '24'", 'a list of 2', 'the function len', 'an ndarray of shape (2, 3)')
    """
    match answer:
        case str():
            return f"the text {legible(repr(answer), 60)}"
        case list() | tuple():
            return f"a {type(answer).__name__} of {len(answer)}"
        case np.ndarray() | NDArray():
            return f"{with_article(type(answer).__name__)} of shape {answer.shape}"
        case bool() | int() | float() | np.generic():
            return legible(str(answer), 60)
    if callable(answer) and hasattr(answer, "__name__"):
        return f"the {'class' if isinstance(answer, type) else 'function'} {answer.__name__}"
    return with_article(type(answer).__name__)


def plain(value):
    """Return a value of NumPy, the engine or nano as Python's number or tuple; a class as text.

    >>> plain(np.float32(0.5)), plain(np.array([[3]])), plain([1, np.int64(2)])
    (0.5, 3, (1, 2))
    """
    if isinstance(value, type):
        return value.__name__
    if isinstance(value, NDArray):
        value = value.asnumpy()
    elif isinstance(data := getattr(value, "data", None), np.ndarray):  # an array of nano
        value = data
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.item() if value.size == 1 else value.tolist()
    return tuple(map(plain, value)) if isinstance(value, (list, tuple)) else value


# -- numbers and words -------------------------------------------------------------------
def normalized(value):
    """Normalize an answer for comparison: ignore type, case, spaces and quotes.

    >>> normalized(4), normalized("4.0"), normalized(2**24 + 1), normalized((2, "ReLU"))
    ('4', '4', '16777217', '2,relu')
    """
    text = re.sub(r"[^a-z0-9.,+*/=<>_-]", "", str(value).lower()).strip(",")
    with contextlib.suppress(ValueError):
        return str(int(text, 0))  # exactly, unlike a float; 0x for hexadecimal
    with contextlib.suppress(ValueError):
        number = float(text)
        return str(int(number)) if number.is_integer() else f"{number:.6g}"
    return text


def fingerprint(salt, value):
    """Return the salted hash that replaces a right answer in the source."""
    return hashlib.blake2s(f"{salt}:{normalized(value)}".encode(), digest_size=5).hexdigest()


# A number, with or without commas between thousands, and a unit.
NUMBER = r"([-+]?(?:(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?) *([^\W\d]*)$"


def forms(value, name):
    """Return the possible readings of an answer: `True` is yes, "2,048 bytes" is 2048 in bytes.

    >>> forms("2,048 bytes", "the number of bytes"), forms(False, "the answer")
    (['2,048 bytes', 2048], ['no', 0])
    """
    if isinstance(value, bool):
        return ["yes" if value else "no", int(value)]
    if isinstance(value, str) and (match := re.match(NUMBER, value.strip())):
        unit = match[2]
        need(unit in name, f"{name} is the text {value!r}: hand in the number without {unit!r}")
        digits = match[1].replace(",", "")
        return [value, int(digits) if re.fullmatch(r"[-+]?\d+", digits) else float(digits)]
    return [value]


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
        if isinstance(answer, (set, frozenset)) and not self.ordered:
            answer = tuple(answer)
        n, value = len(self.parts), plain(answer)
        values = list(value) if isinstance(value, tuple) else [value]
        names = ", ".join(part.name for part in self.parts)
        many = "s, in a tuple" if n != 1 else ""
        need(len(values) == n, f"expected {n} value{many} ({names}), but got {kind(answer)}")
        for part, v in zip(self.parts, values, strict=True):
            fits = isinstance(v, (bool, int, float, str, tuple))
            need(fits, f"{part.name} is {kind(v)}, but must be a number or a text")
        values = values if self.ordered else sorted(values, key=str)
        key = ", ".join(map(normalized, values))
        need(key not in self.whole, f"{value}: {self.whole.get(key)}")
        for part, value in zip(self.parts, values, strict=True):
            if part.right in {fingerprint(self.number, form) for form in forms(value, part.name)}:
                continue
            wrong = {normalized(v): text for v, text in part.wrong.items()}
            known = [normalized(form) for form in forms(value, part.name)]
            why = next((wrong[form] for form in known if form in wrong), part.advice)
            raise NotYet(f"{part.name} is not {legible(str(value))}: {why}")
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
            except (Exception, SystemExit) as error:
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
        other = f"another {self.error}" if self.error in types else self.error
        raise NotYet(
            f"this is a different error, {error_text(answer)}; the exercise is about {other}"
        )
