"""The example network as the two files of ncnn: OUTPUT.param, OUTPUT.bin."""

import numpy

import shape


def main():
    output, size = shape.arguments()
    first, second = size.channels, 2 * size.channels
    layers = [
        f"Input            data   0 1 x 0={size.image} 1={size.image} 2=3",
        f"Convolution      conv1  1 1 x c1 0={first} 1=3 4=1 5=1 6={27 * first} 9=1",
        "Pooling          pool1  1 1 c1 p1 0=0 1=2 2=2",
        f"Convolution      conv2  1 1 p1 c2 0={second} 1=3 4=1 5=1 6={9 * first * second} 9=1",
        "Pooling          mean3  1 1 c2 g3 0=1 4=1",
        f"InnerProduct     dense4 1 1 g3 d4 0={shape.CLASSES} 1=1 2={second * shape.CLASSES}",
        "Softmax          prob5  1 1 d4 y 0=0",
    ]
    with open(output + ".param", "w", encoding="ascii") as file:
        # The magic number; layers and blobs.
        file.write("7767517\n")
        file.write(f"{len(layers)} {len(layers)}\n")
        file.write("\n".join(layers) + "\n")
    with open(output + ".bin", "wb") as file:
        counts = [(27 * first, first), (9 * first * second, second), (second * shape.CLASSES, shape.CLASSES)]
        for weights, biases in counts:
            # Zero: the weights follow as they are.
            file.write(numpy.uint32(0).tobytes())
            file.write(size.weights(weights).tobytes())
            file.write(size.weights(biases).tobytes())


main()
