"""streamtensor generate: compiles a model and prints the text that its design generates."""

import contextlib
from pathlib import Path

from ..errors import Error
from ..progress import Progress
from ..work_folder import WorkFolder
from .arguments import (
    add_argmax,
    add_calibration,
    add_context,
    add_model,
    add_output,
    add_prefill_chunk,
    add_quant_method,
    new_command,
)
from .checked_options import checked_platform, first_set, other_settings, scheme_of
from .language_model import calibrated, check_quant_method, has_states, load, uses_engine


def add(commands, name: str) -> None:
    command = new_command(
        commands,
        name,
        "Compile a model, run the design on the CPU and print the generated text.",
        run,
        "compile",
    )
    add_model(command)
    prompt = command.add_mutually_exclusive_group(required=True)
    prompt.add_argument(
        "--prompt",
        action="append",
        metavar="TEXT",
        help="prompt text; repeat it for a batch of sequences; needs the model's tokenizer",
    )
    prompt.add_argument(
        "--prompt-ids",
        type=_ids,
        action="append",
        metavar="ID,ID,...",
        help="prompt as token ids; repeat it for a batch of sequences",
    )
    command.add_argument(
        "--no-chat-template",
        action="store_true",
        help="use the prompt unchanged, without the model's chat template",
    )
    command.add_argument(
        "--max-new-tokens",
        type=int,
        default=16,
        metavar="N",
        help="maximum number of generated tokens (default 16)",
    )
    command.add_argument(
        "--stop",
        action="append",
        default=[],
        metavar="TEXT",
        help="stop before this text appears; may be repeated",
    )
    command.add_argument(
        "--temperature",
        type=float,
        default=0.0,
        metavar="T",
        help="sampling temperature; 0 (default): greedy decoding",
    )
    command.add_argument(
        "--top-k",
        type=int,
        metavar="N",
        help="sample from the N most likely tokens (default 0: all, or what the model's folder "
        "says)",
    )
    command.add_argument(
        "--top-p",
        type=float,
        metavar="P",
        help="sample from the most likely tokens with total probability P (default 1, or what the "
        "model's folder says)",
    )
    command.add_argument(
        "--tokens-per-launch",
        type=int,
        metavar="N",
        help="tokens decoded per launch, fed back on the device (default 16; 1 when sampling)",
    )
    add_context(command)
    add_prefill_chunk(command, "; w4a8: 1, which means no prefill")
    add_argmax(command)
    add_quant_method(command)
    add_calibration(command)
    add_output(command, required=False, help="output folder: the design is kept there")


def run(options, progress: Progress) -> int:
    from .. import output_folder, workflow
    from ..language import generation, generation_output

    scheme_of(options)
    if options.argmax and options.temperature:
        raise Error(
            f"--argmax and --temperature {options.temperature:g} contradict each other",
            "sampling needs the logits: accepted is one of them",
        )
    default = 1 if options.temperature else generation.TOKENS_PER_LAUNCH
    per_launch = default if options.tokens_per_launch is None else options.tokens_per_launch
    argmax = options.argmax or (per_launch > 1 and not options.temperature)
    generation.check_per_launch(per_launch, argmax)
    sampler = generation.Sampler(
        options.temperature,
        options.top_k or 0,
        1.0 if options.top_p is None else options.top_p,
        options.seed,
    )
    _check_text(options)
    check_quant_method(options)
    platform = checked_platform(options, progress)
    if options.output:
        output_folder.check(options.output, workflow.DESIGN_FILES)
    model = load(options, progress)
    quant = scheme_of(options)
    _follow_rules(options, model, sampler, progress)
    if sampler.rules:
        per_launch, argmax = 1, False
    elif has_states(model) and options.tokens_per_launch is None:
        per_launch = 1
    end = model.end_tokens()
    tokenizer = None if options.prompt is None else model.tokenizer()
    prompts = _prompts(options, tokenizer)
    both = _both_phases(options, model)
    shapes = workflow.step_shapes(
        model,
        "both" if both else "decode",
        options.context,
        options.prefill_chunk,
        argmax,
        len(prompts),
        uses_engine(options),
    )
    shape = shapes[0]
    generation.check_states(per_launch, shape)
    new = min(
        generation.check_prompt(
            prompt,
            options.max_new_tokens,
            model.config.vocab_size,
            shape.past + 1,
            workflow.context_limit(model),
        )
        for prompt in prompts
    )
    with _design_folder(options.output) as folder:
        lowered = workflow.compile_phases(
            model,
            shapes,
            platform,
            folder,
            progress,
            quant,
            integers=calibrated(options, model, progress),
            others=other_settings(options),
        )
        with workflow.open_design(folder, lowered, progress) as design:
            progress.stage("generate")
            chunk = shapes[-1] if both else None
            answer = (
                generation_output.AnswerStream(
                    generation.Decoder(design, shape, chunk, per_launch),
                    tokenizer,
                    prompts[0],
                    options.stop,
                )
                if len(prompts) == 1
                else generation_output.BatchAnswers(
                    generation.BatchDecoder(design, shape, chunk, per_launch),
                    tokenizer,
                    prompts,
                    options.stop,
                )
            )
            answer.write(new, sampler, end, progress.update)
        if answer.stop_reason is None and new < options.max_new_tokens:
            progress.note(f"the context of {shape.past + 1} tokens is full")
        generation_output.print_speed(folder, answer, shapes)
    return 0


