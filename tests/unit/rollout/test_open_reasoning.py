"""Where a template opens reasoning after some turns only, each turn is read as it began."""

from corral.chat import ChatFormat
from corral.engines.scripted import ScriptedEngine
from corral.env import prepare
from corral.records import Outcome, Task
from corral.rollout import Limits, Player
from support.family_templates import family_tokenizer


class Bell:
    """Counts how often it rings."""

    rings = 0

    def reset(self, **row: object) -> None:
        Bell.rings = 0

    def ring(self) -> str:
        """Ring the bell."""
        Bell.rings += 1
        return "ding"


async def test_a_call_after_a_result_is_no_reasoning_where_only_questions_open_it() -> None:
    kind = prepare(Bell)
    tokenizer, stops = family_tokenizer("deepseek v3.1 thinks")
    chat = ChatFormat.for_tokenizer(
        tokenizer,
        tools=kind.tools.schemas,
        extra_stop_ids=stops,
        template_kwargs={"thinking": True},
    )
    call = (
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>ring<｜tool▁sep｜>{}<｜tool▁call▁end｜>"
        "<｜tool▁calls▁end｜>"
    )
    said = [f"Maybe {call}</think>{call}", call, "Rung."]
    ids = [tokenizer.encode(text + tokenizer.eos_token) for text in said]
    engine = ScriptedEngine(lambda key, _: ids[len(engine.calls) - 1])
    player = Player(engine, chat, kinds={None: kind}, limits=Limits(episode_tokens=5000))
    task = Task(index=0, prompt=({"role": "user", "content": "Ring."},))
    (played,) = await player.play([task], 1)
    (episode,) = played.group.episodes
    assert (episode.outcome, episode.tools.calls, Bell.rings) == (Outcome.FINISHED, 2, 2)
    assert episode.messages[-1]["content"] == "Rung."
