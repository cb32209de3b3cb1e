"""The nets whose files lie in this folder: MXNet writes them, and a test builds them again.

`nn` is either library's.
"""


def images(nn):
    """Convolution, BatchNorm, Pooling, Dropout, Dense."""
    net = nn.HybridSequential(prefix="images_")
    with net.name_scope():
        net.add(
            nn.Conv2D(3, 3, padding=1, activation="relu"),
            nn.BatchNorm(),
            nn.MaxPool2D(2),
            nn.Conv2D(2, 1, use_bias=False),
            nn.PReLU(),
            nn.GlobalAvgPool2D(),
            nn.Flatten(),
            nn.Dropout(0.5),
            nn.Dense(2),
        )
    return net


def words(nn):
    """Embedding, LayerNorm, and whole numbers as the input."""
    net = nn.HybridSequential(prefix="words_")
    with net.name_scope():
        net.add(nn.Embedding(5, 4), nn.LayerNorm(), nn.Dense(3, flatten=False), nn.GELU())
    return net


def halves(nn):
    """float16 throughout: layers that MXNet computes so on a processor."""
    net = nn.HybridSequential(prefix="halves_")
    with net.name_scope():
        net.add(
            nn.Embedding(5, 4, dtype="float16"), nn.LayerNorm(), nn.PReLU(), nn.Activation("tanh")
        )
    net.cast("float16")
    return net
