"""Chapter 17. Kernels on a simulated GPU, compiled: faster, without checks."""

from minihybrid.simt.program import Program


class FastProgram(Program):
    """A kernel compiled by Numba: `Program` without checks and counts."""

    def run(self, grid, block, args):
        """Run the kernel for every thread of a grid of blocks."""
        super().run(grid, block, args, check=False)
