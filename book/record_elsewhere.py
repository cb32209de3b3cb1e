"""Record what the chapter on other libraries shows: each library runs its script.

Use: python book/record_elsewhere.py [library ...]      (without a name: all of them)

The libraries get environments of their own under `benchmarks/envs`. Commit what changes
in `course/minihybrid_course/data/elsewhere/records.json`; `make test-all` proves that it
comes again.
"""

import json
import sys
from datetime import date
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from envs import python_of
from minihybrid_course.other_libraries import LIBRARIES, RECORDS, ran, recorded

if __name__ == "__main__":
    records = recorded() if RECORDS.exists() else {}
    for library in sys.argv[1:] or LIBRARIES:
        print(library, flush=True)
        records[library] = {"date": str(date.today()), **ran(library, python_of(library))}
    RECORDS.write_text(json.dumps(records, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
