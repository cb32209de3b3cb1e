"""Write minihybrid/data/oz.txt.bz2 from Project Gutenberg's files of two books.

Use: python book/make_oz.py 55.txt 486.txt

The files are https://www.gutenberg.org/ebooks/55 and /486, as ASCII. Everything that is
Project Gutenberg's own is left out: header, license and credits. What stays is the text of
L. Frank Baum, who died in 1919; both books were published in the United States before 1908.
Each paragraph becomes one line, because line ends of a printed page carry no meaning, and
characters that occur fewer than 20 times are replaced, so that the alphabet is small.
"""

import bz2
import re
import sys
from collections import Counter
from pathlib import Path

TARGET = Path(__file__).resolve().parent.parent / "minihybrid/data/oz.txt.bz2"
RARE, REPLACED = 20, {"|": "", "&": "and"}


def story(raw):
    """The paragraphs of a book, from its first chapter to its last sentence."""
    text = raw.replace("\r\n", "\n").partition("*** START")[2].partition("*** END")[0]
    text = text[text.index("\n1.  ") :].rpartition("End of ")[0]
    paragraphs = (" ".join(part.split()) for part in re.split(r"\n\s*\n", text))
    return [re.sub(r"^\d+\. ", "", part) for part in paragraphs if part]


def main():
    lines = [line for path in sys.argv[1:] for line in story(Path(path).read_text("ascii"))]
    text = "\n".join(lines) + "\n"
    for old, new in REPLACED.items():
        text = text.replace(old, new)
    rare = {letter for letter, n in Counter(text).items() if n < RARE}
    text = "".join(letter for letter in text if letter not in rare)
    TARGET.write_bytes(bz2.compress(text.encode("ascii")))
    print(
        f"{len(text)} characters, {len(set(text))} kinds, without {sorted(rare)}; "
        f"{TARGET.stat().st_size} bytes"
    )


if __name__ == "__main__":
    main()
