"""Small environments for OpenReward's server: a kitchen, and a question that a message answers."""

# pyright: reportMissingImports=false

import base64
import os
import sys
from typing import Any, Literal

from openreward.environments import (
    Environment,
    ImageBlock,
    ListToolsOutput,
    Server,
    TextBlock,
    ToolOutput,
    ToolSpec,
    terminal,
    tool,
)
from pydantic import BaseModel, Field

DISHES = ["soup", "bread", "jam"]
DOT = base64.b64encode(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63"
        "f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
    )
).decode()


class Cook(BaseModel):
    dish: str = Field(description="What to cook.")
    heat: Literal["low", "high"] = "low"


class Fail(BaseModel):
    how: Literal["raise", "exit"]


class Answer(BaseModel):
    answer: str


def told(text: str, **more: Any) -> ToolOutput:
    return ToolOutput(blocks=[TextBlock(text=text)], **more)


class Kitchen(Environment):
    @classmethod
    def list_splits(cls):
        return ["train", "test"]

    @classmethod
    def list_tasks(cls, split: str):
        return [{"dish": dish} for dish in (DISHES if split == "train" else ["cake"])]

    def get_prompt(self):
        return [TextBlock(text=f"Cook {self.task_spec['dish']}.")]

    @tool
    async def cook(self, params: Cook) -> ToolOutput:
        """Cook a dish."""
        is_right = params.dish == self.task_spec["dish"]
        return told(f"{params.dish} on {params.heat} heat", reward=0.75 * is_right)

    @tool
    async def serve(self) -> ToolOutput:
        """Serve what there is."""
        return told("Served.", reward=0.25, finished=True)

    @tool
    async def look(self) -> ToolOutput:
        """Look at the table."""
        picture = ImageBlock(data=DOT, mimeType="image/png")
        return ToolOutput(blocks=[TextBlock(text="A table:"), picture])

    @tool
    async def fail(self, params: Fail) -> ToolOutput:
        """Fail badly."""
        if params.how == "raise":
            raise RuntimeError("The oven is broken.")
        os._exit(3)


class Quiz(Environment):
    """Its tools differ by task; a message ends it."""

    @classmethod
    def list_splits(cls):
        return ["validation"]

    @classmethod
    def list_tasks(cls, split: str):
        return [{"question": "1 + 1", "answer": "2"}]

    def get_prompt(self):
        return [TextBlock(text=self.task_spec["question"])]

    def list_task_tools(self):
        hint = ToolSpec(name="hint", description="Get a hint.", input_schema=None)
        return ListToolsOutput(tools=[hint])

    @tool(shared=False)
    async def hint(self) -> ToolOutput:
        return told("Fewer than 3.")

    @terminal
    @tool
    async def submit(self, params: Answer) -> ToolOutput:
        """Submit."""
        is_right = params.answer == self.task_spec["answer"]
        return told("Right." if is_right else "Wrong.", reward=float(is_right), finished=True)


if __name__ == "__main__":
    Server([Kitchen]).run(host="127.0.0.1", port=int(sys.argv[1]))
