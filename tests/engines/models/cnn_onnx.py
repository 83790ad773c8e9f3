"""The example network as an ONNX file."""

import onnx
from onnx import TensorProto, helper, numpy_helper

import shape


def main():
    output, size = shape.arguments()
    first, second = size.channels, 2 * size.channels

    def weights(name, *dimensions):
        return numpy_helper.from_array(size.weights(*dimensions), name)

    def node(kind, inputs, result, name, **attributes):
        return helper.make_node(kind, inputs, [result], name=name, **attributes)

    conv1, relu1, pool1, conv2, sigmoid2, mul2, mean3, flat3, dense4, prob5 = shape.LAYERS
    around = [1, 1, 1, 1]
    nodes = [
        node("Conv", ["x", "w1", "b1"], "c1", conv1, pads=around),
        node("Relu", ["c1"], "r1", relu1),
        node("MaxPool", ["r1"], "p1", pool1, kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", ["p1", "w2", "b2"], "c2", conv2, pads=around),
        node("Sigmoid", ["c2"], "s2", sigmoid2),
        node("Mul", ["c2", "s2"], "m2", mul2),
        node("GlobalAveragePool", ["m2"], "g3", mean3),
        node("Flatten", ["g3"], "f3", flat3),
        node("MatMul", ["f3", "w4"], "d4", dense4),
        node("Softmax", ["d4"], "y", prob5),
    ]
    image = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, size.image, size.image])
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, shape.CLASSES])
    constants = [
        weights("w1", first, 3, 3, 3),
        weights("b1", first),
        weights("w2", second, first, 3, 3),
        weights("b2", second),
        weights("w4", second, shape.CLASSES),
    ]
    graph = helper.make_graph(nodes, "example", [image], [result], constants)
    # Old enough for each engine that reads it.
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, output)


main()