def _both_phases(options, model) -> bool:
    """Whether a prompt is read in chunks."""
    if options.prefill_chunk is not None:
        return options.prefill_chunk != 1
    return not uses_engine(options) and not has_states(model)


def _follow_rules(options, model, sampler, progress: Progress) -> None:
    """Gives the sampler what generation_config.json says about the choice of tokens."""
    from ..language import generation_rules

    rules = generation_rules.GenerationRules.of(model, options.max_new_tokens)
    if rules is None:
        return
    on_device = options.argmax or (options.tokens_per_launch or 1) > 1
    if rules.applied and not on_device:
        sampler.rules = rules.logits
        progress.note(f"{', '.join(rules.applied)} of generation_config.json applied")
    if rules.sampling and options.temperature:
        if options.top_k is None:
            sampler.top_k = rules.sampling.get("top_k", 0)
        if options.top_p is None:
            sampler.top_p = rules.sampling.get("top_p", 1.0)
    for note in generation_rules.notes(rules, on_device, bool(options.temperature)):
        progress.note(note)


def _check_text(options) -> None:
    """Rejects options about text without --prompt, and options about sampling without sampling."""
    for name, texts in (("--prompt", options.prompt), ("--stop", options.stop)):
        # how Python decodes a byte that is not UTF-8
        if any("\udc80" <= letter <= "\udcff" for text in texts or () for letter in text):
            raise Error(f"{name} is not UTF-8", "accepted is plain text")
    if "" in options.stop:
        raise Error("--stop is empty", "accepted is a text that ends the answer")
    about_text = first_set(
        (("--stop", options.stop), ("--no-chat-template", options.no_chat_template))
    )
    if about_text and options.prompt is None:
        raise Error(
            f"{about_text} has no effect with --prompt-ids, which use no tokenizer",
            "accepted is --prompt TEXT",
        )
    about_sampling = first_set((("--top-k", options.top_k), ("--top-p", (options.top_p or 1) < 1)))
    if about_sampling and not options.temperature:
        raise Error(
            f"{about_sampling} has no effect with --temperature 0 (greedy decoding)",
            "accepted is a --temperature above 0",
        )


@contextlib.contextmanager
def _design_folder(output: Path | None):
    if output:
        yield output
        return
    with WorkFolder() as work:
        yield Path(work) / "design"


def _prompts(options, tokenizer) -> list[list[int]]:
    if options.prompt is None:
        return options.prompt_ids
    if tokenizer is None:
        raise Error(
            f"{options.model} has no tokenizer here, so --prompt cannot be read",
            "--prompt-ids takes token ids, as in --prompt-ids 464,3290",
        )
    return [_read_prompt(text, tokenizer, options.no_chat_template) for text in options.prompt]


def _read_prompt(text: str, tokenizer, raw: bool) -> list[int]:
    if tokenizer.chat_template and not raw:
        messages = [{"role": "user", "content": text}]
        try:
            return list(
                tokenizer.apply_chat_template(
                    messages, add_generation_prompt=True, return_dict=True
                )["input_ids"]
            )
        except Exception as error:
            raise Error(
                "the model's chat template cannot take the prompt: "
                f"{type(error).__name__}: {error}",
                "--no-chat-template passes the prompt unchanged",
            ) from error
    return tokenizer(text)["input_ids"]


def _ids(text: str) -> list[int]:
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise Error(
            f"--prompt-ids '{text}' is not a list of token ids",
            "accepted are whole numbers with commas, as in 464,3290",
        ) from None
