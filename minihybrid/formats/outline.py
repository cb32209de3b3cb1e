"""Outline: which blocks a net is made of, as text beside its arrays.

Takes:   a block, made by the same code as the one that was saved.
Gives:   `save_outline`, `load_outline`, which `Block.save` and `Block.load` use.

An outline is for checking, not for building: the code that makes the net must be there.
What is left out: plans and graphs; a hybridized net traces itself again.
"""

import json

from minihybrid.core.files import FileError, parsed_json, read_whole, write_whole
from minihybrid.core.hooks import own_names


def outline(block):
    """A block's class, name and state, and those of its children, as a dictionary."""
    return {
        "class": type(block).__name__,
        "name": block.name,
        "hybridized": bool(getattr(block, "_active", False)),
        "children": {name: outline(child) for name, child in block._children.items()},
    }


def save_outline(block, fname):
    """Write the outline of a block to a file."""
    write_whole(fname, json.dumps(outline(block), indent=1).encode())


def load_outline(block, fname):
    """Check that a block has the outline in a file; give it the names written there.

    Returns: the blocks that were hybridized on their own, outermost first.
    Raises:  FileError if the file is no outline, or that of another net.
    """
    outline = parsed_json(read_whole(fname), fname)
    matched = []  # (block, what the file says of it): nothing changes before all fit
    try:
        active = list(_match(block, outline, fname, matched))
    except (KeyError, TypeError, AttributeError):
        raise FileError(
            f"{fname}: this is not the outline of a net; it was not "
            "written by Block.save, or it is damaged"
        ) from None
    for part, entry in matched:
        part._name = entry["name"]
        children = list(part._children.values())
        part._children.clear()
        part._children.update(zip(entry["children"], children, strict=True))
    return active


def _match(block, entry, fname, matched):
    kind, children = type(block).__name__, entry["children"]
    if not isinstance(entry["name"], str):
        raise TypeError
    if kind != entry["class"] or len(children) != len(block._children):
        raise FileError(
            f"{fname}: the file tells of a {entry['class']!s:.60} with {len(children)} "
            f"children where this net has the {kind} '{block.name}' with "
            f"{len(block._children)}; make the net by the code that it was saved from"
        )
    if entry["hybridized"]:
        yield block
    for part, child in zip(children.values(), block._children.values(), strict=True):
        below = _match(child, part, fname, matched)
        if entry["hybridized"]:
            list(below)  # it is checked, and hybridized together with this block
        else:
            yield from below
    matched.append((block, entry))


def __dir__():
    return own_names(globals())
