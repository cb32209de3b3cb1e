"""The commands that README.md gives for use without make are those of the Makefile."""
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def recipes(makefile):
    """Return {target: its commands}, as they are typed in an activated environment."""
    build = re.search(r"^BUILD_BOOK := (.*)$", makefile, re.MULTILINE)[1]
    makefile = makefile.replace("$(BUILD_BOOK)", build).replace("$(BIN)/", "")
    makefile = re.sub(r"\\\n\s*", "", makefile)
    makefile = re.sub(r"\$\(if \$\(\w+\),\w+,(\w+)\)", r"\1", makefile)  # not set
    extra = r"cd tests && nice -n 10 \.\./| --quiet|(?<=\w) \$\(\w+\)| \|\| \{.*"
    makefile = re.sub(extra, "", makefile)
    found = {}
    for target, body in re.findall(r"^([\w-]+): .*\n((?:\t.*\n)+)", makefile, re.M):
        commands = [line.strip().lstrip("@") for line in body.splitlines()]
        found[target] = [c for c in commands if not c.startswith("echo")]
    return found


def listed(readme):
    """Return {target: the commands beside it} from the table of the README."""
    rows = re.findall(r"^\| `make ([\w-]+)`[^|]* \| (.*) \|$", readme, re.MULTILINE)
    return {target: re.findall(r"`([^`]+)`", cell.replace("in `tests`: ", ""))
            for target, cell in rows}


def test_commands_without_make_are_those_of_the_makefile():
    in_make = recipes((ROOT / "Makefile").read_text(encoding="utf-8"))
    in_readme = listed((ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(in_readme) == 13
    for target, commands in in_readme.items():
        assert commands == in_make[target], target
