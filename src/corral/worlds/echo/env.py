"""Echo as an environment class: the smallest world, for trying out everything around it."""

from typing import Any


class Echo:
    """Repeats what it is told; longer messages are worth more, up to a limit.

    ::

        echo = Echo()
        echo.reset()
        echo.echo("hello")     # "hello"
        echo.get_reward()      # 0.5
    """

    reward_per_character = 0.1
    max_reward = 1.0
    """With ``reward_per_character`` the reward of OpenEnv's echo template."""

    def __init__(self) -> None:
        self._start()

    def reset(self, **kwargs: Any) -> str | None:
        """Forget the messages so far; columns of the row are not used."""
        self._start()
        return None

    def echo(self, message: str) -> str:
        """Echo the message back.

        Args:
            message: The text to repeat.
        """
        self.messages.append(message)
        self.reward = min(self.reward_per_character * len(message), self.max_reward)
        self.metrics = {"messages": float(len(self.messages)), "length": float(len(message))}
        return message

    def get_reward(self) -> float:
        """0.1 for each character of the last message, at most 1; 0 when there is none."""
        return self.reward

    def _start(self) -> None:
        self.messages: list[str] = []
        self.reward = 0.0
        self.metrics: dict[str, float] = {"messages": 0.0, "length": 0.0}
