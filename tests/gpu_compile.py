"""Compiles kernels in the environment in which it runs: JSON in, JSON out.

in:   {"texts": [...], "capabilities": [[7, 5], ...]}
out:  [[what `figures` gives, or an error's text, for each capability] a text]
"""

import json
import multiprocessing
import re
import sys
from collections import Counter

from minihybrid.codegen.gpu.cuda import compile_ptx, link
from minihybrid.core.op import HybridError


def figures(text, capability):
    """What PTX and cubin of a kernel have; of loads and stores, how many of a width."""
    try:
        ptx = compile_ptx(text, capability)
        _, report = link(ptx, capability)
    except HybridError as error:
        return str(error)

    def widths(word):
        actual = re.findall(rf"{word}\.global(?:\.\w+)*?(?:\.v(\d))?\.[a-z]\d+\s", ptx)
        return dict(Counter(int(width or 1) for width in actual))

    return {
        "f64": ptx.count(".f64"),
        "loads": widths("ld"),
        "stores": widths("st"),
        "barriers": ptx.count("bar.sync"),
        "atomics": len(re.findall(r"\b(?:atom|red)\.", ptx)),
        "local": len(re.findall(r"(?:ld|st)\.local", ptx)),
        **report._asdict(),
    }


def every(job):
    text, capabilities = job
    return [figures(text, tuple(capability)) for capability in capabilities]


if __name__ == "__main__":
    request = json.load(sys.stdin)
    with multiprocessing.Pool() as pool:
        json.dump(
            pool.map(
                every, [(text, request["capabilities"]) for text in request["texts"]], chunksize=1
            ),
            sys.stdout,
        )
