"""ONNX Runtime by its C interface, as programs in other languages use it: by the numbers of functions in its table."""

import ctypes
import glob
import os

import numpy
import onnxruntime

import workload

# Places in struct OrtApi of onnxruntime_c_api.h, which never change.
GET_ERROR_MESSAGE = 2
CREATE_ENV = 3
CREATE_SESSION = 7
RUN = 9
CREATE_SESSION_OPTIONS = 10
SET_INTRA_OP_NUM_THREADS = 24
GET_INPUT_TYPE = 33
CREATE_TENSOR_WITH_DATA = 49
GET_TENSOR_INFO = 55
GET_DIMENSIONS = 62
CREATE_CPU_MEMORY_INFO = 69
RELEASE_SESSION = 95
RELEASE_VALUE = 96

VERSION = 17
WARNING = 2
FLOAT = 1
ARENA = 1
DEFAULT_MEMORY = 0
# Of an image: batch, channels, height, width.
DIMENSIONS = 4


class Table:
    """The functions of the interface."""

    def __init__(self):
        folder = os.path.join(os.path.dirname(onnxruntime.__file__), "capi")
        (path,) = glob.glob(os.path.join(folder, "libonnxruntime.so.*"))
        library = ctypes.CDLL(path)
        library.OrtGetApiBase.restype = ctypes.POINTER(ctypes.c_void_p)
        get_api = ctypes.CFUNCTYPE(ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint32)
        self.table = get_api(library.OrtGetApiBase()[0])(VERSION)

    def call(self, number, *arguments):
        """Calls a function that returns a status."""
        status = ctypes.CFUNCTYPE(ctypes.c_void_p)(self.table[number])(*arguments)
        if status:
            message = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)(self.table[GET_ERROR_MESSAGE])
            raise SystemExit(message(status).decode())

    def create(self, number, *arguments):
        """Calls a function whose last argument is where it puts a new object."""
        created = ctypes.c_void_p()
        self.call(number, *arguments, ctypes.byref(created))
        return created

    def release(self, number, released):
        """Calls a function that returns nothing."""
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.table[number])(released)


def main():
    ort = Table()
    chosen = workload.arguments("run")
    environment = ort.create(CREATE_ENV, WARNING, b"example")
    options = ort.create(CREATE_SESSION_OPTIONS)
    ort.call(SET_INTRA_OP_NUM_THREADS, options, chosen.threads)
    session = ort.create(CREATE_SESSION, environment, chosen.model.encode(), options)
    memory = ort.create(CREATE_CPU_MEMORY_INFO, ARENA, DEFAULT_MEMORY)
    tensor_info = ort.create(GET_TENSOR_INFO, ort.create(GET_INPUT_TYPE, session, ctypes.c_size_t(0)))
    shape = (ctypes.c_int64 * DIMENSIONS)()
    ort.call(GET_DIMENSIONS, tensor_info, shape, ctypes.c_size_t(DIMENSIONS))
    image = numpy.ones(list(shape), numpy.float32)
    data = image.ctypes.data_as(ctypes.c_void_p)
    size = ctypes.c_size_t(image.nbytes)
    tensor = ort.create(CREATE_TENSOR_WITH_DATA, memory, data, size, shape, ctypes.c_size_t(DIMENSIONS), FLOAT)
    sources = (ctypes.c_char_p * 1)(b"x")
    outputs = (ctypes.c_char_p * 1)(b"y")
    one = ctypes.c_size_t(1)

    def run():
        """One inference."""
        result = ort.create(RUN, session, None, sources, ctypes.byref(tensor), one, outputs, one)
        ort.release(RELEASE_VALUE, result)

    measured = workload.measure("onnxruntime", chosen, run)
    ort.release(RELEASE_SESSION, session)
    workload.finish(measured)


main()
