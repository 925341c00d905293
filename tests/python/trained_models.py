"""Small language models that have learnt something: seeded, trained in seconds to minutes on
stories made here.
"""

import json
import random
from pathlib import Path

import torch

PEOPLE = "anna ben clara david emma frank grace henry iris jack".split()
THINGS = "ball book cup drum flute hat kite lamp map ring rope shell spoon stone toy".split()
PLACES = (
    "barn beach bridge cave forest garden hill house market mill river school tower yard".split()
)
FEELINGS = {
    "ball": "happy",
    "book": "quiet",
    "drum": "loud",
    "kite": "free",
    "lamp": "warm",
    "map": "lost",
    "ring": "rich",
    "stone": "tired",
}


def story(rng: random.Random) -> str:
    """A few sentences about who has what and where: much of each sentence follows from the ones
    before.
    """
    hero, friend = rng.sample(PEOPLE, 2)
    thing, place = rng.choice(THINGS), rng.choice(PLACES)
    lines = [f"one {rng.choice(('morning', 'evening', 'day'))} {hero} went to the {place} ."]
    lines.append(f"at the {place} {hero} found a {thing} .")
    if thing in FEELINGS:
        lines.append(f"the {thing} made {hero} {FEELINGS[thing]} .")
    for _ in range(rng.randrange(1, 4)):
        other = rng.choice([name for name in PLACES if name != place])
        lines.append(
            rng.choice(
                (
                    f"{hero} took the {thing} from the {place} to the {other} .",
                    f"then {hero} left the {place} with the {thing} and saw the {other} .",
                )
            )
        )
        place = other
    lines.append(f"{friend} was at the {place} too and asked for the {thing} .")
    lines.append(
        rng.choice(
            (
                f"so {hero} gave the {thing} to {friend} .",
                f"but {hero} kept the {thing} and {friend} went home .",
            )
        )
    )
    gave = lines[-1].startswith("so")
    lines.append(f"now {friend if gave else hero} has the {thing} . the end .")
    return " ".join(lines)


def stories(seed: int, count: int) -> str:
    rng = random.Random(seed)
    return "\n".join(story(rng) for _ in range(count)) + "\n"


def tokenizer(folder: Path):
    """Words as tokens, written into the folder as transformers reads it."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import AutoTokenizer

    words = sorted(set(stories(0, 2000).split()))
    made = Tokenizer(
        models.WordLevel({word: i for i, word in enumerate(["?", *words])}, unk_token="?")
    )
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    return AutoTokenizer.from_pretrained(folder)


def train(folder: Path, family: str, width: int, layers: int, steps: int, context: int = 64):
    """Leaves a model with tokenizer in the folder; returns it."""
    torch.set_num_threads(1)  # more only wait for each other at these sizes
    from transformers import AutoConfig, AutoModelForCausalLM

    words = tokenizer(folder)
    heads, size = width // 32, len(words)
    config = {
        "gpt2": dict(
            model_type="gpt2",
            n_embd=width,
            n_layer=layers,
            n_head=heads,
            n_positions=context,
            vocab_size=size,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
            bos_token_id=0,
            eos_token_id=0,
        ),
        "llama": dict(
            model_type="llama",
            hidden_size=width,
            num_hidden_layers=layers,
            num_attention_heads=heads,
            num_key_value_heads=heads // 2,
            intermediate_size=3 * width,
            max_position_embeddings=context,
            vocab_size=size,
            bos_token_id=0,
            eos_token_id=0,
        ),
    }[family]
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(
        AutoConfig.for_model(**config), attn_implementation="eager"
    )
    ids = torch.tensor(words(stories(1, 4000))["input_ids"])
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, 3e-3, total_steps=steps, pct_start=0.1
    )
    for _ in range(steps):
        start = torch.randint(len(ids) - context, (16,))
        batch = torch.stack([ids[at : at + context] for at in start.tolist()])
        optimizer.zero_grad()
        model(batch, labels=batch).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    model.eval().save_pretrained(folder)
    (folder / "config.json").write_text(json.dumps(config))
    return model
