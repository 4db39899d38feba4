# /// script
# requires-python = ">=3.11"
# dependencies = ["corral[train,data]"]
# ///
"""GRPO in Sudoku, with partial credit for valid moves and filled cells."""

import argparse
from typing import Any

from corral import GRPOConfig, GRPOTrainer, RemoteEnvironment
from corral.recipes.scratch import scratch_model
from corral.worlds import find_world


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="Folder or hub id, such as Qwen/Qwen3-1.7B.")
    parser.add_argument("--world", choices=["sudoku", "sudoku_4x4"], default="sudoku_4x4")
    parser.add_argument("--difficulty", choices=["very_easy", "easy", "medium", "hard"])
    parser.add_argument("--hints", choices=["easy", "medium", "hard"])
    parser.add_argument("--url", help="A served sudoku; without it, one in this process.")
    parser.add_argument("--lora", action="store_true", help="Train an adapter of rank 16.")
    parser.add_argument("--max-steps", type=int, default=100)
    parser.add_argument("--accumulation", type=int, default=64, help="Episodes a step.")
    parser.add_argument("--num-generations", type=int, default=8, help="Episodes of one puzzle.")
    parser.add_argument("--max-tokens", type=int, default=16384, help="Of a whole episode.")
    parser.add_argument("--output", default="runs/grpo_sudoku")
    return parser.parse_args()


def adapter() -> Any:
    from peft import LoraConfig

    return LoraConfig(r=16, lora_alpha=32, task_type="CAUSAL_LM", target_modules="all-linear")


def main() -> None:
    args = arguments()
    world = find_world(args.world)
    level = {name: getattr(args, name) for name in ("difficulty", "hints")}
    config = GRPOConfig(
        output_dir=args.output,
        max_steps=args.max_steps,
        per_device_train_batch_size=1,
        gradient_accumulation_steps=args.accumulation,
        num_generations=args.num_generations,
        max_completion_length=args.max_tokens,
        max_tool_calling_iterations=100,
        temperature=0.8,
        top_k=10,
        learning_rate=5e-6,
        warmup_steps=20,
        stop_when_done=True,
    )
    trainer = GRPOTrainer(
        model=args.model or scratch_model(world),
        train_dataset=[{**row, **level} for row in world.tasks(0, 1000)],
        environment_factory=RemoteEnvironment(args.url) if args.url else world.factory,
        peft_config=adapter() if args.lora else None,
        args=config,
    )
    trainer.train()
    trainer.save_model(f"{args.output}/model")


if __name__ == "__main__":
    main()
