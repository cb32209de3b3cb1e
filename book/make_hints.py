"""Take the hints of all exercises out of the chapters, for `mx.hint`.

python book/make_hints.py     writes course/minihybrid_course/data/hints.json
"""

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILE = ROOT / "course/minihybrid_course/data/hints.json"
HINT = re.compile(r"<summary>Hint[^<]*</summary>\s*(.*?)\s*</details>", re.DOTALL)


def made():
    """The text of the file: exercise -> its hints, each in one line."""
    hints = {}
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            if cell["cell_type"] != "markdown":
                continue
            for part in re.split(r"^(?=#+ Exercise )", "".join(cell["source"]), flags=re.MULTILINE):
                if number := re.match(r"#+ Exercise (\d+\.\d+)", part):
                    texts = [" ".join(text.split()) for text in HINT.findall(part)]
                    hints.setdefault(number[1], []).extend(texts)
    return json.dumps(hints, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(made(), encoding="utf-8")
