"""What jedi, which completes in notebooks and in many editors, knows of our names.

Run as `python ask_jedi.py SOURCE`, by a Python that has jedi: reads a JSON list of lines
that are being typed at the end of the source, and prints for each the names that jedi
offers, or how the call that was begun is called.
"""

import json
import sys
from pathlib import Path

import jedi

if __name__ == "__main__":
    source = Path(sys.argv[1])
    project = jedi.Project(source.parents[1])
    answers = []
    for line in json.load(sys.stdin):
        script = jedi.Script(source.read_text("utf-8") + line, path=source, project=project)
        if line.endswith("("):
            answers.append([signature.to_string() for signature in script.get_signatures()])
        else:
            answers.append([completion.name for completion in script.complete()])
    print(json.dumps(answers))
