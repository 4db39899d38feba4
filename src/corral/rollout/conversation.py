"""The conversation of one episode: messages and tokens that grow together."""

from collections.abc import Sequence

from corral.chat.images import Encoded
from corral.records import Message, PlacedImage, Sampled, SpanKind, Transcript


class Conversation:
    """Messages and transcript of one episode, which always tell the same story.

    Whatever is not certain to stay (a turn being sampled, tool results that may not fit) is kept by
    the caller until it is; nothing is ever taken back from here.
    """

    def __init__(self, messages: Sequence[Message], prompt: Encoded) -> None:
        self.messages: list[Message] = list(messages)
        self.completion_start = len(self.messages)
        self.transcript = Transcript().append(SpanKind.PROMPT, prompt.ids, images=prompt.images)
        self.ids: list[int] = list(prompt.ids)
        self.images: list[PlacedImage] = list(prompt.images)
        self.prompt_length = len(self.ids)
        self.turns = 0

    @property
    def used(self) -> int:
        """How many tokens follow the prompt."""
        return len(self.ids) - self.prompt_length

    def add_turn(self, sampled: Sampled, message: Message) -> None:
        """Append what the model said, with the engine's own ids."""
        self.messages.append(message)
        self.transcript = self.transcript.append_sampled(sampled)
        self.ids += sampled.ids
        self.turns += 1

    def add_results(self, results: Sequence[Message], suffix: Encoded | None) -> None:
        """Append tool messages and the tokens that carry them.

        No suffix appends the messages alone: the last ones of an episode, which the model never
        reads.
        """
        self.messages += results
        if suffix is not None:
            ids, images = suffix
            self.transcript = self.transcript.append(SpanKind.TOOL, ids, images=images)
            self.images += [image.moved(len(self.ids)) for image in images]
            self.ids += ids
