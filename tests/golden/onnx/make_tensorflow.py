"""Write small Keras networks as ONNX files, and their answers.

Run in an environment with tensorflow-cpu and tf2onnx:  python make_tensorflow.py
Made with TensorFlow 2.21, Keras 3.15.1 and tf2onnx 1.17.0.
"""

import os
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras
import numpy as np
import tensorflow as tf
import tf2onnx
from keras import layers

HERE = Path(__file__).parent


def nets():
    """name -> (network, opsets)."""
    data = keras.Input((8,))
    mlp = keras.Model(
        data,
        layers.Dense(3, activation="softmax")(
            layers.Dropout(0.3)(layers.Dense(12, activation="relu")(data))
        ),
    )
    image = keras.Input((9, 9, 2))
    x = layers.Conv2D(4, 3, strides=2, padding="same", use_bias=False)(image)
    x = layers.ReLU(max_value=6.0)(layers.BatchNormalization()(x))
    x = layers.DepthwiseConv2D(3, padding="same", activation="tanh")(x)
    y = layers.Conv2D(4, 1, dilation_rate=2, padding="same", activation="elu")(x)
    x = layers.MaxPooling2D(3, 2, padding="same")(layers.Add()([x, y]))
    x = layers.UpSampling2D(2)(layers.AveragePooling2D(2, 1, padding="same")(x))
    x = layers.Conv2DTranspose(3, 3, strides=2, padding="same")(x)
    x = layers.LeakyReLU(0.1)(layers.ZeroPadding2D(((1, 0), (0, 2)))(x))
    pooled = layers.GlobalAveragePooling2D()(x)
    flat = layers.Dense(5)(layers.Flatten()(layers.Cropping2D(2)(x)))
    conv = keras.Model(
        image, [layers.Concatenate()([pooled, flat]), layers.LayerNormalization()(pooled)]
    )
    return {"mlp": (mlp, (9, 13, 18)), "conv": (conv, (11, 17))}


def main():
    for i, (name, (net, opsets)) in enumerate(nets().items()):
        random = np.random.default_rng(i)
        for variable in net.weights:
            variable.assign(
                random.uniform(0.2, 0.8, variable.shape) - 0.4 * ("variance" not in variable.name)
            )
        x = random.standard_normal((2, *net.input_shape[1:])).astype("float32")
        outs = net(x, training=False)
        outs = outs if isinstance(outs, list) else [outs]
        np.savez_compressed(
            HERE / f"tensorflow-{name}.npz", x=x, **{f"y{k}": y.numpy() for k, y in enumerate(outs)}
        )

        @tf.function(input_signature=[tf.TensorSpec((None, *net.input_shape[1:]), name="x")])
        def run(x, net=net):
            return net(x, training=False)

        for opset in opsets:
            tf2onnx.convert.from_function(
                run,
                run.input_signature,
                opset=opset,
                output_path=HERE / f"tensorflow-{name}-{opset}.onnx",
            )
        net.export(
            HERE / f"tensorflow-{name}-keras.onnx", format="onnx", verbose=False, opset_version=18
        )


if __name__ == "__main__":
    main()
