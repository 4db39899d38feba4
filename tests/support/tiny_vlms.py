"""Tiny random models that read images, each with the processor of its family."""

from typing import Any

import torch
from transformers import (
    Idefics3Config,
    Idefics3ForConditionalGeneration,
    LlavaConfig,
    LlavaForConditionalGeneration,
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
    Qwen3VLConfig,
    Qwen3VLForConditionalGeneration,
)
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil
from transformers.models.idefics3.image_processing_pil_idefics3 import Idefics3ImageProcessorPil
from transformers.models.idefics3.processing_idefics3 import Idefics3Processor
from transformers.models.llava.processing_llava import LlavaProcessor
from transformers.models.qwen2_5_vl.processing_qwen2_5_vl import Qwen2_5_VLProcessor
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil
from transformers.models.qwen3_vl.processing_qwen3_vl import Qwen3VLProcessor
from transformers.processing_utils import ProcessorMixin

from support.toy_tokenizers import byte_level_tokenizer
from support.trl_templates import template_files

FAMILIES = ("qwen2_5_vl", "qwen3_vl", "idefics3", "llava")
CONTEXT = 2048
_QWEN = ("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
_IDEFICS = (
    "<fake_token_around_image>", "<image>", "<global-img>", "<end_of_utterance>",
    *(f"<row_{row}_col_{column}>" for row in (1, 2) for column in (1, 2)),
)  # fmt: skip
_TEXT: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": CONTEXT,
    "tie_word_embeddings": False,
}


def tiny_vlm(family: str, *, seed: int = 0) -> tuple[Any, Any]:
    """A model of some ten thousand random weights, and its processor."""
    processor = tiny_processor(family)
    torch.manual_seed(seed)
    model = _MODELS[family](processor)
    # Larger weights than at the start of training: every token depends on what was before it.
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.normal_(std=0.15)
    return model.eval(), processor


def tiny_processor(family: str) -> Any:
    """The family's own processor over a byte-level tokenizer and small images."""
    return _PROCESSORS[family]()


def _template(name: str) -> str:
    (path,) = [path for path in template_files() if path.stem == name]
    return path.read_text(encoding="utf-8")


class _ImagesOnly25(Qwen2_5_VLProcessor):
    """The processor without its video part, which cannot be made without torchvision."""

    def __init__(self, image_processor: Any, tokenizer: Any, chat_template: Any = None) -> None:
        _qwen_tokens(self, tokenizer)
        ProcessorMixin.__init__(self, image_processor, tokenizer, chat_template=chat_template)


class _ImagesOnly3(Qwen3VLProcessor):
    """As above."""

    def __init__(self, image_processor: Any, tokenizer: Any, chat_template: Any = None) -> None:
        _qwen_tokens(self, tokenizer)
        ProcessorMixin.__init__(self, image_processor, tokenizer, chat_template=chat_template)


def _qwen_tokens(processor: Any, tokenizer: Any) -> None:
    for kind in ("image", "video"):
        token = f"<|{kind}_pad|>"
        setattr(processor, f"{kind}_token", token)
        setattr(processor, f"{kind}_token_id", tokenizer.convert_tokens_to_ids(token))


def _qwen_processor(processor_class: Any, template: str) -> Any:
    tokenizer = byte_level_tokenizer(tags=_QWEN)
    images = Qwen2VLImageProcessorPil(
        patch_size=4,
        merge_size=2,
        temporal_patch_size=2,
        size={"shortest_edge": 256, "longest_edge": 4096},
    )
    return processor_class(images, tokenizer, chat_template=_template(template))


def _qwen_config(config_class: Any, processor: Any, vision: dict[str, Any]) -> Any:
    tokenizer = processor.tokenizer
    ids = {
        f"{name}_token_id": tokenizer.convert_tokens_to_ids(f"<|{text}|>")
        for name, text in (
            ("image", "image_pad"),
            ("video", "video_pad"),
            ("vision_start", "vision_start"),
            ("vision_end", "vision_end"),
        )
    }
    rope = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 1, 1]}
    text = {**_TEXT, "vocab_size": len(tokenizer), "rope_parameters": rope}
    common = {"patch_size": 4, "temporal_patch_size": 2, "spatial_merge_size": 2, "num_heads": 2}
    config = config_class(
        text_config=text | {"eos_token_id": tokenizer.eos_token_id},
        vision_config={**common, **vision},
        **ids,
    )
    config.tie_word_embeddings = False
    return config


def _qwen2_5(processor: Any) -> Any:
    vision = {
        "depth": 2,
        "hidden_size": 16,
        "intermediate_size": 24,
        "out_hidden_size": 32,
        "window_size": 16,
        "fullatt_block_indexes": [1],
    }
    return Qwen2_5_VLForConditionalGeneration(_qwen_config(Qwen2_5_VLConfig, processor, vision))


def _qwen3(processor: Any) -> Any:
    vision = {
        "depth": 2,
        "hidden_size": 16,
        "intermediate_size": 24,
        "out_hidden_size": 32,
        "num_position_embeddings": 64,
        "deepstack_visual_indexes": [0],
    }
    return Qwen3VLForConditionalGeneration(_qwen_config(Qwen3VLConfig, processor, vision))


def _idefics_processor() -> Any:
    tokenizer = byte_level_tokenizer(tags=_IDEFICS)
    images = Idefics3ImageProcessorPil(
        size={"longest_edge": 32}, max_image_size={"longest_edge": 16}
    )
    return Idefics3Processor(
        images, tokenizer, image_seq_len=4, chat_template=_template("idefics3")
    )


def _idefics(processor: Any) -> Any:
    tokenizer = processor.tokenizer
    vision = {
        "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2,
        "num_attention_heads": 2, "image_size": 16, "patch_size": 4,
    }  # fmt: skip
    config = Idefics3Config(
        text_config={"model_type": "llama", **_TEXT, "vocab_size": len(tokenizer)},
        vision_config=vision,
        scale_factor=2,
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        pad_token_id=tokenizer.pad_token_id,
        tie_word_embeddings=False,
    )
    return Idefics3ForConditionalGeneration(config)


def _llava_processor() -> Any:
    tokenizer = byte_level_tokenizer(tags=("<image>",))
    square = {"height": 16, "width": 16}
    images = CLIPImageProcessorPil(size={"shortest_edge": 16}, crop_size=square)
    return LlavaProcessor(
        images,
        tokenizer,
        patch_size=4,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
    )


def _llava(processor: Any) -> Any:
    tokenizer = processor.tokenizer
    vision = {
        "model_type": "clip_vision_model", "hidden_size": 16, "intermediate_size": 24,
        "num_hidden_layers": 2, "num_attention_heads": 2, "image_size": 16, "patch_size": 4,
        "projection_dim": 16,
    }  # fmt: skip
    config = LlavaConfig(
        text_config={"model_type": "llama", **_TEXT, "vocab_size": len(tokenizer)},
        vision_config=vision,
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        vision_feature_layer=-1,
        tie_word_embeddings=False,
    )
    return LlavaForConditionalGeneration(config)


_PROCESSORS: dict[str, Any] = {
    "qwen2_5_vl": lambda: _qwen_processor(_ImagesOnly25, "qwen2_5_vl"),
    "qwen3_vl": lambda: _qwen_processor(_ImagesOnly3, "qwen3_vl"),
    "idefics3": _idefics_processor,
    "llava": _llava_processor,
}
_MODELS: dict[str, Any] = {
    "qwen2_5_vl": _qwen2_5,
    "qwen3_vl": _qwen3,
    "idefics3": _idefics,
    "llava": _llava,
}
