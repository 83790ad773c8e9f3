"""A language model of four layers with random weights, as a GGUF file."""

import argparse

import gguf
import numpy

HEADS = 4
LAYERS = 4


def main():
    parser = argparse.ArgumentParser(description="Makes a language model with random weights.")
    parser.add_argument("output")
    parser.add_argument("--width", type=int, default=128, help="length of an embedding, a multiple of 32")
    chosen = parser.parse_args()
    width, inner = chosen.width, 2 * chosen.width
    random = numpy.random.default_rng(0)
    # Bytes as tokens, then the letters as the tokens that a tokenizer prefers.
    tokens = [b"<unk>", b"<s>", b"</s>"]
    tokens += [b"<0x%02X>" % byte for byte in range(256)]
    tokens += [bytes([letter]) for letter in range(ord("a"), ord("z") + 1)]
    kinds = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL]
    kinds += [gguf.TokenType.BYTE] * 256 + [gguf.TokenType.NORMAL] * 26

    writer = gguf.GGUFWriter(chosen.output, "llama")
    writer.add_name("example")
    writer.add_context_length(512)
    writer.add_embedding_length(width)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(inner)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(width // HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types(kinds)
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)

    def weights(name, *dimensions):
        writer.add_tensor(name + ".weight", (random.standard_normal(dimensions) * 0.05).astype(numpy.float32))

    def ones(name):
        writer.add_tensor(name + ".weight", numpy.ones(width, numpy.float32))

    weights("token_embd", len(tokens), width)
    ones("output_norm")
    weights("output", len(tokens), width)
    for layer in range(LAYERS):
        block = f"blk.{layer}."
        ones(block + "attn_norm")
        ones(block + "ffn_norm")
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            weights(block + name, width, width)
        weights(block + "ffn_gate", inner, width)
        weights(block + "ffn_up", inner, width)
        weights(block + "ffn_down", width, inner)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


main()
