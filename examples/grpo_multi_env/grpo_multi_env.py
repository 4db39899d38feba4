# /// script
# requires-python = ">=3.11"
# dependencies = ["corral[train,data]"]
# ///
"""GRPO in two environments at once, Wordle and Catch, in either of the two ways to do it."""

import argparse

from corral import GRPOConfig, GRPOTrainer, RemoteEnvironment
from corral.recipes.scratch import scratch_model
from corral.worlds import catch, multi_env, wordle


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="Folder or hub id, such as Qwen/Qwen3-1.7B.")
    parser.add_argument(
        "--by",
        choices=["column", "factories"],
        default="column",
        help="One class that a column of the rows tells what to play, or a class for each game.",
    )
    parser.add_argument("--url", help="A served multi_env, for --by column.")
    parser.add_argument("--max-steps", type=int, default=100)
    parser.add_argument("--accumulation", type=int, default=4, help="Micro-batches a step.")
    parser.add_argument("--num-generations", type=int, default=8, help="Episodes of one task.")
    parser.add_argument("--max-tokens", type=int, default=1024, help="Of a whole episode.")
    parser.add_argument("--output", default="runs/grpo_multi_env")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    rows = multi_env.tasks(seed=0, count=1000)
    if args.by == "column":
        # All tools are offered; one of the other game raises. Each game has a column of rewards.
        played = RemoteEnvironment(args.url) if args.url else multi_env.WordleAndCatch
    else:
        # Each row names its class, and its prompt has the tools of that class alone.
        played = {"wordle": wordle.Wordle, "catch": catch.Catch}
        rows = [{**row, "environment": row.pop("env")} for row in rows]
    config = GRPOConfig(
        output_dir=args.output,
        max_steps=args.max_steps,
        per_device_train_batch_size=args.num_generations,
        gradient_accumulation_steps=args.accumulation,
        num_generations=args.num_generations,
        max_completion_length=args.max_tokens,
        stop_when_done=True,
    )
    trainer = GRPOTrainer(
        model=args.model or scratch_model(multi_env.WORLD),
        train_dataset=rows,
        environment_factory=played,
        args=config,
    )
    trainer.train()
    trainer.save_model(f"{args.output}/model")


if __name__ == "__main__":
    main()
