"""Outlines: the block structure of a net, as text next to its arrays.

Defines: `save_outline`, `load_outline`, which `Block.save` and `Block.load` use.

An outline only checks a net: the code that builds it must exist.
Not supported: plans and graphs; a hybridized net is traced again.
"""

import json

from minihybrid.core.files import FileError, parsed_json, read_whole, write_whole


def outline(block):
    """Return a block's class, name and state, and those of its children, as a dict."""
    return {
        "class": type(block).__name__,
        "name": block.name,
        "hybridized": bool(getattr(block, "_active", False)),
        "children": {name: outline(child) for name, child in block._children.items()},
    }


def save_outline(block, fname):
    """Write a block's outline to a file."""
    write_whole(fname, json.dumps(outline(block), indent=1).encode())


def load_outline(block, fname):
    """Check that a block has the outline in a file, and set the names stored there.

    Returns: the blocks that were hybridized individually, outermost first.
    Raises:  FileError if the file isn't an outline, or is that of another net.
    """
    outline = parsed_json(read_whole(fname), fname)
    matched = []  # (block, its entry): names are set only after all match
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
            list(below)  # checked; they are hybridized together with this block
        else:
            yield from below
    matched.append((block, entry))
