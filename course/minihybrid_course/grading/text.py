"""Text from students, made safe to print, to store and to put into a page."""


def readable(text, limit=1100):
    r"""The text without control characters and lone surrogates, cut to `limit` characters.

    Line breaks and tabs stay; anything else that doesn't print is written as an escape.

    >>> readable("a\x1b[2J\ud800\u202e ü\n")
    'a\\x1b[2J\\ud800\\u202e ü\n'
    """
    text = str(text)
    if len(text) > limit:
        text = text[: limit - 3] + "..."
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)
