"""A language model of one layer with random weights and a cache of keys and values, as onnxruntime-genai reads it."""

import argparse
import json
import pathlib
import shutil

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

VOCABULARY = 300


def main():
    parser = argparse.ArgumentParser(description="Makes a language model with random weights.")
    parser.add_argument("output", type=pathlib.Path, help="folder, which is made")
    parser.add_argument("--width", type=int, default=128, help="length of an embedding")
    chosen = parser.parse_args()
    shutil.rmtree(chosen.output, ignore_errors=True)
    chosen.output.mkdir()
    onnx.save(decoder(chosen.width), chosen.output / "model.onnx")
    with open(chosen.output / "genai_config.json", "w", encoding="utf-8") as file:
        json.dump(configuration(chosen.width), file)


def decoder(width):
    """The decoder: attention to all tokens so far, which are in the cache, and a dense part."""
    random = numpy.random.default_rng(0)

    def weights(name, *dimensions):
        return numpy_helper.from_array((random.standard_normal(dimensions) * 0.05).astype(numpy.float32), name)

    def node(kind, inputs, result, name, **attributes):
        return helper.make_node(kind, inputs, [result], name=name, **attributes)

    nodes = [
        node("Gather", ["embeddings", "input_ids"], "x", "embed"),
        node("MatMul", ["x", "to_keys"], "k", "key"),
        node("MatMul", ["x", "to_values"], "v", "value"),
        node("Unsqueeze", ["k", "head"], "k1", "key_head"),
        node("Unsqueeze", ["v", "head"], "v1", "value_head"),
        node("Concat", ["past_key_values.0.key", "k1"], "present.0.key", "keys", axis=2),
        node("Concat", ["past_key_values.0.value", "v1"], "present.0.value", "values", axis=2),
        node("Unsqueeze", ["x", "head"], "q", "query_head"),
        node("Transpose", ["present.0.key"], "kt", "turn_keys", perm=[0, 1, 3, 2]),
        node("MatMul", ["q", "kt"], "scores", "score"),
        node("Softmax", ["scores"], "shares", "share", axis=-1),
        node("MatMul", ["shares", "present.0.value"], "mixed", "mix"),
        node("Squeeze", ["mixed", "head"], "attention", "attend"),
        node("Add", ["attention", "x"], "h", "residual"),
        node("MatMul", ["h", "up"], "u", "dense_up"),
        node("Relu", ["u"], "r", "activate"),
        node("MatMul", ["r", "down"], "d", "dense_down"),
        node("MatMul", ["d", "to_logits"], "logits", "classify"),
    ]

    def tensor(name, *dimensions, kind=TensorProto.FLOAT):
        return helper.make_tensor_value_info(name, kind, dimensions)

    inputs = [
        tensor("input_ids", "batch", "tokens", kind=TensorProto.INT64),
        tensor("attention_mask", "batch", "all", kind=TensorProto.INT64),
        tensor("past_key_values.0.key", "batch", 1, "past", width),
        tensor("past_key_values.0.value", "batch", 1, "past", width),
    ]
    outputs = [
        tensor("logits", "batch", "tokens", VOCABULARY),
        tensor("present.0.key", "batch", 1, "all", width),
        tensor("present.0.value", "batch", 1, "all", width),
    ]
    constants = [
        weights("embeddings", VOCABULARY, width),
        weights("to_keys", width, width),
        weights("to_values", width, width),
        weights("up", width, 8 * width),
        weights("down", 8 * width, width),
        weights("to_logits", width, VOCABULARY),
        numpy_helper.from_array(numpy.array([1], numpy.int64), "head"),
    ]
    graph = helper.make_graph(nodes, "decoder", inputs, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model


def configuration(width):
    """What the engine has to know of the model."""
    return {
        "model": {
            "type": "llama",
            "bos_token_id": 1,
            "eos_token_id": 2,
            "pad_token_id": 0,
            "vocab_size": VOCABULARY,
            "context_length": 512,
            "decoder": {
                "filename": "model.onnx",
                "head_size": width,
                "hidden_size": width,
                "num_attention_heads": 1,
                "num_key_value_heads": 1,
                "num_hidden_layers": 1,
                "session_options": {"intra_op_num_threads": 1, "provider_options": []},
                "inputs": {
                    "input_ids": "input_ids",
                    "attention_mask": "attention_mask",
                    "past_key_names": "past_key_values.%d.key",
                    "past_value_names": "past_key_values.%d.value",
                },
                "outputs": {
                    "logits": "logits",
                    "present_key_names": "present.%d.key",
                    "present_value_names": "present.%d.value",
                },
            },
        },
        "search": {"max_length": 512, "min_length": 0, "do_sample": False, "num_beams": 1},
    }


main()
