"""Chapter 28: checkers of its exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
"""

from minihybrid.core.op import HybridError
from minihybrid_course.exercises.judging import Part, Parts, Refusal

EXERCISES = {
    "28.1": Parts(
        "for 20 layers: eager launches, hybridized launches, hybridized kernels",
        "a product and a relu per layer, or one kernel per layer and one launch for all",
        Part(
            "the number of eager launches",
            "9efbc67f60",
            "each operator is a launch",
            {
                20: "in eager mode, the activation is an operator of its own",
                60: "the kernel of the product adds the bias",
                1: "in eager mode, there's no graph, so each kernel is a launch",
            },
        ),
        Part(
            "the number of hybridized launches",
            "60cc54f6b4",
            "what does the graph do?",
            {
                20: "those are kernels; the graph launches all of them at once",
                0: "the graph itself has to be launched",
                40: "that's the eager call",
            },
        ),
        Part(
            "the number of hybridized kernels",
            "0be0d7a225",
            "where does a layer's relu run?",
            {40: "relu runs inside the kernel of its product", 1: "one launch, many kernels"},
        ),
    ),
    "28.2": Refusal(
        "victim(x)",
        "the simulated driver tracks every allocation; a real GPU might raise no error",
        HybridError,
        r"no memory was allocated, or it was freed",
        "the network ran: did you free the arena of its own plan?",
        {r"freed before": "cuMemFree itself failed: this address has already been freed"},
    ),
    "28.3": Parts(
        "three numbers: nodes updated in rotation, nodes updated with one array, bytes copied",
        "either an address is updated, or elements are copied",
        Part(
            "the number of nodes updated in rotation",
            "e7f27b48c8",
            "how many kernels of the network read the batch itself?",
            {
                0: "each batch has a different address, so the graph must be updated",
                4: "that's for all batches together; each call updates its own",
                3: "only the first kernel reads the batch",
            },
        ),
        Part(
            "the number of nodes updated with one array",
            "d81c736e48",
            "does the address change?",
            {
                1: "only the first call with it updates a node; then the address stays",
                4: "the address of the array stays the same",
            },
        ),
        Part(
            "the number of bytes copied",
            "4abc863da5",
            "a batch has 4 rows of 32 float32 elements",
            {
                128: "that's the number of elements; each has four bytes",
                2048: "that's all four batches; a call copies one",
                0: "the batch has to be copied into the array",
            },
        ),
    ),
    "28.4": Parts(
        "the name of the error, as text",
        "a dependency must be a node of the same graph",
        Part(
            "the name",
            "fd49679fb4",
            "the first of the two results is the error code; cuGetErrorName translates it",
            {
                "CUDA_SUCCESS": "then it accepted the node: is it from another graph?",
                "1": "that's its code; cuGetErrorName returns the name",
                "CUDA_ERROR_INVALID_HANDLE": "almost: a valid handle, in a different graph",
            },
        ),
    ),
}
