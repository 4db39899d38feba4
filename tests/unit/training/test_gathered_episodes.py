import pickle

from corral.records import (
    Episode,
    Finish,
    ModelImage,
    Outcome,
    PlacedImage,
    Sampled,
    SpanKind,
    Task,
    Transcript,
)
from corral.training.counters import count
from corral.training.episode_metrics import episode_metrics
from corral.training.exchange import gathered_episodes
from support.gallery import picture

SHOWN = picture(1, width=200, height=200)


def episode() -> Episode:
    image = ModelImage(digest="ab", picture=SHOWN, tokens=2, inputs={"pixel_values": SHOWN})
    placed = PlacedImage(image=image, start=0, stop=2)
    said = Sampled(ids=(5, 6), logprobs=(-1.0, -2.0), finish=Finish.STOP, version=0)
    message = {"role": "user", "content": [{"type": "image", "image": SHOWN}]}
    return Episode(
        task=Task(index=0, prompt=(message,), columns={"image": SHOWN}),  # type: ignore[arg-type]
        member=1,
        messages=(message,),  # type: ignore[arg-type]
        transcript=Transcript()
        .append(SpanKind.PROMPT, [9, 9, 1], images=[placed])
        .append_sampled(said),
        outcome=Outcome.FINISHED,
        turns=1,
        reward=0.5,
        rewards={"own": 0.5},
    )


def test_processes_exchange_numbers_without_pictures() -> None:
    (found,) = gathered_episodes([episode()])
    assert len(pickle.dumps(found)) < 2000
    assert len(pickle.dumps(episode())) > 100_000
    ends = frozenset({6})
    assert episode_metrics([found], ends) == episode_metrics([episode()], ends)
    counted = [
        count([one], stop_ids=ends, masks_truncated=False, is_own_template=False)
        for one in (found, episode())
    ]
    assert counted[0] == counted[1]
