"""The net of this folder's files, for MXNet and for minihybrid alike."""


def make(gluon):
    """Operators of both namespaces on one input and one weight."""

    class Net(gluon.HybridBlock):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            with self.name_scope():
                self.weight = self.params.get("weight", shape=(4, 3))

        def hybrid_forward(self, F, x, weight):
            y = F.np.dot(x, weight.T) / 2 + 1
            y = F.npx.relu(y - F.np.mean(y, axis=1, keepdims=True))
            y = F.np.concatenate([y, F.np.sin(x), F.np.ones((2, 1))], axis=1)
            y = F.np.where(y > 0.5, y, F.np.abs(y) * 3) + (1 - F.np.exp(-y)) ** 2
            y = F.np.stack([y, F.npx.softmax(y)]).sum(axis=0).reshape(-1)
            return F.np.expand_dims(y, 0) * F.np.max(y)

    return Net(prefix="net_")
