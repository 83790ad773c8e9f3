"""OpenVINO: a request that is run and waited for, or started and then waited for."""

import numpy
import openvino

import workload

chosen = workload.arguments("infer", "async")
core = openvino.Core()
model = core.read_model(chosen.model)
properties = {
    "INFERENCE_NUM_THREADS": chosen.threads,
    "PERFORMANCE_HINT": "LATENCY",
    "PERF_COUNT": chosen.operators,
}
request = core.compile_model(model, "CPU", properties).create_infer_request()
# Once: how Python hands an image over takes longer than the rest of what is around an inference.
image = numpy.ones(tuple(model.input(0).shape), numpy.float32)
request.set_input_tensor(openvino.Tensor(image, shared_memory=True))
operators = []
# Time of each node in all runs so far.
totals = {}


def observe():
    """Takes the times of the nodes in the last run: the counters are means of all runs so far, in microseconds."""
    runs = 1 + len(operators) // max(len(totals), 1)
    for node in request.profiling_info:
        # Nodes that others contain have no time, and neither have those below a microsecond.
        if node.status == openvino.ProfilingInfo.Status.EXECUTED:
            total = node.real_time.total_seconds() * 1e9 * runs
            own = max(total - totals.get(node.node_name, 0), 0)
            operators.append(workload.operator(node.node_name, node.node_type, own))
            totals[node.node_name] = total


def run():
    """One inference."""
    if chosen.mode == "infer":
        request.infer()
    else:
        request.start_async()
        request.wait()
    if chosen.operators:
        observe()


result = workload.measure("openvino", chosen, run)
if chosen.operators:
    result["operators"] = operators
    result["untimed"] = [node.node_name for node in request.profiling_info if node.node_name not in totals]
workload.finish(result)
