"""Find prose that an editor would rewrite: python tools/prose.py [--count] [files]

It reads Markdown pages, the Markdown cells of notebooks, and the strings of Python files,
and prints `file:place: rule: excerpt`; with --count, a table of findings per file instead.
A rule is a pattern, so it sees the symptom only: a page without findings may still need
an editor, but a page with many always does.
"""

import ast
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LONGEST = 40  # words of a sentence
SEMICOLONS = 3  # per 1,000 words
COUNT = r"(?:a|one|two|three|four|five|six|seven|eight|nine|ten|some|many|several|\d+)"
DONE = "said|done|asked|wanted|needed|written|left|paid|read|kept|found|given|meant|shown|known"
THING = (
    r"shapes?|loss(?:es)?|messages?|graphs?(?! knows)|errors?|tables?|lines?|plans?|types?|tests?"
)
HEARD = "says?|tells?|told|wants?|knows?|asks?|waits?|meets?"

# rule -> what it looks for. The names are those of the rules in CONTRIBUTING.
RULES = {
    "inverted question": r"\bHow (?:many|much|long|few)\b[^.?!]{0,60}? (?<!them )ha(?:s|ve) "
    r"(?:the|an?|this|that|it|they|each|every|your|our)\b(?!\s+\w+ed\b)"
    r"|\b(?:What|How|Where|Why) (?:says|means|knows|goes|looks|finds|costs|lies) "
    r"(?:the|an?|this|it)\b(?=[^.!]*\?)",
    "more after its noun": rf"\b{COUNT} (?!or\b|and\b|is\b|times\b|thing or)[a-z]+ more\b"
    r"(?=\s*(?:[.,;:!?)]|$|\s(?:in|of|for|with|and|to|on|at|from|is|are|that|which)\b))",
    "what": rf"(?<!^)\b[wW]hat (?:is|was|are|were|has been) (?:{DONE})\b(?![^.!]*\?)"
    r"|\b[wW]hat (?:comes|came) (?:back|of|out|in)\b|\b[wW]hat (?:lies|stands|belongs)\b"
    r"|\bWhat (?:counts|matters) is (?:the|that)\b|\b(?:for|of|by|from) what (?:is|was|the)\b"
    r"|\bWhat an? \w+ [a-z]+s[^?]* is\b",
    "who": r"\b[Ww]hoever\b|(?:^|(?<=[.!?;:] ))Who [a-z]+\b(?![^.!]*\?)",
    "of ours": r"\bof (?:ours|mine|theirs)\b|\bof [A-Z]\w+['’]s"
    r"(?=[.,;:!?)]|$|\s(?:is|are|and|or|in|with|that|which|to|for|has|from)\b)",
    "nobody": r"\b(?:[Nn]obody|[Ss]omebody|[Aa]nybody|[Ee]verybody)\b",
    "stands": r"\b(?:stands?|stood) (?:in|at|on|there|here|below|above|beside|behind|under|between"
    r"|before|alone|as|only|first|last)\b|\b(?:lies?|lay) (?:in|at|on|behind|beside|between|below"
    r"|above|there|before)\b|\b(?:is|are|was|were|be) noted\b",
    "too": r", too\b",
    "chain": r"(?:^|(?<=[.!?] ))(?:So|And|But) [^.!?]*[.!?] (?:So|And|But) ",
    "personified": rf"\b(?:{THING}) (?:that |which )?(?:{HEARD})\b",
    "turn": r"\b(?:each|every|no|one|per|\d+|last|first|another) turns?\b"
    r"(?! out| into| off| on| the| an?\b)"
    r"|\bturns? of (?:the|a|its|this|that|each) loops?\b|\bloops? (?:\w+ )?turn(?:s|ed)\b",
    "written down": r"\b(?:writ(?:es?|ing|ten)|wrote|not(?:es?|ed|ing)) (?:\w+ )?down\b",
    "private word": r"\bway (?:up|down)\b|\bnearest memory\b|\bfar memory\b|(?<!'s )\b[Ll]aws?\b"
    r"|\broofs?\b|\bstand-ins?\b|\banew\b|\b(?:trace|compile|build|built|made)[sd]? again\b"
    r"|\brecords? of (?:an?|the|its|each|every|one|all) operators?\b|\bhand(?:s|ed|ing)? on\b"
    r"|\bjudg(?:e|es|ed|ing)\b|\boperators?'s? records?\b|\bthe (?:road|house) of\b",
    "participle": r"\b(?:is|are|was|were|be|been) (?:met|told|wanted|lent)\b"
    r"|\b(?:the|no|every|each|an?) (?:told|met|wanted|kept|lent|found) [a-z]+",
    "British": r"\b\w*(?:optimis|recognis|initialis|specialis|normalis|generalis|organis|colour"
    r"|behaviour|neighbour|favour|modell|labell)\w*|\b(?:licence|learnt|centre|grey|maths)\b",
}
PATTERNS = {name: re.compile(pattern, re.MULTILINE) for name, pattern in RULES.items()}
CODE = re.compile(
    r"^(?P<fence>```+|~~~+).*?^(?P=fence)[ \t]*$|\$\$.*?\$\$", re.DOTALL | re.MULTILINE
)
MARKS = (  # pattern -> its replacement, in this order
    (r"<!--.*?-->|<svg\b.*?</svg>", ""),
    (r"^(?:> ?)+", ""),
    (r"(`+)(?:(?!\n\n).)+?\1", "CODE"),
    (r"!?\[([^\]]*)\]\([^)]*\)", r"\1"),
    (r"<[/\w][^>\n]*>", "\n\n"),
    (r"^\s*(?:[-*]|\d+\.|#+)\s+|^\|[-|: ]*\|$", "\n\n"),
    (r"\|", "\n\n"),
    (r"\*+", ""),
)
END = re.compile(r"(?<=[.!?])[\"')]*\s+(?=[A-Z\"(])|\n\s*\n")


