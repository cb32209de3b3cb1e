"""Sanitize text from students for printing, storing and embedding in a page."""


def readable(text, limit=1100):
    r"""Remove control characters and lone surrogates, and cut to `limit` characters.

    Newlines and tabs are kept; other unprintable characters are escaped.

    >>> readable("a\x1b[2J\ud800\u202e ü\n")
    'a\\x1b[2J\\ud800\\u202e ü\n'
    """
    text = str(text)
    if len(text) > limit:
        text = text[: limit - 3] + "..."
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)
