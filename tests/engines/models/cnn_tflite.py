"""The example network as a TensorFlow Lite file, from the classes of the schema that ai-edge-litert contains.

In the place of sigmoid and mul stands a cumulative sum, which the XNNPACK delegate does not take: the interpreter runs
the delegate's part before it, the kernel, and the delegate's part behind it.
"""

import flatbuffers
import numpy
from ai_edge_litert import schema_py_generated as schema

import shape

OPERATORS = schema.BuiltinOperator
CODES = [
    OPERATORS.CONV_2D,
    OPERATORS.MAX_POOL_2D,
    OPERATORS.CUMSUM,
    OPERATORS.MEAN,
    OPERATORS.FULLY_CONNECTED,
    OPERATORS.SOFTMAX,
]


class Graph:
    """A graph that grows."""

    def __init__(self):
        self.model = schema.ModelT()
        self.model.version = 3
        self.model.description = "example"
        self.model.buffers = [schema.BufferT()]
        self.model.operatorCodes = [self.code(number) for number in CODES]
        self.graph = schema.SubGraphT()
        self.graph.name = "example"
        self.graph.tensors = []
        self.graph.operators = []

    @staticmethod
    def code(number):
        code = schema.OperatorCodeT()
        code.builtinCode = number
        code.deprecatedBuiltinCode = min(number, 127)
        code.version = 1
        return code

    def tensor(self, name, dimensions, data=None, kind=schema.TensorType.FLOAT32):
        tensor = schema.TensorT()
        tensor.name = name
        tensor.shape = list(dimensions)
        tensor.type = kind
        tensor.buffer = 0
        if data is not None:
            buffer = schema.BufferT()
            buffer.data = numpy.frombuffer(data.tobytes(), numpy.uint8)
            self.model.buffers.append(buffer)
            tensor.buffer = len(self.model.buffers) - 1
        self.graph.tensors.append(tensor)
        return len(self.graph.tensors) - 1

    def numbers(self, name, *numbers):
        data = numpy.array(numbers, numpy.int32)
        return self.tensor(name, data.shape, data, schema.TensorType.INT32)

    def operator(self, code, inputs, result, kind, options):
        operator = schema.OperatorT()
        operator.opcodeIndex = CODES.index(code)
        operator.inputs = inputs
        operator.outputs = [result]
        operator.builtinOptionsType = kind
        operator.builtinOptions = options
        self.graph.operators.append(operator)
        return result

    def write(self, path, inputs, outputs):
        self.graph.inputs = inputs
        self.graph.outputs = outputs
        self.model.subgraphs = [self.graph]
        builder = flatbuffers.Builder(1 << 20)
        builder.Finish(self.model.Pack(builder), b"TFL3")
        with open(path, "wb") as file:
            file.write(bytes(builder.Output()))


def main():
    output, size = shape.arguments()
    graph = Graph()
    kinds = schema.BuiltinOptions
    image, half = size.image, size.image // 2
    first, second = size.channels, 2 * size.channels

    def weights(name, *dimensions):
        return graph.tensor(name, dimensions, size.weights(*dimensions))

    def convolution(source, name, width, inputs, outputs):
        options = schema.Conv2DOptionsT()
        options.padding = schema.Padding.SAME
        options.strideW = options.strideH = 1
        options.dilationWFactor = options.dilationHFactor = 1
        options.fusedActivationFunction = schema.ActivationFunctionType.RELU
        constants = [weights(name + "/w", outputs, 3, 3, inputs), weights(name + "/b", outputs)]
        result = graph.tensor(name, [1, width, width, outputs])
        return graph.operator(OPERATORS.CONV_2D, [source, *constants], result, kinds.Conv2DOptions, options)

    x = graph.tensor("x", [1, image, image, 3])
    conv1 = convolution(x, "conv1", image, 3, first)
    pooling = schema.Pool2DOptionsT()
    pooling.padding = schema.Padding.VALID
    pooling.strideW = pooling.strideH = 2
    pooling.filterWidth = pooling.filterHeight = 2
    pool1 = graph.tensor("pool1", [1, half, half, first])
    graph.operator(OPERATORS.MAX_POOL_2D, [conv1], pool1, kinds.Pool2DOptions, pooling)
    conv2 = convolution(pool1, "conv2", half, first, second)
    sum3 = graph.tensor("sum3", [1, half, half, second])
    axis = graph.tensor("axis", [], numpy.array(1, numpy.int32), schema.TensorType.INT32)
    graph.operator(OPERATORS.CUMSUM, [conv2, axis], sum3, kinds.CumsumOptions, schema.CumsumOptionsT())
    averaging = schema.ReducerOptionsT()
    averaging.keepDims = False
    mean3 = graph.tensor("mean3", [1, second])
    inputs = [sum3, graph.numbers("mean3/axes", 1, 2)]
    graph.operator(OPERATORS.MEAN, inputs, mean3, kinds.ReducerOptions, averaging)
    dense4 = graph.tensor("dense4", [1, shape.CLASSES])
    inputs = [mean3, weights("dense4/w", shape.CLASSES, second), weights("dense4/b", shape.CLASSES)]
    options = schema.FullyConnectedOptionsT()
    graph.operator(OPERATORS.FULLY_CONNECTED, inputs, dense4, kinds.FullyConnectedOptions, options)
    scale = schema.SoftmaxOptionsT()
    scale.beta = 1.0
    prob5 = graph.tensor("prob5", [1, shape.CLASSES])
    graph.operator(OPERATORS.SOFTMAX, [dense4], prob5, kinds.SoftmaxOptions, scale)
    graph.write(output, [x], [prob5])


main()
