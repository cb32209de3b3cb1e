"""What editors are asked about: an ordinary program (tests/book/test_editors.py)."""

import minihybrid as mx
from minihybrid import autograd, gluon, nd, np, npx, sym
from minihybrid.gluon import nn

x = nd.random.normal(shape=(4, 3))
label = nd.array([0, 1, 2, 0])
net = nn.HybridSequential()
net.add(nn.Dense(8, activation="relu"), nn.Dense(3))
net.initialize(mx.init.Xavier())
net.hybridize()
entropy = gluon.loss.SoftmaxCrossEntropyLoss()
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
with autograd.record():
    loss = entropy(net(x), label)
loss.backward()
trainer.step(4)

chances = nd.softmax(net(x), axis=1)
best = chances.argmax(axis=1)
part = x[:2].reshape((3, 2)).transpose()
product = nd.linalg.gemm2(x, part.reshape((3, 2)))
numbers = np.arange(6).reshape(2, 3).sum(axis=1)
sure = npx.sigmoid(numbers)
hidden = sym.FullyConnected(sym.var("data"), num_hidden=8)
names = hidden.softmax().list_arguments()
print(float(loss.mean().asscalar()), best.asnumpy().tolist(), product.shape, sure, names)
