"""ONNX Runtime by its Python module: on the CPU, with the provider for OpenVINO, or with Qualcomm's plugin and its simulator."""

import json
import os
import tempfile

import numpy
import onnxruntime

import workload

PROVIDERS = {"cpu": ["CPUExecutionProvider"], "openvino": ["OpenVINOExecutionProvider", "CPUExecutionProvider"]}

chosen = workload.arguments(*PROVIDERS, "qnn")
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = chosen.threads
options.enable_profiling = chosen.operators
if chosen.mode == "qnn":
    import onnxruntime_qnn as qnn

    NAME = qnn.get_ep_name()
    onnxruntime.register_execution_provider_library(NAME, qnn.get_library_path())
    devices = [device for device in onnxruntime.get_ep_devices() if device.ep_name == NAME]
    options.add_provider_for_devices(devices, {"backend_path": qnn.get_qnn_htp_path()})
with tempfile.TemporaryDirectory() as folder:
    options.profile_file_prefix = os.path.join(folder, "profile")
    session = onnxruntime.InferenceSession(chosen.model, options, providers=PROVIDERS.get(chosen.mode))
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
