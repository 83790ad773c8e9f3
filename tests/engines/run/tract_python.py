"""tract."""

import json

import numpy
import tract

import workload

chosen = workload.arguments("run")
model = tract.onnx().load(chosen.model)
# Such as `1,3,64,64,f32`.
*dimensions, _ = str(model.input_fact(0)).split(",")
# Once: copying an image takes as long as the rest of what is around an inference.
image = tract.Tensor.from_numpy(numpy.ones([int(dimension) for dimension in dimensions], numpy.float32))
runnable = model.into_model().into_runnable()
result = workload.measure("tract", chosen, lambda: runnable.run([image]))
if chosen.operators:
    profile = json.loads(runnable.profile_json([image]))
    result["operators"] = [
        workload.operator(node["node_name"], node["op_name"], node["secs_per_iter"] * 1e9)
        for node in profile["nodes"]
        if "secs_per_iter" in node
    ]
workload.finish(result)