def plain(text: str) -> str:
    """Markdown without code, links and marks: what is read aloud."""
    text = CODE.sub("\n\n", text)
    for pattern, new in MARKS:
        text = re.sub(pattern, new, text, flags=re.MULTILINE | re.DOTALL)
    return text


def sentences(text: str) -> list[str]:
    """The sentences of plain text, each on one line."""
    return [s for part in END.split(text) if (s := " ".join(part.split()))]


def strings(source: str) -> Iterator[tuple[str, str]]:
    """(line, text) of each docstring and each string of four words or more."""
    pieces = set()  # of f-strings, which are read as a whole
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            pieces.update(map(id, node.values))
            text = "".join(
                str(v.value) if isinstance(v, ast.Constant) else "X" for v in node.values
            )
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in pieces
        ):
            text = node.value
        else:
            continue
        if len(re.findall(r"[A-Za-z]+ ", text)) > 3 and not re.search(r"\(\?|[\\^]|^\s*<", text):
            yield f"{node.lineno}", text


def texts(path: Path) -> Iterator[tuple[str, str]]:
    """(place, Markdown) of everything in a file that a person reads."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        for i, cell in enumerate(json.loads(source)["cells"]):
            if cell["cell_type"] == "markdown":
                yield f"[{i}]", "".join(cell["source"])
                form = cell["metadata"].get("predict", {})
                labels = [box["label"] for box in form.get("boxes", [])]
                yield f"[{i}] form", "\n\n".join([form.get("hint", ""), *labels])
    elif path.suffix == ".py":
        yield from strings(source)
    else:
        yield "", source


def findings(text: str) -> Iterator[tuple[str, str]]:
    """(rule, excerpt) for each fault in one text; semicolons are counted by file."""
    checked = sentences(plain(text))
    for paragraph in (" ".join(p.split()) for p in re.split(r"\n\s*\n", plain(text))):
        for name, pattern in PATTERNS.items():
            for match in pattern.finditer(paragraph):
                yield name, paragraph[max(0, match.start() - 20) : match.end() + 30]
    for sentence in checked:
        if len(sentence.split()) > LONGEST:
            yield "long sentence", f"{len(sentence.split())} words: {sentence[:60]}"


def of_file(path: Path) -> Iterator[tuple[str, str, str]]:
    """(place, rule, excerpt) for each fault in a file."""
    words, last = 0, []
    for place, text in texts(path):
        yield from ((place, *finding) for finding in findings(text))
        words += len(plain(text).split())
        last += [(place, m[0] + m[1]) for m in re.finditer(r".{,30};(?=(.{,30}))", plain(text))]
    if path.suffix != ".py":  # error messages put their remedy behind one
        for place, excerpt in last[max(1, words * SEMICOLONS // 1000) :]:
            yield place, "semicolon", excerpt


def files() -> list[Path]:
    """Every page, notebook and assignment of the book, without the notebooks with gaps."""
    notebooks = ("[0-9]*.ipynb", "recipes/*.ipynb", "assignments/*.ipynb")
    globs = ("*.md", "book/*.md", *(f"notebooks/{name}" for name in notebooks))
    paths = [path for glob in globs for path in sorted(ROOT.glob(glob))]
    return [path for path in paths if path.name != "CHANGELOG.md"]  # history stays as it was


def main(arguments: list[str]) -> None:
    count = "--count" in arguments
    paths = [Path(a).resolve() for a in arguments if not a.startswith("--")] or files()
    for path in paths:
        name = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
        results = list(of_file(path))
        if count:
            by_rule = Counter(rule for _, rule, _ in results).most_common()
            print(f"{len(results):5}  {name}  {', '.join(f'{rule} {n}' for rule, n in by_rule)}")
        else:
            for place, rule, excerpt in results:
                print(f"{name}:{place}: {rule}: {excerpt}")


if __name__ == "__main__":
    main(sys.argv[1:])
