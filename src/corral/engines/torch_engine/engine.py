"""The engine's surface: ``sample`` from any number of asyncio tasks, one model thread beneath."""

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import torch
from torch import nn

from corral.engines.torch_engine.architecture import inspect_model
from corral.engines.torch_engine.forward import Forward, evaluation_mode
from corral.engines.torch_engine.images import show
from corral.engines.torch_engine.linger import Linger
from corral.engines.torch_engine.memory import CacheMemory, default_budget_bytes
from corral.engines.torch_engine.proof import prove_cached_logits
from corral.engines.torch_engine.requests import Finished, Request
from corral.engines.torch_engine.scheduler import Scheduler
from corral.engines.torch_engine.stats import EngineStats
from corral.errors import CorralError, InfrastructureFault, UsageError
from corral.records import PlacedImage, Sampled, SamplingParams

# The event loop gets control back this often even if no turn ends and none arrives: often enough
# for timers, seldom enough that a tiny model does not wait for thread switches.
_SLICE_S = 0.02


class TorchEngine:
    """Samples turns from a ``transformers`` causal model, as it is, with continuous batching.

    The model object is the one passed in: weights that a learner updates are used at once. While
    turns are sampled the model is in evaluation mode; the flags are given back when none is left.
    Use it from one thread at a time; several ``asyncio.run`` calls one after the other are fine.

    ::

        engine = TorchEngine(model)
        params = SamplingParams(max_new_tokens=64, stop_ids=frozenset({2}), seed=1)
        sampled = await engine.sample(prompt_ids, params, key="game-1")
        ...                                    # the tool answers
        engine.weights_changed(version=1)      # after each update of the weights
        await engine.aclose()

    Args:
        max_batch: How many turns are decoded together; more wait in line.
        max_context: Longest conversation in tokens; None for what the model's configuration says.
        device: Where the model is; None for the device of its first parameter.
        keep_kv: False computes every prompt in full: slower, same samples up to rounding.
        kv_budget_bytes: Memory for the KV cache, conversations waiting for tools included. None
            for a quarter of the machine's. The turns being decoded may exceed it.
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        max_batch: int = 64,
        max_context: int | None = None,
        device: torch.device | str | None = None,
        keep_kv: bool = True,
        kv_budget_bytes: int | None = None,
    ):
        if max_batch < 1:
            raise UsageError(f"max_batch={max_batch}: must be at least 1.")
        architecture = inspect_model(model)
        self._model = architecture.model
        self._vocabulary = architecture.vocabulary
        self._max_context = _context_limit(max_context, architecture.context)
        place = torch.device(device) if device else next(model.parameters()).device
        forward = Forward(architecture, place)
        bytes_per_token = prove_cached_logits(forward)
        memory = CacheMemory(
            forward.cache,
            max_batch=max_batch,
            max_context=self._max_context,
            budget_bytes=kv_budget_bytes or default_budget_bytes(place),
            bytes_per_token=bytes_per_token,
        )
        self._stats = EngineStats()
        self._scheduler = Scheduler(
            forward,
            memory,
            self._stats,
            max_batch=max_batch,
            max_context=self._max_context,
            keep_kv=keep_kv,
        )
        self._linger = Linger()
        # What happened while a step ran, for the scheduler to see before the next one.
        self._arrived: deque[Request] = deque()
        self._released: deque[str] = deque()
        self._new_version: int | None = None
        self._wake: asyncio.Event | None = None
        self._driver: asyncio.Task[None] | None = None
        self._executor: ThreadPoolExecutor | None = None
        self._step: Future[list[Finished]] | None = None

    async def sample(
        self, prompt_ids: Sequence[int], params: SamplingParams, *, key: str
    ) -> Sampled:
        """Sample one turn after ``prompt_ids``; see :class:`corral.engines.protocol.Engine`."""
        return await self._sampled(self._request(prompt_ids, params, key))

    async def sample_with_images(
        self,
        prompt_ids: Sequence[int],
        params: SamplingParams,
        *,
        key: str,
        images: Sequence[PlacedImage],
    ) -> Sampled:
        """Sample one turn after a prompt with images: all that stand in it, in order."""
        request = self._request(prompt_ids, params, key)
        show(request, images, self._model)
        return await self._sampled(request)

    def _request(self, prompt_ids: Sequence[int], params: SamplingParams, key: str) -> Request:
        prompt = self._checked(prompt_ids)
        future = asyncio.get_running_loop().create_future()
        return Request(key=key, prompt=prompt, params=params, future=future)

    async def _sampled(self, request: Request) -> Sampled:
        loop = request.future.get_loop()
        self._arrived.append(request)
        self._linger.arrived(request.key, time.perf_counter())
        self._ensure_driver(loop)
        try:
            return await request.future
        except asyncio.CancelledError:
            request.future.cancel()
            raise

    def release(self, key: str) -> None:
        """Forget what was kept for ``key``; unknown keys are fine."""
        self._linger.released(key)
        self._released.append(key)
        self._signal()
        self._apply_notes_if_idle()

    def weights_changed(self, version: int) -> None:
        """Drop all KV, which older weights computed, and mark later samples with ``version``."""
        self._new_version = version
        self._apply_notes_if_idle()

    def max_context(self) -> int:
        """How many tokens a conversation may have in all."""
        return self._max_context

    def stats(self) -> EngineStats:
        """Return a copy of the running totals."""
        return replace(self._stats)

    async def aclose(self) -> None:
        """Stop; turns under way fail with InfrastructureFault. The engine can be used again."""
        if self._driver is not None and not self._driver.done():
            self._driver.cancel()
            await asyncio.gather(self._driver, return_exceptions=True)
        await self._finish_step()
        self._fail_all(InfrastructureFault("the engine was closed"))
        if self._executor is not None:
            self._executor.shutdown()
            self._executor = None

    def _checked(self, prompt_ids: Sequence[int]) -> np.ndarray:
        prompt = np.asarray(prompt_ids, dtype=np.int64)
        if prompt.ndim != 1 or not len(prompt):
            raise UsageError("prompt_ids is empty: a turn needs at least one token before it.")
        if len(prompt) >= self._max_context:
            raise UsageError(
                f"The prompt has {len(prompt)} tokens, which leaves no room in the model's context "
                f"of {self._max_context}. Shorten the conversation or raise max_context."
            )
        outside = prompt[(prompt < 0) | (prompt >= self._vocabulary)]
        if len(outside):
            raise UsageError(
                f"Token id {int(outside[0])} is outside the model's vocabulary of "
                f"{self._vocabulary}. Is it another model's tokenizer?"
            )
        return prompt

    def _ensure_driver(self, loop: asyncio.AbstractEventLoop) -> None:
        driver = self._driver
        if driver is None or driver.done() or driver.get_loop() is not loop:
            self._wake = asyncio.Event()
            self._driver = loop.create_task(self._drive(), name="corral-torch-engine")
        self._signal()

    def _signal(self) -> None:
        if self._wake is not None:
            self._wake.set()

    async def _drive(self) -> None:
        """Run model steps while there is work; hold the event loop only between steps."""
        try:
            with ExitStack() as modes:
                await self._finish_step()
                modes.enter_context(evaluation_mode(self._model))
                await self._drive_until_idle(modes)
        except Exception as error:  # noqa: BLE001 - the boundary: waiting turns get the error
            self._fail_all(error)

    async def _drive_until_idle(self, modes: ExitStack) -> None:
        while True:
            # Tasks that are ready to run may bring more turns into this step.
            await asyncio.sleep(0)
            await self._wait_for_returning()
            self._apply_notes()
            if not self._scheduler.has_work():
                return
            self._step = self._thread().submit(self._run_slice)
            finished = await asyncio.wrap_future(self._step)
            self._step = None
            is_last = not self._arrived and not self._scheduler.has_work()
            if is_last:
                # Before anybody hears of the last turn, a learner gets its training flags back.
                modes.close()
            self._deliver(finished)
            if is_last:
                return

    def _run_slice(self) -> list[Finished]:
        """Step until a turn ends, one arrives, or the slice is over. Runs in the model thread."""
        started = time.perf_counter()
        try:
            while True:
                finished = self._scheduler.step()
                is_over = time.perf_counter() - started > _SLICE_S
                if finished or is_over or self._arrived or not self._scheduler.has_work():
                    return finished
        finally:
            self._stats.seconds += time.perf_counter() - started

    async def _wait_for_returning(self) -> None:
        """Hold the next step while a conversation is expected back within milliseconds."""
        wake = self._wake
        while wake is not None and (wait_s := self._linger.wait_s(time.perf_counter())) > 0:
            wake.clear()
            try:
                await asyncio.wait_for(wake.wait(), wait_s)
            except TimeoutError:
                continue

    def _deliver(self, finished: list[Finished]) -> None:
        now = time.perf_counter()
        for one in finished:
            if not one.request.future.done():
                one.request.future.set_result(one.sampled)
                self._linger.turn_ended(one.request.key, now)

    def _apply_notes(self) -> None:
        """Tell the scheduler what happened since its last step. Only while no step runs."""
        if self._new_version is not None:
            self._scheduler.weights_changed(self._new_version)
            self._new_version = None
        while self._released:
            self._scheduler.release(self._released.popleft())
        while self._arrived:
            self._scheduler.waiting.append(self._arrived.popleft())

    def _apply_notes_if_idle(self) -> None:
        if self._driver is None or self._driver.done():
            self._apply_notes()

    def _thread(self) -> ThreadPoolExecutor:
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, thread_name_prefix="corral-torch-engine")
        return self._executor

    async def _finish_step(self) -> None:
        """Wait for a step whose driver was cancelled, so that nobody else touches its state."""
        step, self._step = self._step, None
        if step is not None:
            await asyncio.wait([asyncio.wrap_future(step)])

    def _fail_all(self, error: Exception) -> None:
        """Fail every turn that waits or is under way; nothing of the cache is trusted after it."""
        if not isinstance(error, CorralError):
            fault = InfrastructureFault(f"the engine failed: {type(error).__name__}: {error}")
            fault.__cause__ = error
            error = fault
        requests = [*self._arrived, *self._scheduler.abandon_all()]
        self._arrived.clear()
        for request in requests:
            loop = request.future.get_loop()
            if not request.future.done() and not loop.is_closed():
                request.future.set_exception(error)


def _context_limit(asked: int | None, trained: int | None) -> int:
    """Return the smaller of what was asked for and what the model has positions for."""
    if asked is None and trained is None:
        raise UsageError(
            "The model's configuration has no max_position_embeddings: pass max_context."
        )
    limits = [limit for limit in (asked, trained) if limit is not None]
    if min(limits) < 2:
        raise UsageError(f"max_context={min(limits)}: must be at least 2.")
    return min(limits)
