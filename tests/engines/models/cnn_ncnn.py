"""The example network as the two files of ncnn: OUTPUT.param, OUTPUT.bin.

Libraries are built without pooling: a convolution by steps of two is in its place, and a mean over both sides.
"""

import numpy

import shape


def main():
    output, size = shape.arguments()
    first, second = size.channels, 2 * size.channels
    layers = [
        f"Input            data   0 1 x 0={size.image} 1={size.image} 2=3",
        f"Convolution      conv1  1 1 x c1 0={first} 1=3 4=1 5=1 6={27 * first} 9=1",
        f"Convolution      half1  1 1 c1 h1 0={first} 1=3 3=2 4=1 5=1 6={9 * first * first} 9=1",
        f"Convolution      conv2  1 1 h1 c2 0={second} 1=3 4=1 5=1 6={9 * first * second} 9=1",
        "Reduction        mean3  1 1 c2 g3 0=3 1=0 -23303=2,1,2 5=1",
        f"InnerProduct     dense4 1 1 g3 d4 0={shape.CLASSES} 1=1 2={second * shape.CLASSES}",
        "Softmax          prob5  1 1 d4 y 0=0",
    ]
    with open(output + ".param", "w", encoding="ascii") as file:
        # The magic number; layers and blobs.
        file.write("7767517\n")
        file.write(f"{len(layers)} {len(layers)}\n")
        file.write("\n".join(layers) + "\n")
    with open(output + ".bin", "wb") as file:
        counts = [
            (27 * first, first),
            (9 * first * first, first),
            (9 * first * second, second),
            (second * shape.CLASSES, shape.CLASSES),
        ]
        for weights, biases in counts:
            # Zero: the weights follow as they are.
            file.write(numpy.uint32(0).tobytes())
            file.write(size.weights(weights).tobytes())
            file.write(size.weights(biases).tobytes())


main()
