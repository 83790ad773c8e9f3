"""Requests to a language model: prompts of several lengths, and steps of decoding after each."""

import time

# Tokens of the prompts, one request after the other.
PROMPTS = (5, 128, 40, 160)
# Steps of decoding after each.
STEPS = 24
# The token of all prompts.
TOKEN = 7


def now():
    """Time by the clock that the profiler uses, ns."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


class Answers:
    """Requests so far; `largest` is the largest batch that prompts are divided into."""

    def __init__(self, largest=max(PROMPTS)):
        self.largest = largest
        self.requests = 0
        self.counts = {"prompt_tokens": 0, "prompt_batches": 0, "decode_tokens": 0}
        self.times = {"first_token_ns": 0, "between_tokens_ns": 0}

    def run(self, prompt, step):
        """One request: `prompt(tokens)` takes a part of the prompt, `step()` decodes a token; both return with its result."""
        left = PROMPTS[self.requests % len(PROMPTS)]
        self.requests += 1
        self.counts["prompt_tokens"] += left
        begin = now()
        while left > 0:
            prompt(min(left, self.largest))
            self.counts["prompt_batches"] += 1
            left -= self.largest
        last = now()
        self.times["first_token_ns"] += last - begin
        begin = last
        for _ in range(STEPS):
            step()
        self.times["between_tokens_ns"] += now() - begin
        self.counts["decode_tokens"] += STEPS

    def figures(self):
        """What is known of all requests."""
        return self.counts | self.times
