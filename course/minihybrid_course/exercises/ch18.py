"""Chapter 18: checkers of its exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
"""

import numpy as np

from minihybrid.core.op import ShapeError
from minihybrid_course.exercises.judging import Part, Parts, Refusal

EXERCISES = {
    "18.1": Parts(
        "a pair: the rows and the vectors of the tile",
        "almost square, and the row of b also needs registers",
        Part(
            "the number of rows",
            "a64d52819d",
            "count R V + V + 1 registers for each tile, and take the fewest loads that fit",
            {
                3: "3 x 4 needs 17 registers, V of them for the row of b",
                5: "with 5 rows, only 2 vectors fit, and that takes more loads",
                7: "7 x 2 fits, but it's tall and narrow, so it takes more loads",
            },
        ),
        Part(
            "the number of vectors",
            "1f7fbe976b",
            "count R V + V + 1 registers for each tile, and take the fewest loads that fit",
            {4: "4 vectors need 4 registers for the row of b", 2: "3 vectors fit as well"},
        ),
    ),
    "18.2": Parts(
        "the number of registers that the largest of the tiles needs",
        "none of these processors has that many, so the compiler has to spill",
        Part(
            "the number of registers",
            "585bf65e92",
            "each vector of the tile needs a register, and what else does? Step 4 counts them",
            {
                32: "these hold the sums; the row of b and the element of a need some as well",
                36: "the element of a needs one as well",
                33: "the row of b needs one per vector",
                19: "that's the 8 x 2 tile, which isn't the largest",
                16: "that's what many processors have, not what the tile needs",
            },
        ),
    ),
    "18.4": Refusal(
        "...",
        "the operator definition checks the shapes before any plan is built",
        ShapeError,
        r"the inner lengths \d+ and \d+ must be equal",
        lambda result: (
            f"it returned a product of shape {np.shape(result)}: these inner lengths match"
        ),
        {r"shape|axes|axis": "the shapes are rejected, but not for their inner lengths"},
    ),
}
