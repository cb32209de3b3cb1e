"""Write `answers.json`: what the programs beside this file find with MXNet 1.9.1.

Run it in an environment that has MXNet (benchmarks/README.md says how to make one):
    MXNET_ENGINE_TYPE=NaiveEngine benchmarks/envs/mxnet/bin/python \
        tests/golden/symbolic/make_golden.py
"""

import inspect
import json
import os
from pathlib import Path

import mxnet as mx
import programs

if os.environ.get("MXNET_ENGINE_TYPE") != "NaiveEngine":
    raise SystemExit("BatchNorm may read too early: set MXNET_ENGINE_TYPE=NaiveEngine")

answers = {}
for name, program in inspect.getmembers(programs, inspect.isfunction):
    if list(inspect.signature(program).parameters) == ["mx"] and name != "perceptron":
        with mx.name.NameManager():
            answers[name] = programs.plain(program(mx))
lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in answers.items())
Path(__file__).with_name("answers.json").write_text(f"{{\n{lines}\n}}\n")
