"""ncnn by libncnn.so, which exports its C++ functions, as programs for boards use it: MODEL.param, MODEL.bin."""

import ctypes
import importlib.util
import os

import numpy

import workload

# Bytes that are enough for a net, whose size differs by version.
NET = 4096
# Place of the number of threads in a net.
THREADS = 12


class Mat(ctypes.Structure):
    """ncnn::Mat."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("references", ctypes.POINTER(ctypes.c_int)),
        ("element_size", ctypes.c_size_t),
        ("packed", ctypes.c_int),
        ("allocator", ctypes.c_void_p),
        ("dimensions", ctypes.c_int),
        ("width", ctypes.c_int),
        ("height", ctypes.c_int),
        ("depth", ctypes.c_int),
        ("channels", ctypes.c_int),
        ("channel_step", ctypes.c_size_t),
    ]


package = os.path.dirname(importlib.util.find_spec("sherpa_ncnn").origin)
ncnn = ctypes.CDLL(os.path.join(package, "lib", "libncnn.so"))
free = ctypes.CDLL(None).free
free.argtypes = [ctypes.c_void_p]
chosen = workload.arguments("extract")


def call(name, *arguments):
    """Calls a function that returns 0, where all is well."""
    if ncnn[name](*arguments) != 0:
        raise SystemExit(f"{name} fails")


net = ctypes.create_string_buffer(NET)
ncnn["_ZN4ncnn3NetC1Ev"](net)
ctypes.c_int.from_buffer(net, THREADS).value = chosen.threads
call("_ZN4ncnn3Net10load_paramEPKc", net, (chosen.model + ".param").encode())
call("_ZN4ncnn3Net10load_modelEPKc", net, (chosen.model + ".bin").encode())
with open(chosen.model + ".param", encoding="ascii") as file:
    # Behind the magic number and the counts; the input layer has its size in the parameter 0.
    size = int(file.read().splitlines()[2].split(" 0=")[1].split()[0])
pixels = numpy.ones((3, size, size), numpy.float32)
image = Mat(pixels.ctypes.data, None, 4, 1, None, 3, size, size, 1, 3, size * size)
# Address of its virtual functions, and of its private part.
Extractor = ctypes.c_void_p * 2


def run():
    """One inference."""
    extractor, result = Extractor(), Mat()
    ncnn["_ZNK4ncnn3Net16create_extractorEv"](extractor, net)
    call("_ZN4ncnn9Extractor5inputEPKcRKNS_3MatE", extractor, b"x", ctypes.byref(image))
    call("_ZN4ncnn9Extractor7extractEPKcRNS_3MatEi", extractor, b"y", ctypes.byref(result), 0)
    ncnn["_ZN4ncnn9ExtractorD1Ev"](extractor)
    # The extractor's reference is gone; this one is the last.
    if result.references[0] != 1:
        raise SystemExit("the result is still in use")
    free(result.data)


measured = workload.measure("ncnn-library", chosen, run)
ncnn["_ZN4ncnn3NetD1Ev"](net)
workload.finish(measured)
