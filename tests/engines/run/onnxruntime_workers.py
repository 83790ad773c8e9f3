"""ONNX Runtime in worker processes alone: each imports it, loads the model and runs it at once, and the parent does none of it."""

import argparse
import concurrent.futures
import json
import multiprocessing
import os
import subprocess
import sys


def work(model, runs):
    """Loads a model, and runs it."""
    import numpy
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    source = session.get_inputs()[0]
    image = {source.name: numpy.ones(source.shape, numpy.float32)}
    for _ in range(runs):
        session.run(None, image)
    return os.getpid()


def processes(chosen):
    """Starts one process for each worker."""
    context = multiprocessing.get_context(chosen.mode)
    started = [context.Process(target=work, args=(chosen.model, chosen.runs)) for _ in range(chosen.workers)]
    for process in started:
        process.start()
    for process in started:
        process.join()
        assert process.exitcode == 0, process.exitcode


def pool(chosen):
    """Gives each worker of a pool one task, by fork as Python before 3.14 does."""
    context = multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(chosen.workers, mp_context=context) as executor:
        list(executor.map(work, [chosen.model] * chosen.workers, [chosen.runs] * chosen.workers))


def programs(chosen):
    """Starts this program once for each worker."""
    words = [sys.executable, __file__, "--mode", "itself", chosen.model, str(chosen.runs), "1"]
    started = [subprocess.Popen(words) for _ in range(chosen.workers)]
    for process in started:
        assert process.wait() == 0, process.returncode


WAYS = {"pool": pool, "programs": programs, "itself": lambda chosen: work(chosen.model, chosen.runs)}

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", default="fork")
    parser.add_argument("model")
    parser.add_argument("runs", type=int)
    parser.add_argument("workers", type=int)
    asked = parser.parse_args()
    WAYS.get(asked.mode, processes)(asked)
    if asked.mode != "itself":
        print(json.dumps({"workers": asked.workers, "imported": "onnxruntime" in sys.modules}))
