"""Errors that name what the caller used: the layer, or the operator's public name.

Defines: `said_by_block`, for a layer's operators; `said_by_op`, for the parts of a composite
         one; `said_by_node`, for a graph's; `BLOCKS`, the blocks that composed its nodes.

This code runs only after a call has failed.
"""

import re
from weakref import WeakKeyDictionary

from minihybrid.core.name import hint
from minihybrid.core.op import HybridError
from minihybrid.core.source_lines import is_ours
from minihybrid.ops.infix import SIGN, SIGNS, said_by, shorten
from minihybrid.ops.registry import OPS

PARTS = r"_(contrib|image|linalg|np|npx|random)i?_(\w+)"
OF_LAYERS = {  # operators' arguments -> those of layers
    "num_hidden": "units",
    "num_filter": "channels",
    "kernel": "kernel_size",
    "stride": "strides",
    "pad": "padding",
    "dilate": "dilation",
    "num_group": "groups",
    "state_size": "hidden_size",
}
BLOCKS = WeakKeyDictionary()  # node of a symbol -> class of the block that composed it
BY_CALLER = ("HybridLambda", "Lambda", "SymbolBlock")  # their operators have the caller's names


def said_by_block(block, error):
    """Make an operator's error start with the layer that called it.

    If user code called the operator, inside the block, its name is what the caller used.
    """
    place, within = error.__traceback__, False
    while place and is_ours(place.tb_frame):
        method = place.tb_frame.f_code.co_name
        if method in ("__call__", "forward", "hybrid_forward"):  # of this block, or one inside
            within = method != "__call__" and place.tb_frame.f_locals.get("self") is block
        place = place.tb_next
    head, _, rest = str(error).partition(": ")
    is_operator = head in OPS or re.fullmatch(rf"(contrib|linalg|random|npx?)\.\w+|{SIGN}", head)
    kind = type(block).__name__
    if head.startswith("a traced function returned"):
        error.args = (f"{kind}: its forward pass{head.removeprefix('a traced function')}",)
    if within and is_operator and not place and kind not in BY_CALLER:
        title = f"{kind} '{block.name}'" if block._reg_params else kind
        error.args = (f"{title}: {in_words_of_layers(rest)}",)
    shorten(error)


def in_words_of_layers(text):
    """Return an operator's message with a layer's arguments."""
    text = re.sub(r"\b(\w+)(?==)", lambda m: OF_LAYERS.get(m[1], m[1]), text)
    text = re.sub(r"^input '\w+' is (.*), but an NDA", r"\1 is given, but an NDA", text)
    return text.partition("; broadcast_*")[0]


def title_of(op, name=None):
    """Return an operator's public name, for errors; name: its node's."""
    if op.name in SIGNS and (name is None or hint(op) in name):
        return SIGNS[op.name]
    part = re.fullmatch(PARTS, op.name)
    return f"{part[1]}.{part[2]}" if part else op.name.strip("_")


def said_by_op(op, specs, attrs, error):
    """Return an error inside a composite operator, in a sentence with its name."""
    if isinstance(error, HybridError):
        said_by(title_of(op), error)
        return error
    return op.sentence(HybridError, specs, attrs, error)


def said_by_node(node, error):
    """Return an error of a node's shape rule, with the names of the operator, or of the layer
    that composed the node, and of the node.
    """
    said_by(title_of(node.op, node.name), error)
    block = BLOCKS.get(node)
    if block and block.__module__.startswith("minihybrid.") and block.__name__ not in BY_CALLER:
        rest = str(error).partition(": ")[2]
        error.args = (f"{block.__name__}: {in_words_of_layers(rest)}",)
    return type(error)(f"{error} (node '{node.name:.60}')")
