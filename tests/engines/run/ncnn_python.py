"""ncnn: MODEL.param, MODEL.bin."""

import time

import ncnn
import numpy

import workload

chosen = workload.arguments("extract")
net = ncnn.Net()
net.opt.num_threads = chosen.threads
net.opt.use_vulkan_compute = False
if net.load_param(chosen.model + ".param") != 0 or net.load_model(chosen.model + ".bin") != 0:
    raise SystemExit(f"{chosen.model} cannot be loaded")
with open(chosen.model + ".param", encoding="ascii") as file:
    # Behind the magic number and the counts: type, name, numbers of inputs and outputs, one of each, parameters.
    _, _, first, *layers = file.read().splitlines()
# The input layer has its size in the parameter 0.
size = int(first.split(" 0=")[1].split()[0])
image = numpy.ones((3, size, size), numpy.float32)
operators = []


# Kind of what is extracted: for programs, or as layers leave it to each other.
FOR_PROGRAMS = 0
AS_IT_IS = 1


def extract(extractor, blob, kind):
    """Computes a blob, from those that the extractor has already."""
    status, _ = extractor.extract(blob, kind)
    if status != 0:
        raise SystemExit(f"the extractor fails: {status}")


def plain():
    """One inference."""
    extractor = net.create_extractor()
    extractor.input("x", ncnn.Mat(image))
    extract(extractor, "y", FOR_PROGRAMS)


def observed():
    """One inference, layer by layer: each is asked for its blob, when that before it is there."""
    extractor = net.create_extractor()
    extractor.input("x", ncnn.Mat(image))
    for layer in layers:
        kind, name, _, _, _, blob, *_ = layer.split()
        begin = time.perf_counter_ns()
        extract(extractor, blob, AS_IT_IS)
        operators.append(workload.operator(name, kind, time.perf_counter_ns() - begin))


result = workload.measure("ncnn", chosen, observed if chosen.operators else plain)
if chosen.operators:
    result["operators"] = operators
workload.finish(result)
