"""A conversation with one design: the KV cache stays in its memory, so each turn of the
conversation reads only new tokens.
"""

import io
import sys
import tempfile
from pathlib import Path

from streamtensor import workflow
from streamtensor.language import models
from streamtensor.language.generation import Decoder
from streamtensor.progress import Progress

# token ids: this model has no tokenizer
TURNS, ANSWER = ([3, 14, 15, 92, 65, 35, 89, 79, 32], [38, 46, 26], [43, 38]), 5

model = models.load(str(Path(__file__).parent / "tiny-gpt2"))
shape = workflow.step_shapes(model, "decode", context=64, tokens=None)[0]
quiet = Progress(io.StringIO())
with tempfile.TemporaryDirectory() as work:
    lowered = workflow.compile_files(model, shape, "u55c", Path(work) / "design", quiet)
    with workflow.open_design(Path(work) / "design", lowered, quiet) as design:
        decoder, text = Decoder(design, shape), []
        for turn in TURNS:
            text, launches = [*text, *turn], []
            answer = list(decoder.tokens(text, ANSWER, launched=launches.append))
            read = sum(launch.count for launch in launches)
            print(f"{len(text)} tokens so far, {read - ANSWER + 1} of them read: {answer}")
            before, text = text, text + answer
        decoder.reset()
        again = list(decoder.tokens(before, ANSWER))
print("the same from the beginning" if again == answer else f"from the beginning: {again}")
sys.exit(again != answer)
