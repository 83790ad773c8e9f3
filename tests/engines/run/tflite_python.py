"""TensorFlow Lite's interpreter, of ai-edge-litert or of tflite-runtime; of the former, the compiled model as well."""

import numpy

import workload

try:
    from ai_edge_litert import interpreter as engine
    from ai_edge_litert.compiled_model import CompiledModel

    NAME = "litert"
except ImportError:
    from tflite_runtime import interpreter as engine

    NAME = "tflite-runtime"

chosen = workload.arguments("interpreter", "compiled")


def interpreter():
    """A function that runs the model once."""
    model = engine.Interpreter(chosen.model, num_threads=chosen.threads)
    model.allocate_tensors()
    source = model.get_input_details()[0]
    model.set_tensor(source["index"], numpy.ones(source["shape"], numpy.float32))
    return model.invoke


def compiled():
    """The same by the interface for accelerators."""
    model = CompiledModel.from_file(chosen.model)
    inputs = model.create_input_buffers(0)
    outputs = model.create_output_buffers(0)
    elements = numpy.prod(model.get_input_tensor_details(model.get_signature_by_index(0)["key"])["x"]["shape"])
    inputs[0].write(numpy.ones(elements, numpy.float32))
    return lambda: model.run_by_index(0, inputs, outputs)


workload.finish(workload.measure(NAME, chosen, interpreter() if chosen.mode == "interpreter" else compiled()))
