"""Size and weights of the example network, the same for each engine: two convolutions, pooling, a dense layer, softmax."""

import argparse

import numpy

# Names of the layers as the model files have them.
LAYERS = ("conv1", "relu1", "pool1", "conv2", "sigmoid2", "mul2", "mean3", "flat3", "dense4", "prob5")
CLASSES = 10


class Shape:
    """Size of the image and of the layers."""

    def __init__(self, image, channels):
        self.image = image
        self.channels = channels
        self.random = numpy.random.default_rng(0)

    def weights(self, *shape):
        """Random weights, the same in each run."""
        return (self.random.standard_normal(shape) * 0.1).astype(numpy.float32)


def arguments():
    """Output file and shape from the command line."""
    parser = argparse.ArgumentParser(description="Makes an example network with random weights.")
    parser.add_argument("output", help="file or, for models of several files, their common name")
    parser.add_argument("--image", type=int, default=64, help="width and height of the image, a multiple of 2")
    parser.add_argument("--channels", type=int, default=32, help="channels of the first convolution, a multiple of 4")
    chosen = parser.parse_args()
    return chosen.output, Shape(chosen.image, chosen.channels)
