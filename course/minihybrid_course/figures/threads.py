"""Figures of GPUs: threads, shared memory, launches and the roofline.

Uses:    kernels with their grid and block, `kernel[4, 8]`, and their arguments; they run
         on the simulated GPU, which records their accesses.
Defines: `grid`, `tree`, `stream`, `roofline`.

Limits:  times aren't simulated.
"""

import math
from collections import defaultdict

from minihybrid.core.op import HybridError
from minihybrid.simt import watch
from minihybrid.view.viz import plural
from minihybrid_course.figures.calls import line_by_line
from minihybrid_course.ink import LINE, WIDTH, Figure, Panel

MAX_DRAWN = 64  # threads, or elements of a shared array


def recorded(launch, arguments):
    """Run a kernel; return (the run, all accesses to elements)."""
    record = []
    return launch.kernel.run(launch.grid, launch.block, arguments, record), record


def grid(launch, *arguments):
    """Draw the blocks of a launch, its threads with their indices, and idle ones."""
    run, record = recorded(launch, arguments)
    if run.n_threads > MAX_DRAWN:
        raise HybridError(
            f"grid: the launch has {run.n_threads} threads, but at most {MAX_DRAWN} can be drawn"
        )
    busy = {use.t for use in record}
    panel = Panel(f"{plural(run.n_threads // run.n_block, 'block')} of {run.n_block} threads")
    left, idle = 70, []
    across = min((WIDTH - left) / min(run.n_block, 8), 54)
    for t in range(run.n_threads):
        block, thread = divmod(t, run.n_block)
        if thread % 8 == 0:
            y = panel.row(38, 4)
            if thread == 0:
                panel.text(0, y + 24, f"block {block}", anchor="start", bold=True)
        x = left + thread % 8 * across
        ink = {"ink": "kernel"} if t in busy else {"ink": "plain", "dashed": True}
        panel.box(x, y, across - 4, 38, [str(thread), f"({t})"], **ink)
        idle += [] if t in busy else [t]
    panel.note("upper number: threadIdx; in brackets: the place in the grid")
    panel.tell(f"{len(busy)} of {run.n_threads} threads use memory.")
    if idle:
        panel.note(f"dashed: {plural(len(idle), 'thread')} with nothing to do")
        panel.tell(f"Idle: {', '.join(map(str, idle))}.")
    return Figure("A launch: blocks, and threads with two numbers", panel)


def tree(launch, *arguments, array="s"):
    """Draw which elements of a shared array each step reads and writes.

    A step is the code between two barriers; steps that don't write `array` are
    omitted.
    """
    _, record = recorded(launch, arguments)
    size = 1 + max((use.i for use in record if use.array.name == array), default=0)
    if size > 16:
        raise HybridError(f"tree: '{array}' has {size} elements, but at most 16 can be drawn")
    reads, writes = defaultdict(set), defaultdict(dict)
    for use in record:
        if use.array.name == array and use.kind == "read":
            reads[use.phase, use.t].add(use.i)
        elif use.array.name == array:
            writes[use.phase][use.i] = use.t
    across, panel, above = WIDTH / size, Panel(f"{array}, step by step"), None
    for phase, elements in sorted(writes.items()):
        y = panel.row(28, 30)
        for i in range(size):
            now = {"ink": "kernel"} if i in elements else {"ink": "plain", "fill": 0}
            panel.box(
                i * across + 2, y, across - 4, 28, f"t{elements[i]}" if i in elements else "", **now
            )
        reads_of = []
        for i, t in elements.items() if above is not None else ():
            for source in sorted(reads[phase, t]):
                ends = (source + 0.5) * across, above + 28, (i + 0.5) * across, y - 2
                panel.arrow(*ends, "given", 1.2)
            reads_of.append(f"{array}[{i}] from {' and '.join(map(str, sorted(reads[phase, t])))}")
        written = f"{plural(len(elements), 'thread')} write"
        panel.tell(f"Step {phase}: {', '.join(reads_of) or written}.")
        above = y
    panel.note("t0: written by thread 0; a barrier stands between two rows")
    caption = f"A tree adds {size} elements in {len(writes) - 1} steps, a loop in {size - 1} steps"
    return Figure(caption, panel)


