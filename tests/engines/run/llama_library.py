"""llama.cpp by the C interface that xllamacpp's module contains: each run answers a prompt, token by token."""

import ctypes

import xllamacpp.xllamacpp

import answers
import workload

# Largest batch of the program.
BATCH = 64


class Parameters(ctypes.Structure):
    """Parameters, whose fields differ by version: they are passed on as the library fills them in."""

    _fields_ = [("bytes", ctypes.c_char * 1024)]


class Batch(ctypes.Structure):
    """llama_batch"""

    _fields_ = [
        ("n_tokens", ctypes.c_int32),
        ("token", ctypes.c_void_p),
        ("embd", ctypes.c_void_p),
        ("pos", ctypes.c_void_p),
        ("n_seq_id", ctypes.c_void_p),
        ("seq_id", ctypes.c_void_p),
        ("logits", ctypes.c_void_p),
    ]


class Performance(ctypes.Structure):
    """llama_perf_context_data"""

    _fields_ = [(name, ctypes.c_double) for name in ("start_ms", "load_ms", "prompt_ms", "decode_ms")] + [
        (name, ctypes.c_int32) for name in ("prompt_tokens", "decode_tokens", "reused")
    ]


library = ctypes.CDLL(xllamacpp.xllamacpp.__file__)


def function(name, result, *arguments):
    """A function of the library."""
    found = getattr(library, name)
    found.restype, found.argtypes = result, arguments
    return found


pointer = ctypes.c_void_p
model_defaults = function("llama_model_default_params", Parameters)
load = function("llama_model_load_from_file", pointer, ctypes.c_char_p, Parameters)
context_defaults = function("llama_context_default_params", Parameters)
create = function("llama_init_from_model", pointer, pointer, Parameters)
set_threads = function("llama_set_n_threads", None, pointer, ctypes.c_int32, ctypes.c_int32)
memory_of = function("llama_get_memory", pointer, pointer)
clear = function("llama_memory_clear", None, pointer, ctypes.c_bool)
batch_of = function("llama_batch_get_one", Batch, pointer, ctypes.c_int32)
decode = function("llama_decode", ctypes.c_int32, pointer, Batch)
logits = function("llama_get_logits_ith", pointer, pointer, ctypes.c_int32)
performance = function("llama_perf_context", Performance, pointer)
reset = function("llama_perf_context_reset", None, pointer)

chosen = workload.arguments("answer")
silent = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, pointer)(lambda *_: None)
function("llama_log_set", None, type(silent), pointer)(silent, None)
function("llama_backend_init", None)()
model = load(chosen.model.encode(), model_defaults())
wanted = context_defaults()
# The flags `embeddings`, `offload_kqv`, `no_perf`, `op_offload` and others, wherever this version has them.
flags = ctypes.string_at(ctypes.byref(wanted), ctypes.sizeof(wanted)).rindex(b"\0\1\1\1\1")
ctypes.memset(ctypes.addressof(wanted) + flags + 2, 0, 1)
context = create(model, wanted)
set_threads(context, chosen.threads, chosen.threads)
tokens = (ctypes.c_int32 * BATCH)(*[answers.TOKEN] * BATCH)
reset(context)
requests = answers.Answers(BATCH)


def run_batch(count):
    """Runs a batch, and waits for its logits."""
    if decode(context, batch_of(tokens, count)) != 0 or not logits(context, -1):
        raise SystemExit(f"a batch of {count} tokens failed")


def run():
    """One request."""
    clear(memory_of(context), True)
    requests.run(run_batch, lambda: run_batch(1))


result = workload.measure("llama", chosen, run)
own = performance(context)
result["language_model"] = requests.figures() | {
    "prompt_tokens": own.prompt_tokens,
    "prompt_ns": round(own.prompt_ms * 1e6),
    "decode_tokens": own.decode_tokens,
    "decode_ns": round(own.decode_ms * 1e6),
}
workload.finish(result)
