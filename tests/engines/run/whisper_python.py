"""whisper.cpp by pywhispercpp: each run makes text of a second of noise."""

import _pywhispercpp as whisper
import numpy

import workload

chosen = workload.arguments("full")
context = whisper.whisper_init_from_file_with_params(chosen.model, whisper.whisper_context_default_params())
parameters = whisper.whisper_full_default_params(whisper.whisper_sampling_strategy.WHISPER_SAMPLING_GREEDY)
parameters.n_threads = chosen.threads
parameters.single_segment = True
parameters.max_tokens = 1
# Once, however unlikely the text.
parameters.temperature_inc = 0
parameters.print_progress = False
parameters.print_realtime = False
sound = numpy.random.default_rng(0).standard_normal(16000).astype(numpy.float32)
result = workload.measure("whisper", chosen, lambda: whisper.whisper_full(context, parameters, sound, sound.size))
workload.finish(result)
