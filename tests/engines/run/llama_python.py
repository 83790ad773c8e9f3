"""llama.cpp by xllamacpp's server: each run completes one prompt by one token."""

import xllamacpp

import workload

chosen = workload.arguments("complete")
parameters = xllamacpp.CommonParams()
parameters.model.path = chosen.model
parameters.n_ctx = 128
parameters.n_parallel = 1
parameters.warmup = False
parameters.fit_params = False
parameters.cpuparams.n_threads = chosen.threads
server = xllamacpp.Server(parameters)


# Time of the batches by the server's own clock, without its work around them.
batches_ms = []


def run():
    """One inference."""
    answer = server.handle_completions({"prompt": "abc", "max_tokens": 1, "temperature": 0, "cache_prompt": False})
    batches_ms.append(answer["timings"]["prompt_ms"])


result = workload.measure("llama", chosen, run)
result["engine_ns"] = round(sum(batches_ms) * 1e6)
# The server tries the model once when it starts.
result["other_runs"] = 1
workload.finish(result)
