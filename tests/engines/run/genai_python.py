"""onnxruntime-genai by Python: each run answers a prompt, token by token."""

import numpy
import onnxruntime_genai

import answers
import workload

chosen = workload.arguments("answer")
model = onnxruntime_genai.Model(chosen.model)
parameters = onnxruntime_genai.GeneratorParams(model)
parameters.set_search_options(max_length=400, min_length=400)
requests = answers.Answers()


def run():
    """One request."""
    generator = onnxruntime_genai.Generator(model, parameters)

    def prompt(count):
        generator.append_tokens(numpy.full(count, answers.TOKEN, numpy.int32))
        # Chooses a token by the prompt's result, without a run of the model.
        generator.generate_next_token()

    requests.run(prompt, generator.generate_next_token)


result = workload.measure("onnxruntime-genai", chosen, run)
result["language_model"] = requests.figures()
workload.finish(result)
