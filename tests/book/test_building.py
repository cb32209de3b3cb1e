"""Part "Build one": both editions are of one source, each stage runs alone, checks answer."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from lines import count
from make_blank import (
    BLANK,
    CHAPTERS,
    cells_of_nano,
    made,
    printed,
    read,
    removed,
    tagged,
    with_gaps,
)
from marks import external
from minihybrid_course import growing
from minihybrid_course.building import NANO, check, code_lines, keep, outdated, stage, tried
from minihybrid_course.exercises import judging
from run_notebooks import ROOT

STEPS = range(1, 10)
UPGRADES = [int(path.stem[5:]) for path in sorted(BLANK.glob("nano_*.py"))]


def cells_of(step):
    """The cells of a step, of its chapter."""
    chapter = read(CHAPTERS[(step - 1) // 3])
    return [c for c in chapter.cells if tagged(c, "nano") == step]


def upgrade(step):
    """The texts of an upgrade's cells."""
    return [text for k, text in cells_of_nano() if k == step]


def after(step, *texts):
    """The names that nano's steps and more texts define."""
    names = {}
    for text in (stage(step), *texts):
        exec(text, names)
    return names


# -- two editions of one source --------------------------------------------------------
def test_what_is_made_of_the_chapters_is_fresh():
    for path, text in made().items():
        assert path.read_text(encoding="utf-8") == text, "run `make blank`"
    assert len(made()) == 5 + len(UPGRADES)


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_a_notebook_with_gaps_has_no_solution_and_no_output(chapter):
    gaps = read(BLANK / chapter.name)
    kept = {line.strip() for cell in gaps.cells for line in cell.source.splitlines()}
    out, given, solutions = [], set(), 0
    for cell in read(chapter).cells:
        tags = cell.metadata.get("tags", [])
        out += removed(cell.source) if "gap" in tags else []
        if cell.source.startswith("#@title"):
            out += cell.source.splitlines()
            solutions += 1
        given |= set(cell.source.splitlines()) if "starter" in tags else set()
    assert len(out) > 20 and solutions > 1
    common = {line.strip() for line in set(out) - given} & kept
    assert {line for line in common if len(line) > 16} == set()
    assert not any(cell.get("outputs") for cell in gaps.cells)
    assert "<summary>Answer" not in "".join(cell.source for cell in gaps.cells)


