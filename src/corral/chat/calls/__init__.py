"""How models write tool calls: one file for each way."""

from collections.abc import Sequence

from corral.chat.calls.atem import ATEM
from corral.chat.calls.cohere import COHERE
from corral.chat.calls.deepseek import DEEPSEEK
from corral.chat.calls.function_xml import FUNCTION_XML
from corral.chat.calls.gemma import FUNCTION_GEMMA, GEMMA
from corral.chat.calls.glm import GLM
from corral.chat.calls.harmony import HARMONY
from corral.chat.calls.hermes import HERMES
from corral.chat.calls.llama import LLAMA
from corral.chat.calls.mistral import MISTRAL
from corral.chat.calls.phi import PHI
from corral.chat.calls.pythonic import PYTHONIC
from corral.chat.calls.syntax import CallSyntax

SYNTAXES: Sequence[CallSyntax] = (
    HERMES,
    FUNCTION_XML,
    GLM,
    PYTHONIC,
    GEMMA,
    FUNCTION_GEMMA,
    ATEM,
    HARMONY,
    DEEPSEEK,
    MISTRAL,
    COHERE,
    PHI,
    LLAMA,
)
"""All that are known; a template's own is found by reading what it renders."""

__all__ = ["HERMES", "SYNTAXES", "CallSyntax"]
