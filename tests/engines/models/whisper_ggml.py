"""A speech model with random weights, in the format of whisper.cpp: two layers that hear, two that write."""

import argparse
import struct

import numpy

LAYERS = 2
HEADS = 2
MELS = 80
# Of the English models; whisper.cpp knows special tokens by their numbers.
TOKENS = 51864
TEXT = 448
# Type of weights: floats of 16 bits, which whisper.cpp's convolutions need.
HALF = 1
# Bins of a spectrum of 400 samples.
BINS = 201


def main():
    parser = argparse.ArgumentParser(description="Makes a speech model with random weights.")
    parser.add_argument("output")
    parser.add_argument("--width", type=int, default=32, help="length of an embedding, a multiple of 32")
    parser.add_argument("--positions", type=int, default=64, help="positions of sound, 20 ms each")
    chosen = parser.parse_args()
    width, positions = chosen.width, chosen.positions
    random = numpy.random.default_rng(0)
    with open(chosen.output, "wb") as file:
        file.write(b"lmgg")
        sizes = (TOKENS, positions, width, HEADS, LAYERS, TEXT, width, HEADS, LAYERS, MELS)
        file.write(struct.pack("<11i", *sizes, HALF))
        file.write(struct.pack("<2i", MELS, BINS))
        file.write(numpy.abs(random.standard_normal((MELS, BINS)) * 0.01).astype(numpy.float32).tobytes())
        # The tokens above these are special ones.
        words = 50257
        file.write(struct.pack("<i", words))
        for word in range(words):
            # Of one byte, some of which whisper.cpp looks up, or of several.
            text = bytes([word]) if word < 256 else b" %x" % word
            file.write(struct.pack("<i", len(text)) + text)

        def tensor(name, *dimensions):
            kind = HALF if name.endswith(".weight") and len(dimensions) > 1 else 0
            values = random.standard_normal(dimensions) * 0.05
            values = values.astype(numpy.float16 if kind else numpy.float32)
            shape = dimensions[::-1]
            file.write(struct.pack("<3i", len(shape), len(name), kind))
            file.write(struct.pack(f"<{len(shape)}i", *shape))
            file.write(name.encode())
            file.write(values.tobytes())

        def dense(name, outputs, inputs, bias=True):
            tensor(name + ".weight", outputs, inputs)
            if bias:
                tensor(name + ".bias", outputs)

        def norm(name):
            tensor(name + ".weight", width)
            tensor(name + ".bias", width)

        def attention(name):
            norm(name + "_ln")
            dense(name + ".query", width, width)
            dense(name + ".key", width, width, bias=False)
            dense(name + ".value", width, width)
            dense(name + ".out", width, width)

        def perceptron(block):
            norm(block + "mlp_ln")
            dense(block + "mlp.0", 4 * width, width)
            dense(block + "mlp.2", width, 4 * width)

        tensor("encoder.positional_embedding", positions, width)
        tensor("encoder.conv1.weight", width, MELS, 3)
        tensor("encoder.conv1.bias", width, 1)
        tensor("encoder.conv2.weight", width, width, 3)
        tensor("encoder.conv2.bias", width, 1)
        norm("encoder.ln_post")
        tensor("decoder.positional_embedding", TEXT, width)
        tensor("decoder.token_embedding.weight", TOKENS, width)
        norm("decoder.ln")
        for layer in range(LAYERS):
            for part in ("encoder", "decoder"):
                block = f"{part}.blocks.{layer}."
                attention(block + "attn")
                perceptron(block)
            attention(f"decoder.blocks.{layer}.cross_attn")


main()
