"""Chapter 06: checkers of its exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
"""

from functools import partial

from minihybrid_course.exercises.ch05 import improves
from minihybrid_course.exercises.judging import Exercise, Part, Parts, Refusal

TURNED = {
    "transpose(x)": (lambda n, x: n.transpose(x), 1),
    "transpose(transpose(x))": (lambda n, x: n.transpose(n.transpose(x)), 0),
    "relu(transpose(x))": (lambda n, x: n.relu(n.transpose(x)), 2),
    "transpose(transpose(x)) * 2": (lambda n, x: n.transpose(n.transpose(x)) * 2, 1),
    "transpose, three times": (lambda n, x: n.transpose(n.transpose(n.transpose(x))), 1),
}


EXERCISES = {
    "6.1": Parts(
        "the number of plans",
        "one plan per shape, and one of the four calls had a known shape",
        Part(
            "the number of plans",
            "40f1c3230b",
            "there's one plan per shape; which shapes did it get?",
            {
                4: "the last call has the shape of the first and finds its plan",
                1: "a plan has fixed shapes, so each number of images needs its own",
                2: "there were three different numbers of images",
            },
        ),
    ),
    "6.2": Exercise(
        "your pass untwist(graph)",
        partial(
            improves,
            TURNED,
            "the result of transposing twice already exists",
            "two that cancel are removed, and a single one stays",
        ),
    ),
    "6.3": Parts(
        "a pair: how many arguments the plan takes and how many gradients backward returns",
        "every input is an argument, and each argument has a gradient",
        Part(
            "the number of arguments",
            "c20f3614fd",
            "the image, and the parameters of both layers",
            {
                1: "if the parameters weren't arguments, training couldn't update them",
                3: "each layer has a weight and a bias",
                4: "the image is also an argument",
                6: "g is an argument of backward, not of the plan",
            },
        ),
        Part(
            "the number of gradients",
            "c20f3614fd",
            "look at the variables that `with_gradient` differentiates by",
            {
                4: "the image's gradient is also computed, although it's never used",
                1: "g is an input; there's one gradient per argument",
                6: "the first output is the value, not a gradient",
            },
        ),
    ),
    "6.4": Refusal(
        "net.export(...)",
        "nano reports the attribute it missed, not the call you forgot",
        AttributeError,
        r"'graph'",
        "the files were written, because this network had already been called",
        {
            r"no attribute": "something else is missing here: create a network, and export it",
            r"export": "that's the engine's message: export nano's network",
        },
    ),
}
