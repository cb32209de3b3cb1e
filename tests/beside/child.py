"""Run programs on minihybrid, in our Python, or on MXNet, in its own.

    mxnet/bin/python -m beside.child     # in tests/: one line of JSON in, one out

It needs NumPy and the engine under test, and no other file than `programs.run`.
"""

import json
import os
import sys

import numpy as np
from programs.run import Program, arrays_of, run


def answers(mx, program):
    """name -> array: outputs, gradients of inputs, states afterwards.

    What stops it stands under "error", as a text.
    """
    result = {}
    try:
        _answer(mx, program, result)
    except Exception as error:  # whatever it is, it is the answer
        text = f"{type(error).__name__}: {error}"
        result["error"] = text.partition("\nStack trace")[0]
    return result


def _answer(mx, program, result):
    values = [mx.nd.array(v, dtype=v.dtype) for v in arrays_of(program)]
    variables = {
        i: v for i, v in enumerate(values) if is_float(v) and program.inputs[i].role != "state"
    }
    for value in variables.values():
        value.attach_grad()
    with mx.autograd.record(train_mode=program.train):
        outs = run(mx.nd, program, values)
    result |= {f"output {i}": out.asnumpy() for i, out in enumerate(outs)}
    heads = [out for out in outs if is_float(out)]
    if heads and variables:
        seeds = [mx.nd.array(seed(out.shape), dtype=out.dtype) for out in heads]
        mx.autograd.backward(heads, seeds, train_mode=program.train)
        result |= {f"gradient {i}": v.grad.asnumpy() for i, v in variables.items()}
    result |= {
        f"state {i}": v.asnumpy() for i, v in enumerate(values) if program.inputs[i].role == "state"
    }


def is_float(value):
    return np.dtype(value.dtype).kind == "f"


def seed(shape):
    """What comes back to an output: numbers of both signs, none of them 0."""
    size = int(np.prod(shape))
    return (((np.arange(size) * 7 % 5) - 1.5) / 2).reshape(shape)


def packed(result):
    """Answers as JSON has them; repr of a number is exact."""
    return json.dumps(
        {
            k: v if isinstance(v, str) else [str(v.dtype), v.shape, v.ravel().tolist()]
            for k, v in result.items()
        }
    )


def unpacked(line):
    return {
        k: v if isinstance(v, str) else np.array(v[2], v[0]).reshape(v[1])
        for k, v in json.loads(line).items()
    }


def answers_of_a_copy(mx, program):
    """The same from a copy of this process: what it breaks, it breaks for itself."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        with os.fdopen(writing, "w") as pipe:
            pipe.write(packed(answers(mx, program)))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return packed({"error": f"the process died with {code}"}) if code else text


if __name__ == "__main__":
    import mxnet

    for line in sys.stdin:
        print(answers_of_a_copy(mxnet, Program.from_json(line)), flush=True)
