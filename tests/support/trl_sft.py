"""TRL's trainer of supervised fine-tuning, for comparison."""

from pathlib import Path
from typing import Any


def trl_trainer(
    folder: Path, model: Any, processing_class: Any, rows: list[Any], **options: Any
) -> Any:
    """The trainer on a CPU, in full precision, with every step logged.

    Args:
        processing_class: The tokenizer, or the processor of a model that reads images.
        options: Fields of TRL's ``SFTConfig``.
    """
    import datasets  # here: tests skip where they are not installed
    import trl

    args = trl.SFTConfig(
        output_dir=str(folder / "trl"),
        report_to="none",
        use_cpu=True,
        bf16=False,
        logging_steps=1,
        save_strategy="no",
        disable_tqdm=True,
        gradient_checkpointing=False,
        **options,
    )
    data = datasets.Dataset.from_list(rows)
    return trl.SFTTrainer(
        model=model, args=args, train_dataset=data, processing_class=processing_class
    )
