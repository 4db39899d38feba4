"""Settings of transformers' TrainingArguments that no trainer of Corral has."""

from collections.abc import Mapping

from corral.training.foreign.setting import ForeignSetting, Reading

_NO_DATALOADER = "rows are read in the trainer's process, without a data loader"
_LAUNCHER = "the launcher decides how processes share the work"
_BY_LAUNCHER = "Set it with `accelerate config` and start the script with `accelerate launch`."
_NO_METRICS = "evaluation compares rewards, not logits with labels"
_USE_REWARDS = "Return what you want to see from a reward function, or use its log_metric."
_NO_COMPILE = "the engine samples from the module that is trained, and both change its shapes often"
_COMPILE = "Leave it out."
_SCRIPTS = "scripts read it, trainers do not"


def _scripted(default: object) -> ForeignSetting:
    return ForeignSetting(default=default, reason=_SCRIPTS, reading=Reading.KEPT)


def _dataloader(default: object) -> ForeignSetting:
    return ForeignSetting(default=default, reason=_NO_DATALOADER, reading=Reading.NOTED)


def _compiled(default: object) -> ForeignSetting:
    return ForeignSetting(default=default, reason=_NO_COMPILE, instead=_COMPILE)


def _launched(default: object, *harmless: object) -> ForeignSetting:
    return ForeignSetting(
        default=default, reason=_LAUNCHER, instead=_BY_LAUNCHER, harmless=harmless
    )


def _measured(default: object) -> ForeignSetting:
    return ForeignSetting(default=default, reason=_NO_METRICS, instead=_USE_REWARDS)


