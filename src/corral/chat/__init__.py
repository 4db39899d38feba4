"""Messages to tokens and back, append-only.

::

    chat = ChatFormat.for_tokenizer(tokenizer)     # proves the template, or raises TemplateError
    ids = chat.prompt_ids(messages, tools)
    sampled = ...                                  # the model's own ids, through a stop id
    turn = chat.parse(sampled, finish=Finish.STOP)
    ids += [*sampled, *chat.suffix_ids([{"role": "tool", "name": "guess", "content": "higher"}])]
"""

from corral.chat.format import ChatFormat
from corral.chat.observation import merge_observation
from corral.chat.reading import parse_turn
from corral.chat.tokenizer import Tokenizer

__all__ = ["ChatFormat", "Tokenizer", "merge_observation", "parse_turn"]
