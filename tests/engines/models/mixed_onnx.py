"""A network as an ONNX file in whose middle is an operator that the provider for OpenVINO does not take."""

import onnx
from onnx import TensorProto, helper, numpy_helper

import shape


def main():
    output, size = shape.arguments()
    channels = size.channels

    def weights(name, *dimensions):
        return numpy_helper.from_array(size.weights(*dimensions), name)

    def node(kind, inputs, result, name, **attributes):
        return helper.make_node(kind, inputs, [result], name=name, **attributes)

    around = [1, 1, 1, 1]
    nodes = [
        node("Conv", ["x", "w1"], "c1", "conv1", pads=around),
        node("Relu", ["c1"], "r1", "relu1"),
        node("Hardmax", ["r1"], "h2", "hardmax2"),
        node("Conv", ["h2", "w3"], "c3", "conv3", pads=around),
        node("Relu", ["c3"], "y", "relu3"),
    ]
    image = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, size.image, size.image])
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, channels, size.image, size.image])
    constants = [weights("w1", channels, 3, 3, 3), weights("w3", channels, channels, 3, 3)]
    graph = helper.make_graph(nodes, "mixed", [image], [result], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, output)


main()
