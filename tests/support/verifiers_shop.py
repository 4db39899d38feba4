"""A small taskset for verifiers: a shop whose prices a tool knows. Found as ``verifiers:PATH``."""

import base64

import verifiers.v1 as vf  # pyright: ignore[reportMissingImports]

__all__ = ["ShopTaskset"]

PRICES = {"tea": 3, "bread": 2, "jam": 5, "soap": 4}
DOT = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63"
    "f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
)


class Basket(vf.State):
    asked: list[str] = []


class ShopToolset(vf.Toolset[vf.ToolsetConfig, Basket]):
    TOOL_PREFIX = "shop"

    @vf.tool
    def price(self, item: str, pieces: int = 1) -> str:
        """Ask for a price.

        Args:
            item: What is to be bought.
        """
        self.state.asked = [*self.state.asked, item]
        return f"{pieces} {item}: {PRICES[item] * pieces}"

    @vf.tool
    def picture(self) -> list:
        """Look at the shop."""
        from mcp.types import ImageContent

        data = base64.b64encode(DOT).decode()
        return [ImageContent(type="image", data=data, mimeType="image/png")]


class ShopTaskConfig(vf.TaskConfig):
    tools: vf.ToolsetConfig = vf.ToolsetConfig()


class ShopData(vf.TaskData):
    item: str


class ShopTask(vf.Task[ShopData, Basket, ShopTaskConfig]):
    @classmethod
    def toolsets(cls, config: ShopTaskConfig):
        return [ShopToolset(config.tools)]

    @vf.reward(weight=0.75)
    async def right(self, trace: vf.Trace) -> float:
        if trace.last_reply == "break":
            raise RuntimeError("the till is broken")
        return float(trace.last_reply == str(PRICES[self.data.item]))

    @vf.reward(weight=0.25)
    async def has_asked(self, trace: vf.Trace) -> float:
        return float(self.data.item in trace.state.asked)

    @vf.metric
    async def questions(self, trace: vf.Trace) -> float:
        return float(len(trace.state.asked))


class ShopConfig(vf.TasksetConfig):
    task: ShopTaskConfig = ShopTaskConfig()
    greeting: str = "Good morning."


class ShopTaskset(vf.Taskset[ShopTask, ShopConfig]):
    def load(self):
        for item in PRICES:
            data = ShopData(
                prompt=f"What does {item} cost?", system_prompt=self.config.greeting, item=item
            )
            yield ShopTask(data, self.config.task)


if __name__ == "__main__":
    ShopToolset.run()
