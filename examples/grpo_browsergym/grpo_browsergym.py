# /// script
# requires-python = ">=3.11"
# dependencies = ["corral[train,data]"]
# ///
"""GRPO on web pages: a task of MiniWoB in a real Chromium, as text, or as a picture too."""

import argparse
from dataclasses import replace

from corral import GRPOConfig, GRPOTrainer, RemoteEnvironment
from corral.hosting import find_environment
from corral.recipes.scratch import scratch_model
from corral.worlds import browser


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="Folder or hub id, such as Qwen/Qwen3-0.6B.")
    parser.add_argument("--task", default="click-test", help="Any of MiniWoB's 125.")
    parser.add_argument("--pictures", action="store_true", help="For a --model that reads images.")
    parser.add_argument("--url", help="A served browser; without it, those of this machine.")
    parser.add_argument("--max-steps", type=int, default=100)
    parser.add_argument("--accumulation", type=int, default=32, help="Episodes a step.")
    parser.add_argument("--num-generations", type=int, default=4, help="Episodes of one page.")
    parser.add_argument("--max-tokens", type=int, default=4096, help="Of a whole episode.")
    parser.add_argument("--output", default="runs/grpo_browsergym")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    if args.url:
        world = replace(browser.WORLD, factory=RemoteEnvironment(args.url))
    else:  # starts the server that its packages need
        world = find_environment("corral.worlds.browser:PICTURES" if args.pictures else "browser")
    rows = browser.tasks(seed=0, count=1000, names=(args.task,))
    config = GRPOConfig(
        output_dir=args.output,
        max_steps=args.max_steps,
        per_device_train_batch_size=1,
        gradient_accumulation_steps=args.accumulation,
        num_generations=args.num_generations,
        generation_batch_size=args.num_generations,  # browsers at a time
        max_completion_length=args.max_tokens,
        max_tool_calling_iterations=10,
        temperature=0.7,
        top_k=50,
        learning_rate=5e-6,
        stop_when_done=True,
    )
    trainer = GRPOTrainer(
        model=args.model or scratch_model(world.on(rows)),
        train_dataset=rows,
        environment_factory=world.factory,
        args=config,
    )
    trainer.train()
    trainer.save_model(f"{args.output}/model")


if __name__ == "__main__":
    main()
