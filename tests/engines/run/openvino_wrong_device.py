"""OpenVINO is asked for a device that there is not, which it refuses by an exception, and then for the CPU."""

import sys
import time

import numpy
import openvino

ROUNDS = 5
# Between a refusal and the next call, seconds.
PAUSE = 0.3

core = openvino.Core()
model = core.read_model(sys.argv[1])
refused = 0
for _ in range(ROUNDS):
    try:
        core.compile_model(model, "NOSUCHDEVICE")
    except RuntimeError:
        refused += 1
    time.sleep(PAUSE)
request = core.compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": 1}).create_infer_request()
for _ in range(ROUNDS):
    request.infer([numpy.ones(tuple(model.input(0).shape), numpy.float32)])
print(f"refused {refused} times")
