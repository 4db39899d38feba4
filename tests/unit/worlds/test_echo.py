import pytest

from corral.worlds.echo import Echo, evaluation_tasks, tasks


def test_echo_repeats():
    assert Echo().echo("hi") == "hi"


@pytest.mark.parametrize(("message", "reward"), [("", 0.0), ("hi", 0.2), ("x" * 99, 1.0)])
def test_reward_is_the_length_up_to_a_limit(message: str, reward: float):
    env = Echo()
    env.reset(prompt="anything")
    env.echo(message)
    assert env.get_reward() == pytest.approx(reward)


def test_the_last_message_counts_and_reset_forgets_it():
    env = Echo()
    env.echo("x" * 99)
    env.echo("hi")
    assert env.get_reward() == pytest.approx(0.2)
    env.reset()
    assert env.get_reward() == 0.0
    assert env.messages == []


def test_prompts_of_evaluations_are_never_trained_on_but_all_their_words_are():
    trained = {row["prompt"] for row in tasks(seed=3, count=200)}
    held_out = {row["prompt"] for row in evaluation_tasks()}
    assert (len(trained), len(held_out)) == (32, 32)
    assert not trained & held_out
    assert {word for text in held_out for word in text.split()} == {
        word for text in trained for word in text.split()
    }
