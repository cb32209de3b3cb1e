"""Right and wrong answers to the exercises of chapter 30."""

import minihybrid as mx
from minihybrid import nd


def pulled(shape, f=lambda x: x.sum()):
    """A pullback that is called with a cotangent of this shape."""
    return lambda: mx.vjp(f, nd.ones((3,)))[1](nd.ones(shape))


def curvature(f, x, v, part=1, first=0, gradient=True):
    """The Hessian times v, or what's near it."""

    def slope(x):
        y, pullback = mx.vjp(f, x)
        return pullback(nd.ones_like(y))[first] if gradient else y

    return mx.jvp(slope, [x], [v])[part]


def central_difference(f, x, v, h=1e-4):
    """The forbidden way."""

    def slope(x):
        y, pullback = mx.vjp(f, x)
        return pullback(nd.ones_like(y))[0]

    return (slope(x + v * h) - slope(x - v * h)) / (2 * h)


ANSWERS = {
    "30.1": (
        (784, 10, 1),
        [
            ((10, 784, 1), "a column for each input"),
            ((10, 10, 1), "that's the number of rows"),
            ((784, 784, 1), "a VJP gives a row"),
            ((784, 10, 10), "the loss is one number"),
        ],
    ),
    "30.2": (
        pulled((3,)),
        [
            (pulled((1,)), "has the shape of the output"),
            (lambda: mx.vjp(lambda x: x, nd.ones(3)), "only returns the pullback"),
            (pulled((3,), lambda x: x.elemwise_add(nd.ones(2))), "the function itself must run"),
            (lambda: pulledd(3), "this is a different error"),
        ],
    ),
    "30.3": (
        curvature,
        [
            (lambda f, x, v: curvature(f, x, v, part=0), "the result is 2 at [0] instead of 6"),
            (lambda f, x, v: curvature(f, x, v, gradient=False), "not of the function"),
            (lambda f, x, v: v * 2, "for `(x * x * x).sum()`"),
            (central_difference, "only the first digits are right"),
            (lambda f, x, v: [curvature(f, x, v)], "it returns a list"),
        ],
    ),
}
