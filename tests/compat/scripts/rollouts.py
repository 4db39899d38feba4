"""The script plays by itself: a function returns token ids, a mask and columns for the rewards."""

import os

from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer


def rollout(prompts, trainer):
    tokenizer = trainer.processing_class
    prompt_ids, completion_ids, masks, scores = [], [], [], []
    for place, prompt in enumerate(prompts):
        rendered = tokenizer.apply_chat_template(
            prompt, add_generation_prompt=True, tokenize=True, return_dict=True
        )
        said = tokenizer.encode(f"{prompt[-1]['content']} {place}", add_special_tokens=False)
        seen = tokenizer.encode(" [seen]", add_special_tokens=False)
        last = tokenizer.encode(" done" * (place % 4), add_special_tokens=False)
        prompt_ids.append(rendered["input_ids"])
        completion_ids.append([*said, *seen, *last, tokenizer.eos_token_id])
        masks.append([1] * len(said) + [0] * len(seen) + [1] * (len(last) + 1))
        scores.append(place % 4 if place != 2 else None)
    return {
        "prompt_ids": prompt_ids,
        "completion_ids": completion_ids,
        "logprobs": None,
        "env_mask": masks,
        "score": scores,
        "source": "script",
    }


def from_score(score, source, **kwargs):
    assert set(source) == {"script"}
    return score


def from_text(completions, **kwargs):
    return [completion[0]["content"].count("done") / 10 for completion in completions]


dataset = Dataset.from_list(
    [{"prompt": [{"role": "user", "content": text}]} for text in ("one", "two", "three", "four")]
)
trainer = GRPOTrainer(
    model=os.environ["MODEL"],
    reward_funcs=[from_score, from_text],
    train_dataset=dataset,
    rollout_func=rollout,
    args=GRPOConfig(
        output_dir=os.environ["OUTPUT_DIR"],
        per_device_train_batch_size=8,
        num_generations=4,
        max_completion_length=64,
        max_steps=3,
        logging_steps=1,
        report_to="none",
        bf16=False,
    ),
)
trainer.train()
trainer.end()
