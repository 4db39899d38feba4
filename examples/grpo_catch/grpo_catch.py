# /// script
# requires-python = ">=3.11"
# dependencies = ["corral[train,data]"]
# ///
"""GRPO in Catch: be below a falling ball when it arrives."""

import argparse

from corral import GRPOConfig, GRPOTrainer, RemoteEnvironment
from corral.recipes.scratch import scratch_model
from corral.worlds import catch


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="Folder or hub id, such as Qwen/Qwen2.5-0.5B-Instruct.")
    parser.add_argument("--url", help="A served catch; without it, one in this process.")
    parser.add_argument("--max-steps", type=int, default=100)
    parser.add_argument("--batch-size", type=int, default=2, help="Episodes a micro-batch.")
    parser.add_argument("--accumulation", type=int, default=16, help="Micro-batches a step.")
    parser.add_argument("--num-generations", type=int, default=8, help="Episodes of one ball.")
    parser.add_argument("--max-tokens", type=int, default=4096, help="Of a whole episode.")
    parser.add_argument("--output", default="runs/grpo_catch")
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
        stop_when_done=True,
    )
    trainer = GRPOTrainer(
        model=args.model or scratch_model(catch.WORLD),
        train_dataset=catch.tasks(seed=0, count=1000),
        environment_factory=RemoteEnvironment(args.url) if args.url else catch.Catch,
        args=config,
    )
    trainer.train()
    trainer.save_model(f"{args.output}/model")


if __name__ == "__main__":
    main()
