# /// script
# requires-python = ">=3.11"
# dependencies = ["corral[train,data]"]
# ///
"""GRPO in Wordle, with a reward for winning, for letters found, and for invalid guesses."""

import argparse

from corral import GRPOConfig, GRPOTrainer, RemoteEnvironment
from corral.recipes.scratch import scratch_model
from corral.worlds import wordle


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="Folder or hub id of a model warmed up by SFT.")
    parser.add_argument("--url", help="A served wordle; without it, one in this process.")
    parser.add_argument("--max-steps", type=int, default=150)
    parser.add_argument("--batch-size", type=int, default=8, help="Episodes a micro-batch.")
    parser.add_argument("--accumulation", type=int, default=8, help="Micro-batches a step.")
    parser.add_argument("--num-generations", type=int, default=16, help="Episodes of one word.")
    parser.add_argument("--max-tokens", type=int, default=4096, help="Of a whole episode.")
    parser.add_argument("--output", default="runs/grpo_wordle")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    config = GRPOConfig(
        output_dir=args.output,
        max_steps=args.max_steps,
        per_device_train_batch_size=args.batch_size,
        gradient_accumulation_steps=args.accumulation,
        num_generations=args.num_generations,
        max_completion_length=args.max_tokens,
        max_tool_calling_iterations=12,
        importance_sampling_mode="token_truncate",
        learning_rate=1e-6,
        lr_scheduler_type="constant",
        chat_template_kwargs={"enable_thinking": True},
    )
    trainer = GRPOTrainer(
        model=args.model or scratch_model(wordle.WORLD),
        train_dataset=wordle.tasks(seed=0, count=600),
        environment_factory=RemoteEnvironment(args.url) if args.url else wordle.Wordle,
        args=config,
    )
    trainer.train()
    trainer.save_model(f"{args.output}/model")


if __name__ == "__main__":
    main()
