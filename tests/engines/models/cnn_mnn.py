"""The example network as a file of MNN, converted from the ONNX file.

By the converter's extension module: the package `MNN.tools` around it installs other packages into whatever Python it
finds, and reports each conversion to its maker.
"""

import argparse

import _tools

parser = argparse.ArgumentParser()
parser.add_argument("output")
parser.add_argument("--from", dest="source", required=True, help="the ONNX file")
chosen = parser.parse_args()
_tools.mnnconvert(
    ["mnnconvert", "-f", "ONNX", "--modelFile", chosen.source, "--MNNModel", chosen.output, "--bizCode", "example"]
)
