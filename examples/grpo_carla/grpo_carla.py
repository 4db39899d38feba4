# /// script
# requires-python = ">=3.11"
# dependencies = ["corral[train,data]"]
# ///
"""GRPO in emergencies on the road, simulated by highway-env or by a CARLA server."""

import argparse
from dataclasses import replace

from corral import GRPOConfig, GRPOTrainer, RemoteEnvironment
from corral.hosting import find_environment
from corral.recipes.scratch import scratch_model
from corral.worlds import driving


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="Folder or hub id, such as Qwen/Qwen3-0.6B.")
    parser.add_argument("--world", choices=["driving", "driving_carla"], default="driving")
    parser.add_argument("--scenario", choices=list(driving.SCENARIOS), default="escape_exists")
    parser.add_argument("--url", help="A served world; without it, one of this machine's own.")
    parser.add_argument("--max-steps", type=int, default=50)
    parser.add_argument("--accumulation", type=int, default=16, help="Micro-batches a step.")
    parser.add_argument("--num-generations", type=int, default=8, help="Episodes of one task.")
    parser.add_argument("--max-tokens", type=int, default=1024, help="Of a whole episode.")
    parser.add_argument("--output", default="runs/grpo_carla")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    if args.url:
        world = replace(driving.WORLD, factory=RemoteEnvironment(args.url))
    else:
        world = find_environment(args.world)  # starts the server that its packages need
    config = GRPOConfig(
        output_dir=args.output,
        max_steps=args.max_steps,
        per_device_train_batch_size=args.num_generations,
        gradient_accumulation_steps=args.accumulation,
        num_generations=args.num_generations,
        max_completion_length=args.max_tokens,
        chat_template_kwargs={"enable_thinking": False},
        stop_when_done=True,
    )
    trainer = GRPOTrainer(
        model=args.model or scratch_model(world),
        train_dataset=driving.tasks(seed=0, count=1000, names=(args.scenario,)),
        environment_factory=world.factory,
        args=config,
    )
    trainer.train()
    trainer.save_model(f"{args.output}/model")


if __name__ == "__main__":
    main()
