"""Supervised fine-tuning on rows with images."""

from pathlib import Path
from typing import Any

import pytest
import torch

from corral import SFTConfig, SFTTrainer, UsageError
from corral.training import sft_evaluation
from support.gallery import picture
from support.tiny_models import tiny_model, tiny_tokenizer
from support.tiny_vlms import tiny_vlm

ASKED = [{"role": "user", "content": "What?"}]
SAID = [{"role": "assistant", "content": "A maze."}]
ROWS: list[dict[str, Any]] = [
    *({"messages": [*ASKED, *SAID], "images": [picture(seed)]} for seed in range(3)),
    {"messages": [*ASKED, *SAID]},
]
SHORT: dict[str, Any] = {
    "max_steps": 4,
    "per_device_train_batch_size": 2,
    "learning_rate": 1e-3,
    "lr_scheduler_type": "constant",
    "save_steps": 2,
    "logging_steps": 1,
}


def trainer(folder: Path, family: str = "llava", rows: Any = ROWS, **options: Any) -> SFTTrainer:
    model, processor = tiny_vlm(family)
    args = SFTConfig(output_dir=str(folder), **(SHORT | options))
    return SFTTrainer(model, args, rows, processing_class=processor)


def weights(model: Any) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


@pytest.mark.parametrize("family", ["qwen3_vl", "idefics3"])
def test_images_are_learned_from_and_a_resumed_run_is_the_unbroken_one(
    tmp_path: Path, family: str
) -> None:
    whole = trainer(tmp_path / "whole", family, assistant_only_loss=True)
    tower = next(part for name, part in whole.model.named_modules() if "vis" in name)
    before = weights(tower)
    whole.train()
    whole.end()
    assert not torch.equal(before, weights(tower))
    half = trainer(tmp_path / "half", family, assistant_only_loss=True, max_steps=2)
    half.train()
    half.end()
    rest = trainer(tmp_path / "half", family, assistant_only_loss=True)
    rest.train(resume_from_checkpoint=True)
    rest.end()
    assert torch.equal(weights(rest.model), weights(whole.model))
    whole.save_model(tmp_path / "saved")
    assert (tmp_path / "saved" / "processor_config.json").is_file()


def test_an_evaluation_in_parts_is_one_evaluation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = trainer(tmp_path)
    at_once = run.evaluate(ROWS)
    monkeypatch.setattr(sft_evaluation, "_PART", 1)
    in_parts = run.evaluate(ROWS)
    for name in ("eval_loss", "eval_entropy", "eval_mean_token_accuracy"):
        assert in_parts[name] == pytest.approx(at_once[name], rel=1e-5)


def test_pictures_of_a_table_are_read_row_by_row(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    table = datasets.Dataset.from_list([row for row in ROWS if "images" in row])
    read: list[int] = []
    pick = type(table).__getitem__

    def watched(self: Any, key: int) -> Any:
        read.append(key)
        return pick(self, key)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(table), "__getitem__", watched)
        run = trainer(tmp_path / "table", rows=table, max_steps=1, shuffle_dataset=True)
        assert len(read) == 0
        run.train()
    assert len(read) == 2
    listed = trainer(
        tmp_path / "listed",
        rows=[row for row in ROWS if "images" in row],
        max_steps=1,
        shuffle_dataset=True,
    )
    listed.train()
    assert torch.equal(weights(run.model), weights(listed.model))


def test_a_text_with_placeholders_takes_the_images_of_its_columns(tmp_path: Path) -> None:
    rows = [
        {"text": "see <image> and <image>", "images": [picture(1), picture(2)]},
        {"prompt": "see <image>: ", "completion": "a maze", "image": picture(1)},
    ]
    run = trainer(tmp_path / "run", rows=rows)
    first, second = (run.encoder.encode(row) for row in rows)
    assert [len(first.images), len(second.images)] == [2, 1]
    assert not any(second.is_trained[: second.images[0].stop])
    run.train()


def test_rows_that_cannot_be_learned_from_are_named_at_once(tmp_path: Path) -> None:
    picked = picture(1)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"text": "see <image>", "images": [picked, picked]}, "Row 0: .*1 placeholders.* 2 images"),
        ({"text": "see <image>"}, "Row 0: it has 1 tokens '<image>', of which its 0 images take 0"),
        ({"input_ids": [1, 2], "image": picked}, "Row 0: 'input_ids' beside images"),
        ({"messages": [*ASKED, *SAID], "image": b"nothing"}, "Row 0: .*no readable image"),
        ({"messages": [*ASKED, *SAID], "image": "missing.png"}, "Row 0: .*missing.png"),
    ]
    for row, message in wrong:
        with pytest.raises(UsageError, match=message):
            trainer(tmp_path / "run", rows=[row]).train()
    said = {"role": "assistant", "content": [{"type": "image", "image": picked}]}
    with pytest.raises(UsageError, match="Row 0: An assistant message has an image"):
        trainer(
            tmp_path / "run", rows=[{"messages": [*ASKED, said]}], assistant_only_loss=True
        ).train()


def test_a_model_of_text_alone_is_not_shown_images(tmp_path: Path) -> None:
    tokenizer = tiny_tokenizer()
    with pytest.raises(UsageError, match=r"Row 0: it has images, but .* AutoProcessor"):
        SFTTrainer(
            tiny_model(tokenizer),
            SFTConfig(output_dir=str(tmp_path)),
            ROWS,
            processing_class=tokenizer,
        )


@pytest.mark.parametrize("name", ["packing", "eval_packing", "padding_free"])
def test_rows_with_images_are_not_laid_behind_each_other(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=f"{name}=True lays rows behind each other"):
        trainer(tmp_path, "llava", ROWS, **{name: True})


def test_text_alone_may_still_be_packed(tmp_path: Path) -> None:
    run = trainer(tmp_path, rows=ROWS[3:], packing=True, max_steps=1)
    assert run.train().training_loss > 0


def test_a_row_that_is_too_long_ends_before_the_image_that_does_not_fit(tmp_path: Path) -> None:
    asked = {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image"}]}
    row = {"messages": [asked, *SAID, asked, *SAID], "images": [picture(1), picture(2)]}
    run = trainer(tmp_path, rows=[row], max_length=None)
    whole = run.encoder.encode(row)
    second = whole.images[1]
    for length in range(second.start + 1, second.stop):
        cut = whole.first(length)
        assert len(cut.ids) == second.start
        assert cut.images == whole.images[:1]
    assert whole.first(second.stop).images == whole.images
    cut_run = trainer(tmp_path, rows=[row], max_length=second.stop - 1, max_steps=1)
    cut_run.train()
