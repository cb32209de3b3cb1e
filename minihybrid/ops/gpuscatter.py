"""Chapter 18. Sums on a GPU, to which many threads add at the same places.

Takes:   a writer of kernels, and where each number goes.
Gives:   `add_at_places`, for the gradients of operators that read at given places.

Two threads that read a sum, add, and write it back would lose one of the two numbers.
An atomic addition does all three in one step, in the order in which threads come: sums
of floats can differ in their last digits from call to call.
What is left out: sorting the places first, after which no two threads meet.
"""

ATOMIC = 4  # bytes of the smallest number that a GPU adds in one step


def add_at_places(k, data, out, lengths, place):
    """Add numbers (outer, m, inner) up at their places in zeros (outer, n, inner).

    lengths:  outer, n, m, inner.
    place:    the text of the place of number (i, m, j) on the middle axis.
    """
    outer, n, m, inner = lengths
    given, to = f"{data}[(i * {m} + m) * {inner} + j]", f"(i * {n} + at) * {inner} + j"
    with k.each(("i", out.size)):
        k(f"{out}[i] = T(0)")
    k.then()
    if out.dtype.itemsize >= ATOMIC:
        with k.each(("i", outer), ("m", m), ("j", inner)):
            k(f"at = {place}")
            k(f"atomic_add({out}, {to}, {given})")
        return
    with k.each(("i", outer), ("j", inner)), k.loop("m", m):  # nobody else is there
        k(f"at = {place}")
        k(f"{out}[{to}] += {given}")
