# /// script
# requires-python = ">=3.11"
# dependencies = ["corral[train,data]"]
# ///
"""GRPO in the smallest world: say something; the longer, the better, up to ten characters."""

import argparse

from corral import GRPOConfig, GRPOTrainer, RemoteEnvironment
from corral.recipes.scratch import scratch_model
from corral.worlds import echo


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="Folder or hub id, such as Qwen/Qwen3-0.6B.")
    parser.add_argument("--url", help="A served echo; without it, one in this process.")
    parser.add_argument("--max-steps", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=8, help="Episodes a step.")
    parser.add_argument("--num-generations", type=int, default=8, help="Episodes a prompt.")
    parser.add_argument("--max-tokens", type=int, default=512, help="Of a whole episode.")
    parser.add_argument("--output", default="runs/grpo_echo")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    config = GRPOConfig(
        output_dir=args.output,
        max_steps=args.max_steps,
        per_device_train_batch_size=args.batch_size,
        num_generations=args.num_generations,
        max_completion_length=args.max_tokens,
        chat_template_kwargs={"enable_thinking": False},
        log_completions=True,
        num_completions_to_print=2,
    )
    trainer = GRPOTrainer(
        model=args.model or scratch_model(echo.WORLD),
        train_dataset=echo.tasks(seed=0, count=64),
        environment_factory=RemoteEnvironment(args.url) if args.url else echo.Echo,
        args=config,
    )
    trainer.train()
    trainer.save_model(f"{args.output}/model")


if __name__ == "__main__":
    main()
