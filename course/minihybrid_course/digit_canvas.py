"""A canvas: the reader draws a digit, and an exported net classifies it.

Uses:    a hybridized net that has been called once.
Defines: `canvas`, HTML that embeds the net, compressed, as a WebAssembly program and runs it:
         ten bars, and the output of each graph node next to the picture.

Not supported: nets with inputs other than one square image, or outputs other than a
probability for each digit, as softmax computes them.
"""

import base64
import copy
import gzip
import json
import math

from minihybrid.core.op import HybridError
from minihybrid.formats.wasm import written
from minihybrid.view.hybrid_view import page
from minihybrid_course import HERE


class Canvas:
    """A canvas for one net; a notebook shows it.

    shape:   the net's input shape.
    """

    def __init__(self, net, shape):
        self.shape = tuple(shape)
        self.side = math.isqrt(math.prod(self.shape))
        if self.side**2 != math.prod(self.shape):
            raise HybridError(
                f"canvas: an input of shape {self.shape} is no square picture; needed: as many "
                "numbers as a square of dots has, such as (1, 1, 8, 8)"
            )
        entry = copy.copy(net._newest("canvas"))
        nodes = shown(entry.graph, entry.names)
        again, entry.graph = entry.again, looked_into(entry.graph, entry.names)
        entry.again = lambda specs: looked_into(again(specs), entry.names)
        module, program = written(entry)
        self.data = {
            "module": module,
            "program": base64.b64encode(program).decode(),
            "nodes": [{"op": n.op.name if n.op else "input", "name": n.name} for n in nodes],
            "shape": self.shape,
        }

    def __repr__(self):
        return (
            f"A canvas of {self.side} by {self.side} dots; to draw on it, open the notebook in "
            "JupyterLab or Colab, or the page in a browser."
        )

    def _repr_html_(self):
        packed = gzip.compress(json.dumps(self.data).encode(), mtime=0)
        return page(
            '<p class="without">Here is a canvas to draw a digit on. It needs JavaScript, which '
            "is switched off in this browser, or a notebook that is "
            'trusted.</p>\n<div class="parts"><div class="draw">'
            '<svg class="paper" viewBox="0 0 32 32" tabindex="0" role="application" '
            'aria-label="Canvas. Arrow keys move the pen, Space lowers and lifts it, '
            'Backspace starts again.">'
            '<g class="ink"></g><circle class="pen" r="1.2"/></svg>'
            '<p class="buttons"><button type="button">start again</button></p></div>\n'
            '<ol class="bars" aria-label="what the net answers"></ol>\n'
            '<p class="said" role="status"></p>\n'
            '<ol class="graph" aria-label="what each node of the graph gives"></ol></div>\n'
            f"<template>{base64.b64encode(packed).decode()}</template>",
            "canvas",
            HERE,
        )


def shown(graph, names):
    """Return the nodes whose outputs are shown: the input and each operator, in order."""
    nodes = [n for n in graph.nodes if n.op or n.name in names]
    last = graph.heads[0][0]
    return [*(n for n in nodes if n is not last), last]


def looked_into(graph, names):
    """Return the graph with each node's first output as an additional output."""
    return graph.rebuilt(graph.nodes, [(n, 0) for n in shown(graph, names)])


def canvas(net, shape=(1, 1, 8, 8)):
    """Show a canvas for drawing a digit, which a net classifies in the page.

    net:     a hybridized net that has been called once.
    shape:   its input shape, whose elements are the rows of a square image.
    Raises:  HybridError if they aren't a square, or there is no graph yet.

    >>> from minihybrid import gluon, nd
    >>> net = gluon.nn.HybridSequential()
    >>> net.add(gluon.nn.Dense(10), gluon.nn.HybridLambda("softmax"))
    >>> net.initialize()
    >>> net.hybridize(backend="numpy")
    >>> _ = net(nd.ones((1, 64)))
    >>> canvas(net, shape=(1, 64))
    A canvas of 8 by 8 dots; to draw on it, open the notebook in JupyterLab or Colab, or the
    page in a browser.
    """
    return Canvas(net, shape)
