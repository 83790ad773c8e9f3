"""MNN's interpreter and session."""

import time

import MNN
import numpy

import workload

chosen = workload.arguments("session")
interpreter = MNN.Interpreter(chosen.model)
session = interpreter.createSession({"numThread": chosen.threads})
source = interpreter.getSessionInput(session)
dimensions = source.getShape()
image = MNN.Tensor(
    dimensions, MNN.Halide_Type_Float, numpy.ones(dimensions, numpy.float32), MNN.Tensor_DimensionType_Caffe
)
operators = []


def plain():
    """One inference."""
    source.copyFrom(image)
    interpreter.runSession(session)


def observed():
    """One inference, with the times between the calls before and after each operator."""
    begins = {}

    def before(_, operator):
        begins[operator.getName()] = time.perf_counter_ns()
        return True

    def after(_, operator):
        name = operator.getName()
        operators.append(workload.operator(name, operator.getType(), time.perf_counter_ns() - begins[name]))
        return True

    source.copyFrom(image)
    interpreter.runSessionWithCallBackInfo(session, before, after)


result = workload.measure("mnn", chosen, observed if chosen.operators else plain)
if chosen.operators:
    result["operators"] = operators
workload.finish(result)
