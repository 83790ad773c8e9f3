"""A chain of small operators as an ONNX file: what it costs to watch an operator shows best where operators cost next to nothing."""

import argparse

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("output")
    parser.add_argument("--operators", type=int, required=True)
    parser.add_argument("--values", type=int, default=16, help="numbers in each tensor")
    chosen = parser.parse_args()
    last = chosen.operators - 1
    texts = ["x", *(f"t{at}" for at in range(last)), "y"]
    # Sums alone would be made one by an optimizer.
    kinds = ["Mul", "Sub"]
    nodes = [
        helper.make_node(kinds[at % 2], [texts[at], "c"], [texts[at + 1]], name=f"op{at}")
        for at in range(chosen.operators)
    ]
    constant = numpy_helper.from_array(numpy.full(chosen.values, 1.5, numpy.float32), "c")
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [chosen.values]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "chain", ends[:1], ends[1:], [constant])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, chosen.output)


main()