@pytest.mark.parametrize("step", STEPS)
def test_a_gap_shows_its_output_first_and_answers_no_prediction(step):
    chapter = read(CHAPTERS[(step - 1) // 3])
    goals = [c for c in chapter.cells if tagged(c, "goal") and tagged(c, "after") == step]
    cells = read(BLANK / CHAPTERS[(step - 1) // 3].name).cells
    sources = [c.source for c in cells]
    gap = [k for k, c in enumerate(sources) if c.startswith(f"# step {step}") and "...  #" in c]
    for cell in goals:
        k = tagged(cell, "goal")
        above = sources[gap[k - 2] + 1 if k > 1 else 0 : gap[k - 1]]
        shown = [text for text in above if cell.source in text and text.count("```text")]
        assert len(shown) == 1 and printed(cell) in shown[0] and printed(cell)
        assert "answer" not in cell.metadata.tags or k > 1  # its prediction is above the first
    assert goals


def test_the_tour_on_nano_is_the_tour():
    tour = {cell.source for cell in read(ROOT / "notebooks/00_tour.ipynb").cells}
    ours = [c.source for c in read(CHAPTERS[2]).cells if "tour" in c.metadata.get("tags", [])]
    assert len(ours) == 16 and set(ours) <= tour


# -- stages ----------------------------------------------------------------------------
@pytest.mark.parametrize("step", STEPS)
def test_a_stage_runs_alone_and_its_check_is_content(step):
    verdict = tried(step, after(step))
    assert verdict.right, verdict


@pytest.mark.parametrize("step", STEPS)
def test_what_a_step_lacks_is_said(step):
    gaps = [with_gaps(c.source) if "gap" in c.metadata.tags else c.source for c in cells_of(step)]
    verdict = tried(step, after(step - 1, *gaps))
    assert not verdict.right
    assert str(verdict).startswith("not yet: ") and "still missing" in str(verdict)


def test_nano_has_at_most_200_lines_and_the_names_70():
    text = stage(9)
    parts = re.split(r"^# (step \d|names): .*\n", text, flags=re.M)
    lines = {"step": 0, "names": 0}
    for kind, part in zip(parts[1::2], parts[2::2], strict=True):
        lines[kind.split()[0]] += count(part)
    assert 150 < lines["step"] <= 200 and 30 < lines["names"] <= 70, lines
    assert code_lines(text) == sum(lines.values())


def test_nano_has_at_most_715_lines_after_its_last_upgrade():
    text = NANO.read_text(encoding="utf-8")
    assert text == stage(22) and 261 < count(text) <= 715
    for step in UPGRADES:
        assert (BLANK / f"nano_{step}.py").read_text(encoding="utf-8") == stage(step)


@pytest.mark.parametrize("step", UPGRADES)
def test_an_upgrade_runs_alone_and_its_check_is_content(step):
    verdict = tried(step, after(step), growing.STEPS)
    assert verdict.right, verdict


@pytest.mark.parametrize("step", UPGRADES)
def test_an_upgrade_that_is_not_there_is_missed(step):
    verdict = tried(step, after(step - 1), growing.STEPS)
    assert not verdict.right and f"not yet: step {step} defines " in str(verdict)


def test_names_of_this_engine_are_not_taken_for_the_readers():
    names = after(9) | {"law_of_shape": growing.check}
    assert "law_of_shape isn't defined" in str(tried(10, names, growing.STEPS))


def test_a_chain_is_compiled_once_and_hands_nan_on():
    n = after(16)
    graph = n["trace"](lambda x, y: n["relu"](x * y + 1) * 2, x=(5, 3), y=(5, 3))
    x, y = np.random.default_rng(0).normal(size=(2, 5, 3)).astype("f")
    x[0, 0] = np.nan
    program = n["with_gradient"](graph)
    for _ in range(2):
        actual, back = n["compiled"](program)(x, y)
        assert n["machine"].cache_info().misses == 2  # the value's chain, and the gradients'
    assert actual.dtype == "f" and np.isnan(actual[0, 0])
    expected = np.maximum(x * y + 1, 0) * 2
    assert np.allclose(actual, expected, equal_nan=True)
    dx, dy = back(np.ones_like(x))
    assert np.allclose(dx[1:], ((x * y > -1) * 2 * y)[1:], atol=1e-6)
    assert np.allclose(dy[1:], ((x * y > -1) * 2 * x)[1:], atol=1e-6)


ALONE = """
import sys
for name in ("numba", "llvmlite", "scipy", "matplotlib", "tqdm"):
    sys.modules[name] = None
from minihybrid_course.building import stage, tried
from minihybrid_course.growing import STEPS
for step in map(int, sys.argv[1:]):
    names = {}
    exec(stage(step), names)
    print(tried(step, names, STEPS))
"""


@pytest.mark.slow
def test_upgrades_run_on_numpy_alone_and_say_what_is_missing():
    done = subprocess.run(
        [sys.executable, "-c", ALONE, *map(str, UPGRADES)],
        env={"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'course'}", "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stdout.splitlines()
    missing = [line for line in lines if line.startswith("nano: Numba is missing")]
    assert len(missing) == sum(step >= 13 for step in UPGRADES)
    right = [line for line in lines if " is right: " in line]
    assert len(right) == len(UPGRADES) and len(lines) == len(right) + len(missing), done.stdout


# -- wrong answers ---------------------------------------------------------------------
WRONG = {  # what is changed in a step's text -> what is said
    (1, "lambda x: x.level", "lambda x: -x.level"): "the lower level interprets",
    (1, "return add(self, other)", "return add(other, self)"): "`x + y` passes",
    (1, "self, inputs, attrs)", "self, inputs, {})"): "attributes are lost",
    (1, "self, inputs, attrs)", "self, [*inputs], attrs)"): "gets a list of 1 instead of the tuple",
    (1, "**attrs).shape", "**attrs)"): "Op.infer must return tuple, but it returns an ndarray",
    (1, "else add_number(self, scalar=other)", "else add(self, other)"): "`x + 3` raises",
    (2, "STATE.recording = False", "pass"): "STATE.recording is still set",
    (2, "if STATE.recording and any(", "if any("): "outside of record(), x * 2 remembers",
    (2, "x.op or x.grad is not None for", "True for"): "that depends on no variable",
    (2, "NDArray(np.zeros(self.shape))", "np.zeros(self.shape)"): "x.grad after attach_grad() must",
    (2, "x.op or x.grad is not None", "x.op or x.grad"): "test `grad is not None` instead of",
    (2, "recording and any(", "recording and all("): "one variable is enough",
    (
        2,
        "        STATE.recording = False",
        "        STATE.recording = False\n        return True",
    ): "suppresses an error",
    (
        2,
        "        return self",
        "        pass",
    ): "NDArray.made_by returns None: code or a `return` is",
    (2, "*[x.data for x in inputs]", "*inputs"): "interpret must pass `data` to op.eager",
    (3, "grads[x] + g if x in grads else g", "g"): "the gradient of x + x, at x =",
    (3, "key=lambda x: x.number", "key=lambda x: -x.number"): "before one of its inputs",
    (3, "reversed([x for x in behind([head]) if x.op])", "[x for x in behind([head]) if x.op]"): (
        "process the most recent values"
    ),
    (3, "NDArray(np.ones(head.shape))", "1"): "must be an NDArray, but it is 3",
    (3, "x.grad = g", "pass"): "the same array as before: code is still missing",
    (3, "x.grad = g", "x.grad.data = g.data"): "instead of replacing it",
    (3, "if x.grad is not None:", "if True:"): "backward sets `grad` of x * 3, which isn't a",
    (3, "grads = {head: seed}", "grads = {head: NDArray(np.ones(head.shape))}"): "isn't the seed",
    (3, "return sorted(found, key=lambda x: x.number)", "return found"): (
        "behind must return list or tuple, but it returns a set"
    ),
    (3, "x.grad = g", "x.grad = x.grad + g"): "after a second backward, which replaces x.grad, it",
    (3, "NDArray.backward = backward", ""): "NDArray has no method backward",
    (3, "todo += new", "todo += [*new, head]"): "a loop in behind does not end",
    (4, "{len(STATE.trace)}", ""): "is called relu",
    (4, "op.infer(*[x.shape for x in inputs], **attrs)", "inputs[0].shape"): "use op.infer",
    (4, "raise TypeError(f", "raise ValueError(f"): "must raise TypeError: ValueError",
    (4, "heads = [f(*", "heads, = [f(*"): "the Graph's heads must be a list of values",
    (
        4,
        "[f(*[Symbol(shape, name) for name, shape in shapes.items()])]",
        ("[f(**{name: Symbol(shape, name) for name, shape in shapes.items()})]"),
    ): "got an unexpected keyword argument 'data'",
    (4, "return Graph(STATE.trace, heads)", "return Graph(STATE.trace, STATE.trace[-1:])"): (
        "the head isn't the function's result"
    ),
    (4, "STATE.trace = []\n    heads", "heads"): "the trace of x * x * 3 + x is ['a', 'relu', ",
    (5, "new[i] for i in x.inputs", "new[i] for i in x.inputs[::-1]"): None,
    (5, "for h in graph.heads]", "for h in graph.nodes]"): "a list with one value per head",
    (5, 'return "\\n".join([*lines', "return ([*lines"): "show must return str",
    (5, 'f"{k}={v}"', "str(v)"): "from show doesn't contain scalar=3",
    (5, '", ".join(h.name for h in graph.heads)', "str(graph.heads)"): "doesn't contain broadcast",
    (5, "zip(graph.variables, inputs, strict=True)", "zip(graph.nodes, inputs)"): (
        "whose variable `late` is created after x * 2"
    ),
    (5, "[new[h] for h in graph.heads]", "[*new.values()][-1:]"): "is 3 at [0] instead of 12",
    (5, "x.op(*[", "x.op.eager(*["): "run of v0 = x; v1 = relu(v0) raises TypeError",
    (5, "new[i] for i in x.inputs", "i for i in x.inputs"): "should look up the values",
    (
        5,
        "return [new[h] for h in graph.heads]",
        "return new[graph.heads[0]]",
    ): "but it returns an NDArray",
    (6, "    return Graph(seen", "    graph.nodes[-1].inputs = ()\n    return Graph(seen"): (
        "cse changes its argument"
    ),
    (6, "inputs, repr(x.attrs))", "inputs)"): "after cse",
    (6, "x in alive or not x.op", "x in alive or x.op"): "after dce",
    (
        6,
        "set(behind(graph.heads))",
        "{i for x in graph.nodes for i in x.inputs} | {*graph.heads}",
    ): ("a program with dead code has 2 operators; 1 are enough"),
    (
        6,
        "[x for x in graph.nodes if x in alive or not x.op]",
        ("graph.variables + [x for x in graph.nodes if x in alive and x.op]"),
    ): "dce moves the variable `late`",
    (6, " if x.op else x\n        node", "\n        node"): "the variable y is missing: x + y",
    (6, "x in alive or not x.op", "x in alive"): "after dce, the variable x is missing: y * 2",
    (6, "Graph(seen.values()", "Graph(new.values()"): "is in the graph twice",
    (7, "{', '.join(grads)},", "{', '.join(grads)}"): "end it with a comma",
    (7, "grads.get(x, x * 0)", "grads[x]"): "KeyError",
    (7, "list(graph.nodes), graph.heads", "[], graph.heads"): "with all nodes of the graph?",
    (7, "STATE.trace, [head] = list(graph.nodes), graph.heads", "[head] = graph.heads"): (
        "with all nodes of the graph?"
    ),
    (7, 'Symbol(head.shape, "g")', 'Symbol((), "g")'): "a head of shape (2,), has shape ()",
    (7, "{', '.join(grads)},", "[{', '.join(grads)}]"): None,
    (7, 'names[x] = f"t{len(names)}" if x.op else', "names[x] = x.name if x.op else"): (
        "a name that a user chose"
    ),
    (7, '    return {y}, backward"]', '"]'): "its value and `backward`, returns None",
    (8, "if x.shape not in self.plans", "if True"): "ran `forward` 3 times",
    (8, "known[0] if known else ", ""): "a parameter that is used twice",
    (8, "if self.array is None:", "if self.array is None and x.level == 0:"): "so draw them there",
    (8, "self.graph", "graph"): "`graph` of a block, its most recent trace",
    (8, "data=x.shape", "x=x.shape"): "['x', 'p'] instead of ['data', 'p']",
    (
        8,
        "params = [known[v.name] for v in self.graph.variables[1:]]",
        "params = [*known.values()]",
    ): ("in a block whose parameters are a, unused and b, raises AttributeError"),
    (8, "dce(cse(with_gradient(self.graph)))", "with_gradient(self.graph)"): (
        "computes the same operator on the same input 2 times; apply cse"
    ),
    (
        8,
        "if x.shape not in self.plans",
        "if not self.plans",
    ): "a second shape, raises KeyError: (3,)",
    (8, "self.plans is None or x.level > 0", "self.plans is None"): "has no attribute 'data'",
    (8, 'return NDArray(y).made_by(plan_op, inputs, {"back": back})', "return y"): (
        "but it returns an ndarray"
    ),
    (9, "json.dumps(v)", "str(v)"): "imports raises JSONDecodeError",
    (9, "json.loads(v)", "eval(v)"): "it evaluates `1 + 1`",
    (9, "dce(block.graph).nodes", "block.graph.nodes"): "the loaded block returns dead code",
    (9, "k: json.dumps(v)", "k: v"): "their values must be strings",
    (9, "[[place[i], 0, 0]", "[[i.name, 0, 0]"): "the book's engine can't load the program",
}


def test_a_block_may_draw_parameters_after_the_trace():
    values, block = [c.source for c in cells_of(8)][:2]
    late = "array is None and x.level == 0:"
    values = values.replace("array is None:", late)
    drawn = "self.plans[x.shape] = compiled(plan), params"
    block = block.replace(
        drawn,
        "for p, v in zip(params, self.graph.variables[1:]):\n"
        f"                p.value(x, v.shape)\n            {drawn}",
    )
    assert late in values and "p.value" in block
    assert tried(8, after(7, values, block)).right


@pytest.mark.parametrize("wrong", WRONG, ids=lambda w: f"{w[0]}: {w[2]}")
def test_a_wrong_answer_is_told_what_is_wrong(wrong):
    step, before, now = wrong
    texts = [c.source for c in cells_of(step)]
    changed = [t.replace(before, now) for t in texts]
    assert changed != texts, "nothing was changed"
    if wrong == (3, "todo += new", "todo += [*new, head]"):
        changed = [t.replace("found |= new", "head = heads[0]") for t in changed]
    verdict = tried(step, after(step - 1, *changed))
    if WRONG[wrong] is None:  # means the same
        assert verdict.right
    else:
        assert not verdict.right and WRONG[wrong] in str(verdict), verdict


def test_made_by_must_return_the_array():
    """Even if `interpret` doesn't use its result: the plans of step 8 do."""
    *others, arrays = [c.source for c in cells_of(2) if "class NDArray" in c.source]
    result = "NDArray(op.eager(*[x.data for x in inputs], **attrs))"
    lazy = arrays.replace(
        f"return {result}.made_by(op, inputs, attrs)",
        f"y = {result}\n        y.made_by(op, inputs, attrs)\n        return y",
    )
    lazy = lazy.removesuffix("        return self")
    assert lazy.count("return self") == arrays.count("return self") - 1 and lazy.count("return y")
    switch = [c.source for c in cells_of(2) if "class record" in c.source]
    verdict = tried(2, after(1, *others, lazy, *switch))
    assert "NDArray.made_by returns None: code or a `return`" in str(verdict)


WRONG_UPGRADES = {  # what is changed in an upgrade's text -> what is said
    (10, "    OPS[name] = self\n", ""): "doesn't add itself to OPS",
    (10, "self.rule or (", "False or ("): "doesn't use an Op's own shape rule",
    (10, "(up - down)", "(up + down)"): "broadcast_add: the gradient of input 0 is not the slope",
    (
        10,
        "assert said == true, ",
        "assert True, ",
    ): "law_of_shape of a wrong Op must raise AssertionError",
    (11, "where(c, g, g * 0), a", "where(c, g * 0, g), a"): "dx of where",
    (11, "Symbol.__bool__ = Symbol.__float__", "Symbol.__float__"): "doesn't contain where",
    (11, "{asks.f_code.co_name}", "f"): "doesn't contain branches",
    (
        12,
        'x.op is mul_number and x.attrs["scalar"] == 1',
        'x.attrs == {"scalar": 1}',
    ): "of x + 1 is []",
    (12, "x.op is transpose and", "x.op in (transpose, relu) and"): "of relu(transpose(x)) is",
    (12, "STATE.trace += [] if x.op else [x]", "pass"): "is missing",
    (
        12,
        'x.op is mul_number and x.attrs["scalar"] == 1',
        'x.op in (mul_number, add_number) and x.attrs["scalar"] == (x.op is mul_number)',
    ): "operators of x + 0 is []",
    (13, "readers.count(i) == 1", "True"): "operators per chain of",
    (13, "float32(0) if {0} <= 0", "float32(0) if {0} > 0"): "the kernel's result is 0 at [0, 0] ",
    (13, "PASSES = [fold, cse, dce, fuse, dce]", ""): "fuse isn't in PASSES",
    (14, "len(place) if stays else end", "end"): "a second backward, after another call",
    (14, " | dict.fromkeys(graph.heads, len(place))", ""): "is an output, but its memory",
    (
        14,
        "place[x] <= last[y] and place[y] <= last[x]",
        "False",
    ): "overlap, but so do their buffers",
    (15, "*a.shape, 1, 0, 0", "*a.shape, 0, 0, 0"): "is the first that differs",
    (
        15,
        "(kind, magic, sparse, dtype) != (0x112,",
        "(0, magic, sparse, dtype) != (0,",
    ): "starts with other bytes",
    (15, '"node_row_ptr": [*range(len(nodes) + 1)], ', ""): "the JSON differs from MXNet's",
    (16, "-(-n // block)", "n // block"): "the simulated GPU's answer",
    (16, "if i < {n}:", "if i >= 0:"): "kernel",
    (17, "for n in (5, 7))", "for n in (5, 5))"): "dot.infer for rows N is (5, 8) instead of",
    (17, " if n is not N}", "}"): "compile 20 plans, but one plan fits them all",
    (17, "if now.get(k) != v]", "if k == 'none']"): "the reasons are",
    (17, "except (TypeError, ValueError):", "except ValueError:"): "raises",
    (18, "    STATE.recording = outer", "    pass"): "the Hessian-vector product",
    (18, "cotangent).get(x, x * 0)", "cotangent)[x]"): "jvp of a constant",
    (18, "tuple(a + 1 for a in axis)", "axis"): "vmap of relu(x).sum()",
    (18, "*(1,) * (rank - len(rest)), *rest", "*rest, *(1,) * (rank - len(rest))"): "x.sum(0) * x",
    (19, "new = np.maximum(top, score)", "new = 0 * score"): "for scores in the thousands",
    (19, "axis=(1,)) * -1", "axis=(1,))"): "dq of attention",
    (20, "({name} * {factor} + {inner})", "{name} * {factor} + {inner}"): "access 4 is i_max[0, 1]",
    (20, 'rf"\\b{name}\\b"', "name"): "raises SyntaxError",
    (
        20,
        "{name: n // factor, inner: factor}",
        "{name: factor, inner: n // factor}",
    ): "has the loops",
    (20, "nest.loops[name] % factor or", ""): "must raise ValueError",
    (
        20,
        "found != sorted(found, key=lambda use: use[0])",
        "False",
    ): "be loaded too early, so it must",
    (20, "any(stores for _, stores in found)", "len({s for _, s in found}) > 1"): "stored last",
    (20, "any(stores for _, stores in found) and ", ""): "iterations that use a[0, 0] would swap",
    (
        20,
        "return Nest({name: nest.loops[name] for name in names}, nest.body)",
        "nest.loops = {name: nest.loops[name] for name in names}\n    return nest",
    ): "reorder changes its argument",
    (20, "column // width", "column"): "an access loads a whole line",
    (20, "(array, *rows", "(*rows"): "two arrays never share a line",
    (20, "cache.pop(line, None)", "pass"): "a line that's used again is the newest",
    (20, "len(cache) > lines", "len(cache) > lines + 1"): "one line more than it may",
    (20, '"".join([*heads, "    " * len(heads), self.body])', '"out += a @ b"'): "must run its own",
    (21, "a = a.copy()", "a = a"): "the graph overwrites an input",
    (21, "part(current(x.base), key=x.key)", "part(x.base.value, key=x.key)"): "a part of a part",
    (21, "overwrite(x.base, put(current(x.base), symbol, key=x.key))", "x.value = symbol"): (
        "result is 800 at [0] instead of 840"
    ),
    (21, "if x.memory[0] not in (None, x)", "if False"): "the read of a reshaped array after",
    (21, "if any(y.memory is x.memory for x in places)", "if False"): "the return of an argument",
    (21, "[current(x) for x in places]", "[x.value for x in places]"): "through `reshape`, must",
    (21, "if x is not before[k]", ""): "replay of a program that writes no argument raises",
    (21, "arrays[k].data[...] = value.data", "pass"): "x is 1 at [0] instead of 5",
    (21, "arrays[k].data[...] = value.data", "arrays[k].data = value.data"): "not replace it",
    (21, "np.shares_memory(arrays[k].data, arrays[i].data)", "0"): "shares memory with another one",
    (21, "STATE.trace = []", "pass"): "the graph needs a new trace",
    (22, "chunks[i][k] + moving[i - 1]", "moving[i - 1]"): "the result of device 0 is 4 at [1]",
    (22, "chunks[i][k] = chunks[i][k] + moving", "chunks[i][k] += moving"): "its argument change",
    (22, "(i + 1) % n, chunks[i]", "(i - 1) % n, chunks[i]"): "its right neighbor is 0",
    (22, "return [chunks[i][i] for", "return [arrays[i] for"): "the result of device 0 has shape",
    (22, "return [chunks[i][i] for i in range(n)]", "return np.array_split(sum(arrays), n)"): (
        "links that add 1 to everything: the result"  # forbidden: it doesn't use the messages
    ),
    (22, "known[i][(i - step) % n])", "shards[(i - step) % n])"): "links that add 1 to everything",
    (22, ", axis) for k in known", ") for k in known"): "and axis 1: the result of device 0 has",
    (22, "all_gather(reduce_scatter(grads, links), links)", "grads"): "the copies differ",
    (22, ".step(size)", ".step(size // n)"): "the step is 2.00 times as long",
    (22, "g.reshape(p.array.shape)", "g.reshape(p.array.shape) / n"): "the step is 0.50 times",
    (
        22,
        "np.split(x.data, n), np.split(y.data, n)",
        "[x.data] * n, [y.data] * n",
    ): "instead of [(4",
}


@pytest.mark.parametrize("wrong", WRONG_UPGRADES, ids=lambda w: f"{w[0]}: {w[2]}")
def test_a_wrong_upgrade_is_told_what_is_wrong(wrong):
    step, before, now = wrong
    texts = upgrade(step)
    changed = [t.replace(before, now) for t in texts]
    assert changed != texts, "nothing was changed"
    verdict = tried(step, after(step - 1, *changed), growing.STEPS)
    assert not verdict.right and WRONG_UPGRADES[wrong] in str(verdict), verdict


OTHERS = {  # step -> another right solution
    20: """
from collections import OrderedDict
def split(nest, name, factor):
    if nest.loops[name] % factor:
        raise ValueError(f"{nest.loops[name]} iterations can't be split by {factor}")
    new = f"({factor} * {name} + {name}_in)"
    loops = [(k, n) for k, n in nest.loops.items()]
    at = list(nest.loops).index(name)
    loops[at:at + 1] = (name, loops[at][1] // factor), (name + "_in", factor)
    if len(dict(loops)) < len(loops):
        raise ValueError(f"{name}_in exists")
    words = re.split(r"(\\W+)", nest.body)
    return Nest(loops, "".join(new if word == name else word for word in words))
def reorder(nest, *names):
    if {*names} - {*nest.loops} or len(names) < len(nest.loops):
        raise ValueError("name each loop")
    steps = list(nest.accesses())
    for k, (one, (a, index, stores)) in enumerate(steps):
        for other, (b, place, also) in steps[k + 1:]:
            if (a, index) == (b, place) and (stores or also):
                if [one[n] for n in names] > [other[n] for n in names]:
                    raise ValueError(f"{a} is used in another order")
    return Nest([(n, nest.loops[n]) for n in names], nest.body)
def traffic(nest, lines=16, width=8):
    cache, n = OrderedDict(), 0
    for _, (a, (row, column), _) in nest.accesses():
        line = a, row, column - column % width
        if line in cache:
            cache.move_to_end(line)
            continue
        n += 1
        cache[line] = None
        if len(cache) > lines:
            cache.popitem(last=False)
    return n
""",
    21: """
def current(x):
    if isinstance(x, Place):
        if x.base is None:
            (last,) = x.memory
            if last is not None and last is not x:
                raise TypeError("its memory was written: copy with x * 1")
            return x.value
        return part(current(x.base), key=x.key)
    return x
def overwrite(x, symbol):
    while x.base is not None:
        x, symbol = x.base, put(current(x.base), symbol, key=x.key)
    x.value = symbol
    x.memory[0] = x
def functionalize(f, **shapes):
    places = []
    def traced(*symbols):
        places.extend(Place(s) for s in symbols)
        y = f(*places)
        for x in places:
            if y.memory is x.memory:
                raise TypeError("return a copy, x * 1")
        return current(y)
    graph = trace(traced, **shapes)
    heads, written = list(graph.heads), []
    for k, (x, v) in enumerate(zip(places, graph.variables)):
        if current(x) is not v:
            heads.append(current(x))
            written.append(k)
    return Graph(STATE.trace, heads), written
def replay(graph, written, *arrays):
    for k in written:
        for i, a in enumerate(arrays):
            if k != i and np.may_share_memory(a.data, arrays[k].data):
                raise TypeError("copy an argument first, x * 1")
    y, *new = run(graph, *arrays)
    for k in written:
        np.copyto(arrays[k].data, new.pop(0).data)
    return y
""",
    22: """
def reduce_scatter(arrays, links):
    n = len(arrays)
    parts = [np.array_split(a, n) for a in arrays]
    carried = [parts[i][i - 1] for i in range(n)]
    for step in range(n - 1):
        arrived = {(i + 1) % n: links.send(i, (i + 1) % n, carried[i]) for i in range(n)}
        carried = [arrived[i] + parts[i][(i - 2 - step) % n] for i in range(n)]
    return carried
def all_gather(shards, links, axis=0):
    n, rows = len(shards), [[shard] for shard in shards]
    for _ in range(n - 1):
        arrived = [links.send(i, (i + 1) % n, rows[i][-1]) for i in range(n)]
        for i in range(n):
            rows[i].append(arrived[i - 1])
    return [np.concatenate([rows[i][(i - k) % n] for k in range(n)], axis=axis) for i in range(n)]
def parallel_step(nets, loss, x, y, rate, links):
    size, k = len(x.data), len(x.data) // len(nets)
    if k * len(nets) < size:
        raise ValueError("the parts must be equal")
    for i, net in enumerate(nets):
        a, b = (NDArray(z.data[i * k : (i + 1) * k]) for z in (x, y))
        with record():
            total = loss(net(a), b).sum()
        total.backward()
    for params in zip(*(net.collect_params().values() for net in nets), strict=True):
        grads = [p.array.grad.data for p in params]
        for p, g in zip(params, all_gather(reduce_scatter(grads, links), links), strict=True):
            p.array.data = p.array.data - rate / size * g
""",
}


@pytest.mark.parametrize("step", OTHERS)
def test_an_upgrade_may_be_written_in_another_way(step):
    assert tried(step, after(step, OTHERS[step]), growing.STEPS).right


def endless(*args, **kwargs):
    while True:
        pass


def raising(*args, **kwargs):
    raise KeyError("oops")


@pytest.mark.parametrize("garbage", [3, "spam", lambda *a, **k: None, int, raising, endless])
@pytest.mark.parametrize("step", OTHERS)
def test_garbage_gets_a_sentence(step, garbage, monkeypatch):
    monkeypatch.setattr(judging, "TURNS", 200_000 if garbage is not endless else 20_000)
    for name in growing.STEPS[step][0].split():
        names = after(step)
        names[name] = garbage
        verdict = tried(step, names, growing.STEPS)
        assert not verdict.right and str(verdict).startswith("not yet: "), (name, verdict)
        assert "Traceback" not in str(verdict), (name, verdict)


def test_a_step_needs_those_before_it():
    names = after(2) | {"check": check}
    assert str(eval("check(2)", names)) == "not yet: step 1 comes first; run check(1)"
    assert eval("check(1)", names).right and eval("check(2)", names).right
    assert "behind isn't defined" in str(eval("check(3)", names))


@pytest.mark.parametrize(
    "step, again, message",
    [
        (1, "class Op:", "add still uses an older Op"),
        (2, "class Value:", "NDArray still uses an older Value"),
        (9, "class Block:", "SymbolBlock still uses an older Block"),
        (3, "class NDArray(Value):", "NDArray has no method backward, or an older one"),
    ],
)
def test_a_cell_that_was_run_again_asks_for_those_below_it(step, again, message):
    names = after(step)
    exec(next(text for _, text in cells_of_nano() if again in text), names)
    verdict = tried(step, names)
    assert not verdict.right and message in str(verdict), verdict


def test_own_cells_are_kept_as_they_were_run_last(tmp_path):
    cells = ["# step 1: one\nx = 1", "x", "# step 1: one\nx = 2", "# step 1: two\ny = x"]
    assert keep(cells, tmp_path / "nano.py", "z = 0\n") == 3
    text = (tmp_path / "nano.py").read_text()
    assert text == "z = 0\n\n\n# step 1: one\nx = 2\n\n\n# step 1: two\ny = x\n"
    keep(["# step 1: one\nx = 3", "# step 4: four\n"], tmp_path / "nano.py", text)
    again = (tmp_path / "nano.py").read_text()
    assert again == text.replace("x = 2", "x = 3").rstrip() + "\n\n\n# step 4: four\n"


# -- nano and minihybrid ---------------------------------------------------------------
def test_the_engine_opens_the_program_that_nano_wrote(tmp_path):
    import minihybrid as mx

    n = after(9)
    net = n["HybridSequential"]()
    net.add(n["Dense"](5, activation="relu"), n["Dense"](3))
    net.initialize(n["Xavier"]())
    net.hybridize()
    x = np.random.default_rng(0).normal(size=(4, 2, 3)).astype("f")
    answer = net(n["NDArray"](x)).data
    program, numbers = net.export(str(tmp_path / "net"))
    again = mx.gluon.SymbolBlock(mx.sym.load(program), [mx.sym.var("data")])
    arrays = np.load(numbers)
    for name, param in again.collect_params().items():
        param.set_data(mx.nd.array(arrays[name]))
    assert np.allclose(again(mx.nd.array(x)).asnumpy(), answer, atol=1e-6)
    nodes = json.loads(mx.sym.load(program).tojson())["nodes"]
    ours = json.loads((tmp_path / "net-symbol.json").read_text())["nodes"]

    def lines(nodes):
        return {(x["name"], x["op"], *(nodes[i]["name"] for i, _, _ in x["inputs"])) for x in nodes}

    assert lines(nodes) == lines(ours) and len(ours) == 14


RUN = """
import json, sys
for name in ("numba", "llvmlite", "scipy", "matplotlib", "tqdm"):
    sys.modules[name] = None
import nbformat
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

shell, seen = InteractiveShell.instance(), []
for cell in nbformat.read(sys.argv[1], as_version=4).cells:
    if cell.cell_type == "code":
        with capture_output() as shown:
            result = shell.run_cell(cell.source, store_history=True)
        error = repr(result.error_in_exec or result.error_before_exec or "")
        seen.append((cell.source, shown.stdout, error))
print(json.dumps(seen))
"""


def run_alone(path, folder):
    """(text, what was printed, error) of each cell, where there is NumPy alone."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, path],
        cwd=folder,
        env={"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'course'}", "PATH": "", "HOME": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.parametrize(
    "chapter", [*CHAPTERS[:1], *external(*CHAPTERS[1:])], ids=lambda path: path.stem
)
def test_with_gaps_a_notebook_runs_to_its_end_on_numpy_alone(chapter, tmp_path):
    seen = run_alone(BLANK / chapter.name, tmp_path)
    checks = [text for source, text, _ in seen if source.startswith("check(")]
    assert len(checks) == 3 and all("not yet: " in text for text in checks)
    assert [error for _, _, error in seen if error != "''"] == []
    assert any("needs step" in text for _, text, _ in seen)


@pytest.mark.slow
@pytest.mark.parametrize(
    "chapter", [*external(*CHAPTERS[:-1]), *CHAPTERS[-1:]], ids=lambda path: path.stem
)
def test_with_the_solved_cells_its_checks_are_content(chapter, tmp_path):
    notebook = read(BLANK / chapter.name)
    solved = {
        with_gaps(c.source): c.source
        for c in read(chapter).cells
        if "gap" in c.metadata.get("tags", [])
    }
    for cell in notebook.cells:
        cell.source = solved.pop(cell.source, cell.source)
    assert solved == {}
    path = tmp_path / "filled.ipynb"
    path.write_text(json.dumps(notebook), encoding="utf-8")
    seen = run_alone(path, tmp_path)
    checks = [text for source, text, _ in seen if source.startswith("check(")]
    assert len(checks) == 3 and all(" is right: " in text for text in checks)
    assert [(source, error) for source, _, error in seen if error != "''"] == []
    assert not any("needs step" in text for _, text, _ in seen)


def test_a_variable_with_the_name_of_a_type_is_no_newer_class():
    """Chapter 15 has a variable `function`, which is what Python calls the type of `behind`."""
    assert outdated({"behind": lambda: 0, "function": lambda x: x}) is None
    old, new = (type("Op", (), {}) for _ in range(2))
    assert "older Op" in outdated({"add": old(), "Op": new})
