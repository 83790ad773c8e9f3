"""OpenCV's module dnn."""

import cv2
import numpy

import workload

# The models are for images of any size.
SIZE = 64

chosen = workload.arguments("forward")
cv2.setNumThreads(chosen.threads)
net = cv2.dnn.readNetFromONNX(chosen.model)
image = numpy.ones((1, 3, SIZE, SIZE), numpy.float32)


def run():
    """One inference."""
    net.setInput(image)
    net.forward()


result = workload.measure("opencv", chosen, run)
if chosen.operators:
    # Times of single layers are for the last run, in ticks; fused ones have none.
    layers = zip(net.getLayerNames(), net.getPerfProfile()[1].flatten())
    ticks = cv2.getTickFrequency()
    result["operators"] = [
        workload.operator(name, name, time / ticks * 1e9) for name, time in layers if time > 0
    ]
workload.finish(result)
