"""What minihybrid is compared with on a GPU: the vendor's product, PyTorch's nets."""

import contextlib


class Missing(Exception):
    """A library is not installed, or sees no GPU; the message is the reason."""


def torch_of_gpu():
    """PyTorch, which computes float32 as float32."""
    try:
        import torch
    except ImportError:
        raise Missing("PyTorch is not installed") from None
    if not torch.cuda.is_available():
        raise Missing(f"PyTorch {torch.__version__} sees no GPU")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    return torch


def vendor_product(n):
    """(a call of cuBLAS, its stream, what it is called through)."""
    with contextlib.suppress(Missing):
        torch = torch_of_gpu()
        a, b, out = (torch.ones((n, n), device="cuda") for _ in range(3))
        return (
            lambda: torch.mm(a, b, out=out),
            torch.cuda.current_stream().cuda_stream,
            f"torch {torch.__version__}",
        )
    try:
        import cupy
    except ImportError:
        raise Missing("neither PyTorch with a GPU nor CuPy is installed") from None
    a, b, out = (cupy.ones((n, n), cupy.float32) for _ in range(3))
    return (
        lambda: cupy.matmul(a, b, out=out),
        cupy.cuda.get_current_stream().ptr,
        f"cupy {cupy.__version__}",
    )


def _nets(torch):
    nn = torch.nn
    return {
        "mlp, batch 1": (
            (1, 512),
            lambda: nn.Sequential(
                nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 2)
            ),
        ),
        "lenet, batch 16": (
            (16, 1, 28, 28),
            lambda: nn.Sequential(
                nn.Conv2d(1, 6, 5, padding=2),
                nn.ReLU(),
                nn.MaxPool2d(2),
                nn.Conv2d(6, 16, 5),
                nn.ReLU(),
                nn.MaxPool2d(2),
                nn.Flatten(),
                nn.Linear(400, 120),
                nn.ReLU(),
                nn.Linear(120, 84),
                nn.ReLU(),
                nn.Linear(84, 10),
            ),
        ),
    }


def torch_calls(name, training):
    """({way: function that makes a call}, the wait for its end)."""
    torch = torch_of_gpu()
    shape, make = _nets(torch)[name]
    x = torch.randn(shape, device="cuda")
    labels = torch.zeros(shape[0], dtype=torch.long, device="cuda")

    def call_of(wrap):
        net = make().cuda()
        if not training:
            net.eval()
            wrapped = wrap(net)

            def predict():
                with torch.no_grad():
                    return wrapped(x)

            return predict
        wrapped, loss_of = wrap(net), torch.nn.CrossEntropyLoss()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.01)

        def step():
            optimizer.zero_grad(set_to_none=False)
            loss_of(wrapped(x), labels).backward()
            optimizer.step()

        return step

    def graph():
        call, stream = call_of(lambda net: net), torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):  # before it is recorded, all is set up
            for _ in range(3):
                call()
        torch.cuda.current_stream().wait_stream(stream)
        recorded = torch.cuda.CUDAGraph()
        with torch.cuda.graph(recorded):
            call()
        return recorded.replay

    def reduced():
        call = call_of(lambda net: torch.compile(net, mode="reduce-overhead"))
        for _ in range(5):  # it compiles, then records
            call()
        return call

    return {
        "eager": lambda: call_of(lambda net: net),
        "CUDA graph": graph,
        "reduce-overhead": reduced,
    }, torch.cuda.synchronize