def stream(hybrid, *inputs):
    """Draw the CPU's launches on a GPU: separate kernels, or one recorded graph.

    hybrid:  a hybridized net on a simulated GPU; it is called twice.
    """
    launched = {}
    for name, net in (("eager", line_by_line(hybrid)), ("hybridized", hybrid)):
        net(*inputs)
        device = inputs[0].data.device
        before = device.n_launches
        with watch() as seen:
            net(*inputs)
        launched[name] = device.n_launches - before, [launch.kernel for launch in seen]
    panels = []
    for name, (n_launches, kernels) in launched.items():
        panel = Panel(f"{name}: {plural(n_launches, 'launch')}, {plural(len(kernels), 'kernel')}")
        y = panel.row(LINE)
        panel.text(50, y + 12, "CPU")
        panel.text(WIDTH - 95, y + 12, "GPU stream")
        last = None
        for k, kernel in enumerate(kernels):
            y = panel.row(26, 12)
            if k < n_launches:
                panel.box(0, y, 100, 26, "launch", "python")
                panel.arrow(104, y + 13, 146, y + 13)
            if last is not None:
                panel.arrow(WIDTH - 95, last, WIDTH - 95, y - 1, dashed=n_launches > 1)
            panel.box(150, y, WIDTH - 150, 26, kernel, "kernel")
            last = y + 26
        panel.tell(f"{plural(n_launches, 'launch')} for {', '.join(kernels)}.")
        panels.append(panel)
    eager, hybridized = (plural(n, "launch") for n, _ in launched.values())
    return Figure(f"Line by line, a call needs {eager}; hybridized, {hybridized}", *panels)


def roofline(flops, nbytes, intensity):
    """Draw the roofline: memory-bound on the left, compute-bound on the right.

    flops, nbytes: peak operations and bytes per second.
    intensity:     name of a kernel -> its operations per byte.
    """
    panel, left, high = Panel("peak operations per second"), 30, 200
    top = panel.row(high + LINE, 8)
    ridge = flops / nbytes
    low = math.floor(math.log2(min(*intensity.values(), ridge))) - 1
    end = math.ceil(math.log2(max(*intensity.values(), ridge))) + 1
    floor = math.log2(nbytes * 2**low)

    def place(each):
        x = left + (math.log2(each) - low) / (end - low) * (WIDTH - left)
        value = math.log2(min(flops, nbytes * each))
        return x, top + high - (value - floor) / (math.log2(flops) - floor) * (high - 50)

    panel.line([(left, top), (left, top + high), (WIDTH, top + high)])
    panel.line([place(2**low), place(ridge), place(2**end)], "python", 3)
    x, y = place(ridge)
    panel.text(WIDTH, y - 26, "arithmetic", anchor="end")
    panel.text(place(2**low)[0] + 8, place(2**low)[1] - 60, "bandwidth", anchor="start")
    for each in range(low, end + 1, 2):
        panel.text(place(2**each)[0], top + high + LINE, f"{2.0**each:g}")
    panel.note("operations per byte; every load goes to DRAM")
    for k, (name, each) in enumerate(intensity.items(), 1):
        x, y = place(each)
        panel.line([(x, y), (x, top + high)], dashed=True)
        panel.box(x - 4, y - 4, 8, 8, ink="kernel", fill=1)
        panel.text(x - 12, y - 6, str(k), bold=True)
        share = min(1.0, each / ridge)
        panel.note(f"{k}: {name}, {each:g} per byte, at most {share:.0%}")
        panel.tell(f"{name}: {each:g} operations per byte, at most {share:.0%} of the peak.")
    panel.tell(f"The ridge is at {ridge:.3g} operations per byte.")
    return Figure("A roofline", panel)
