"""ONNX Runtime by its Python module, on the CPU, or with the provider for OpenVINO."""

import json
import os
import tempfile

import numpy
import onnxruntime

import workload

PROVIDERS = {"cpu": [], "openvino": ["OpenVINOExecutionProvider"]}

chosen = workload.arguments(*PROVIDERS)
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = chosen.threads
options.enable_profiling = chosen.operators
with tempfile.TemporaryDirectory() as folder:
    options.profile_file_prefix = os.path.join(folder, "profile")
    providers = [*PROVIDERS[chosen.mode], "CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(chosen.model, options, providers=providers)
    source = session.get_inputs()[0]
    image = {source.name: numpy.ones(source.shape, numpy.float32)}
    result = workload.measure("onnxruntime", chosen, lambda: session.run(None, image))
    if chosen.operators:
        with open(session.end_profiling(), encoding="utf-8") as file:
            events = json.load(file)
        END = "_kernel_time"
        result["operators"] = [
            workload.operator(
                event["name"].removesuffix(END),
                event["args"]["op_name"],
                event["dur"] * 1000,
                event["args"]["provider"],
            )
            for event in events
            if event.get("cat") == "Node" and event["name"].endswith(END)
        ]
workload.finish(result)