COMMON_SETTINGS: Mapping[str, ForeignSetting] = {
    # Optimise
    "optim_args": ForeignSetting(
        default=None,
        reason="it belongs to optimisers that need packages of their own",
        instead="Leave it out, or pass optimizers=(your_optimizer, None) to the trainer.",
    ),
    "optim_target_modules": ForeignSetting(
        default=None,
        reason="it belongs to GaLore and APOLLO, which Corral does not have",
        instead="Train a LoRA adapter (peft_config) where memory is short.",
    ),
    "average_tokens_across_devices": ForeignSetting(
        default=True,
        reason="losses are always divided by counts over all processes, so that the gradient does "
        "not depend on how rows are spread",
        instead="Leave it out.",
    ),
    "label_smoothing_factor": ForeignSetting(
        default=0.0,
        harmless=(0,),
        reason="the losses have no labels to smooth",
        instead="Leave it out; entropy_coef keeps a policy from becoming certain.",
    ),
    "fp16": ForeignSetting(
        default=False,
        reason="float16 needs its loss scaled, which the learner does not do",
        instead="Set bf16=True, or leave both out.",
    ),
    "bf16_full_eval": ForeignSetting(
        default=False,
        reason="the model that is evaluated is the one that is trained, in its own type",
        instead="Set bf16=True for mixed precision.",
    ),
    "fp16_full_eval": ForeignSetting(
        default=False,
        reason="the model that is evaluated is the one that is trained, in its own type",
        instead="Set bf16=True for mixed precision.",
    ),
    "tf32": ForeignSetting(
        default=None,
        harmless=(False,),
        reason="it changes all of torch, not only this trainer",
        instead='Call torch.set_float32_matmul_precision("high") in your script.',
    ),
    "torch_compile": _compiled(False),
    "torch_compile_backend": _compiled(None),
    "torch_compile_mode": _compiled(None),
    "use_liger_kernel": ForeignSetting(
        default=False,
        reason="its kernels replace layers that the engine samples from",
        instead="Leave it out: logits are computed in chunks of logits_chunk_tokens anyway.",
    ),
    "liger_kernel_config": ForeignSetting(
        default=None,
        reason="there is no Liger kernel",
        instead="Leave it out: logits are computed in chunks of logits_chunk_tokens anyway.",
    ),
    "use_cache": ForeignSetting(
        default=False,
        reason="the engine always keeps a key-value cache, the learner never",
        reading=Reading.NOTED,
    ),
    "neftune_noise_alpha": ForeignSetting(
        default=None,
        reason="noise in the embeddings would make the trained policy another one than the one "
        "that plays",
        instead="Leave it out.",
    ),
    "torch_empty_cache_steps": ForeignSetting(
        default=None,
        reason="no trainer empties torch's cache on a schedule",
        instead="Lower token_budget, or call torch.cuda.empty_cache() in a callback.",
    ),
    "auto_find_batch_size": ForeignSetting(
        default=False,
        reason="a smaller batch would cut groups apart",
        instead="Lower token_budget, which bounds memory and leaves the gradient as it is.",
    ),
    # Log
    "log_on_each_node": ForeignSetting(
        default=True,
        harmless=(False,),
        reason="only the main process logs",
        instead="Leave it out.",
    ),
    "logging_nan_inf_filter": ForeignSetting(
        default=True,
        harmless=(False,),
        reason="the loss is logged as it is, and a step with an infinite gradient is not made",
        instead="Leave it out.",
    ),
    "include_num_input_tokens_seen": ForeignSetting(
        default="no",
        harmless=(False, "non_padding"),
        reason="num_tokens counts tokens without padding, and is always logged",
        instead="Leave it out.",
    ),
    "log_level": ForeignSetting(
        default="passive",
        reason="a library does not change the levels of loggers",
        instead='Call logging.getLogger("corral").setLevel(...) in your script.',
    ),
    "log_level_replica": ForeignSetting(
        default="warning",
        reason="a library does not change the levels of loggers",
        instead='Call logging.getLogger("corral").setLevel(...) in your script.',
    ),
    "disable_tqdm": ForeignSetting(
        default=None,
        harmless=(True,),
        reason="the trainers draw no progress bar",
        instead="Use `corral train`, which shows progress, or a callback that draws one.",
    ),
    # Evaluate
    "prediction_loss_only": _measured(False),
    "eval_do_concat_batches": _measured(True),
    "eval_use_gather_object": _measured(False),
    "eval_accumulation_steps": ForeignSetting(
        default=None,
        reason="evaluation keeps no logits that would have to leave the device",
        reading=Reading.NOTED,
    ),
    "include_for_metrics": _measured([]),
    "batch_eval_metrics": _measured(False),
    "load_best_model_at_end": ForeignSetting(
        default=False,
        reason="train() ends with the last weights",
        instead="Keep checkpoints with save_steps and save_total_limit, and load the one whose "
        "evaluation in metrics.jsonl is best.",
    ),
    # Save
    "save_only_model": ForeignSetting(
        default=False,
        reason="a checkpoint is what a run resumes from, so it has its optimiser",
        instead='Set save_strategy="no" and call save_model(path) after train().',
    ),
    "save_on_each_node": ForeignSetting(
        default=False,
        reason="the main process writes checkpoints",
        instead="Put output_dir on storage that all nodes see.",
    ),
    "enable_jit_checkpoint": ForeignSetting(
        default=False,
        reason="no trainer saves upon a signal",
        instead="Set save_steps: a run killed at any moment resumes from the newest checkpoint.",
    ),
    "ignore_data_skip": ForeignSetting(
        default=False,
        reason="a resumed run plays what the unbroken one would have, and skips nothing to do so",
        instead="Leave it out.",
    ),
    "restore_callback_states_from_checkpoint": ForeignSetting(
        default=False,
        reason="checkpoints hold no state of callbacks",
        instead="Let the callback write its own state into args.output_dir.",
    ),
    # Run
    "full_determinism": ForeignSetting(
        default=False,
        reason="runs on CPUs are deterministic, and on GPUs it changes all of torch",
        instead="Call transformers.enable_full_determinism(seed) in your script.",
    ),
    "accelerator_config": _launched(None),
    "parallelism_config": _launched(None),
    "fsdp": _launched(None, "", False, []),
    "fsdp_config": _launched(None),
    "deepspeed": _launched(None),
    "local_rank": _scripted(-1),
    "ddp_broadcast_buffers": ForeignSetting(
        default=None,
        harmless=(False,),
        reason="processes make different numbers of forward passes, so sending buffers before each "
        "would hang",
        instead="Leave it out.",
    ),
    "debug": ForeignSetting(
        default="",
        harmless=([],),
        reason="it switches on helpers of transformers' own trainer",
        instead="Call torch.autograd.set_detect_anomaly(True) to find what overflows.",
    ),
    "skip_memory_metrics": ForeignSetting(
        default=True,
        reason="no trainer measures memory",
        instead="Read torch.cuda.max_memory_allocated() after train().",
    ),
    # Data
    "dataloader_drop_last": _dataloader(False),
    "dataloader_num_workers": _dataloader(0),
    "dataloader_pin_memory": _dataloader(True),
    "dataloader_persistent_workers": _dataloader(False),
    "dataloader_prefetch_factor": _dataloader(None),
    "dataloader_multiprocessing_context": _dataloader(None),
    "dataloader_in_order": _dataloader(True),
    "remove_unused_columns": ForeignSetting(
        default=False,
        reason="every column of a row goes to reset() and to the reward functions",
        instead="Remove columns from the dataset yourself: dataset.remove_columns([...]).",
    ),
    "label_names": _measured(None),
    "train_sampling_strategy": ForeignSetting(
        default="random",
        reason="rows come in a random order or in the data's",
        instead="Set shuffle_dataset=False for the data's order.",
    ),
    "length_column_name": ForeignSetting(
        default="length",
        reason="rows are not sampled by their length",
        reading=Reading.NOTED,
    ),
    # Scripts
    "do_train": _scripted(False),
    "do_eval": _scripted(False),
    "do_predict": _scripted(False),
    "resume_from_checkpoint": _scripted(None),
}
"""By name; the defaults are those of TRL's configurations."""
