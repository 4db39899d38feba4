"""Faults that users of comparable systems reported, and what to know of each beside its tests."""

from typing import NamedTuple

from support.proof_table import Section


class Report(NamedTuple):
    """One fault."""

    source: str
    """A public report of it, as ``owner/repository#number``."""
    what: str
    """What went wrong there."""
    note: str = ""
    """Why it does not arise here, or what is done instead."""
    later: str = ""
    """What showing it waits for."""


_HARNESSES = "comes with training of harnesses"
_ASYNCHRONOUS = "comes with asynchronous training"

SECTIONS: tuple[Section[Report], ...] = (
    Section(
        "Sampled tokens are the trained tokens",
        {
            "P001": Report(
                "huggingface/trl#5224",
                "History is encoded anew from text, so ids are trained that were never sampled",
            ),
            "P002": Report(
                "huggingface/trl#5144", "Ids, mask and logprobs of a row have different lengths"
            ),
            "P003": Report(
                "verl-project/verl#6921",
                "What the template writes between a turn and a tool result is lost",
            ),
            "P004": Report(
                "huggingface/trl#5330",
                "The tokens of a tool result are cut at the wrong place, or after a turn that "
                "never ended",
            ),
            "P006": Report(
                "huggingface/trl#6363", "Reasoning whose opening tag stands in the prompt is lost"
            ),
            "P007": Report(
                "huggingface/trl#5559",
                "A template passes as extendable by its text although ids merge across the seam",
            ),
            "P008": Report(
                "verl-project/verl#3960", "A turn in the history has lost its tool calls"
            ),
            "P009": Report(
                "verl-project/verl#7807",
                "Messages rendered one by one differ from the conversation rendered whole",
                "what templates drop from history stays as it was sampled; all else is compared "
                "when a run starts, and refused where it differs",
            ),
            "P011": Report(
                "PrimeIntellect-ai/verifiers#938",
                "A strict template fails on a tool result that is rendered alone",
            ),
            "P012": Report(
                "PrimeIntellect-ai/verifiers#1259",
                "Content that is empty, None or missing breaks the match with what was said",
                later=f"partly: rendering is shown; reading requests back {_HARNESSES}",
            ),
            "P013": Report(
                "PrimeIntellect-ai/prime-rl#1383", "Two turns work, the third is put together wrong"
            ),
            "P014": Report(
                "vllm-project/vllm#27482",
                "A streaming server leaves out the ids of some tokens",
                later="comes with engines behind a server",
            ),
            "P016": Report(
                "vllm-project/vllm#6626",
                "A character that is split over several tokens is damaged in an argument",
            ),
            "P017": Report(
                "jingyaogong/minimind#850",
                "A special token inside a turn shifts where the next result begins",
            ),
            "P018": Report(
                "OpenPipe/ART#924", "A sampled token is trained twice", "nothing is ever replayed"
            ),
            "P019": Report(
                "huggingface/trl#5379", "An empty list of tools is announced to the model"
            ),
            "P021": Report(
                "unslothai/unsloth#3971",
                "A prompt that is too long silently loses its beginning or its end",
                "prompts are never cut: the episode leaves its group with the reason",
            ),
            "P022": Report(
                "inclusionAI/AReaL#846",
                "With one token for padding and end, ends are not trained, or padding is",
                "no token is told by its id",
            ),
            "P023": Report(
                "NVIDIA-NeMo/Gym#1612",
                "Ids or logprobs are missing, and training goes on with nothing to train",
                "refused where they are missing; a run without a token to train ends and says why",
            ),
            "P024": Report("PrimeIntellect-ai/verifiers#1066", "Ids or logprobs are None"),
            "P026": Report(
                "cooperbench/CooperBench#77",
                "After a history was rewritten, no turn fits it any more",
                later=f"partly: transcripts branch; recording a harness {_HARNESSES}",
            ),
            "P027": Report("huggingface/OpenEnv#1036", "Later turns have no prompt of their own"),
            "P028": Report(
                "huggingface/trl#5538", "The rollout loads another tokenizer than the one given"
            ),
        },
    ),
    Section(
        "Masks",
        {
            "P029": Report(
                "huggingface/trl#4975", "One of several ways to compute the loss trains tool tokens"
            ),
            "P031": Report("NVIDIA-NeMo/RL#2176", "Answers that stand in the prompt are trained"),
            "P032": Report(
                "verl-project/verl#6376",
                "The return of an action is lost at the tool tokens behind it",
                "does not arise: all tokens of an episode have its advantage, and no returns are "
                "added up along them",
            ),
            "P033": Report(
                "verl-project/verl#6392",
                "The model is rewarded for what a tool wrote",
                "reward functions get messages with roles",
            ),
            "P034": Report(
                "verl-project/verl#6310", "An empty completion changes what its peers learn"
            ),
            "P036": Report(
                "OpenPipe/ART#527", "A call in the history is lost where its content is empty"
            ),
            "P037": Report("yaof20/Flash-RL#19", "What stands at masked places enters the ratio"),
            "P038": Report(
                "NovaSky-AI/SkyRL#1635",
                "A nan, or an infinite logit, at a place that does not count spoils loss and "
                "metrics",
            ),
            "P039": Report(
                "NovaSky-AI/SkyRL#1319",
                "A turn that ended in another way than the one end token counts as cut off",
                "the engine says why it stopped; a rollout function has no word for it, so there "
                "any end token counts",
            ),
            "P041": Report(
                "PrimeIntellect-ai/prime-rl#2975", "Turns that branches share are trained in each"
            ),
            "P042": Report("inclusionAI/AReaL#1346", "What the padding holds changes the gradient"),
            "P043": Report(
                "rllm-org/rllm#575",
                "The limit of a turn cuts the whole conversation",
                "`max_turn_length` and `max_completion_length` are two settings",
            ),
            "P044": Report(
                "PrimeIntellect-ai/verifiers#11",
                "Nobody can see which tokens are trained",
                "every saved episode has the kind of each token, and the report shows it",
            ),
        },
    ),
    Section(
        "Losses and advantages",
        {
            "P046": Report(
                "huggingface/trl#6369", "Completions that are masked still dilute the loss"
            ),
            "P047": Report(
                "PrimeIntellect-ai/prime-rl#2562", "Processes with short rows weigh more"
            ),
            "P048": Report(
                "huggingface/trl#2995",
                "Accumulation changes the gradient, and nobody knows what a loss is divided by",
                "formulas: [losses](losses.md)",
            ),
            "P049": Report(
                "huggingface/transformers#39659",
                "The last, shorter window of an epoch makes too small a step",
                "GRPO has none: a generation is always whole",
            ),
            "P051": Report(
                "huggingface/trl#4159",
                "The ratio is not 1 before any update, once the temperature is not 1",
                "looked at in the first step of every run, and told",
            ),
            "P052": Report(
                "huggingface/trl#5001",
                "An engine returns nan for a logprob",
                "the token is trained without a correction, and counted",
            ),
            "P053": Report(
                "huggingface/trl#5775",
                "A reward of None or nan, or a number of an unusual kind, spoils its group",
            ),
            "P054": Report("THUDM/slime#1674", "Rounding makes a difference between equal rewards"),
            "P056": Report(
                "rllm-org/rllm#512", "An episode that became several rows weighs as several"
            ),
            "P057": Report(
                "huggingface/trl#5333",
                "Small updates vanish in 16-bit weights",
                "weights load in float32; a model given in 16 bits is warned about",
            ),
            "P058": Report(
                "huggingface/trl#6688",
                "Merging an adapter for each generation wears the base weights down",
                "does not arise: nothing is merged, the engine samples from the adapted model",
            ),
            "P059": Report(
                "huggingface/trl#2961", "Batches and processes cut groups apart, or crash late"
            ),
            "P061": Report(
                "huggingface/trl#3857",
                "A loss of 0 may be right or broken",
                "a line in the log says which; see [losses](losses.md)",
            ),
            "P062": Report("NovaSky-AI/SkyRL#1353", "The KL term has no gradient"),
            "P063": Report(
                "NovaSky-AI/SkyRL#2008", "Of several backward passes only the last counts"
            ),
            "P064": Report(
                "NovaSky-AI/SkyRL#201",
                "Of the rewards along an episode only the last counts",
                "an episode has one reward: `get_reward`, or the sum of what the steps of an "
                "OpenEnv server gave; None is not 0",
            ),
            "P066": Report(
                "thinking-machines-lab/tinker-cookbook#507",
                "A step in which nothing can be learned crashes",
                "it passes without touching the weights; several in a row end the run, with its "
                "steps saved",
            ),
            "P067": Report(
                "thinking-machines-lab/tinker-cookbook#822",
                "Stale samples without a limit on the ratio ruin the policy",
                later=_ASYNCHRONOUS,
            ),
            "P068": Report(
                "rllm-org/rllm#622",
                "Turns are labelled with newer weights than those that sampled them",
            ),
            "P069": Report(
                "inclusionAI/AReaL#858",
                "An episode that is started again gets more tokens, or keeps old ones",
            ),
        },
    ),
    Section(
        "Tool calls and schemas",
        {
            "P071": Report(
                "PrimeIntellect-ai/verifiers#1763", "One call that is no JSON ends the episode"
            ),
            "P072": Report("ahwurm/localharness#77", "A call that the token limit cut is executed"),
            "P073": Report("huggingface/trl#4709", "Of two calls in a turn one is lost"),
            "P074": Report(
                "huggingface/transformers#45419",
                "Arguments as text or mapping, content empty or missing: templates disagree",
            ),
            "P076": Report(
                "huggingface/smolagents#1073",
                "A docstring in another style fails, or descriptions run together",
                "what cannot be described is refused when the trainer is made, naming function, "
                "argument and remedy",
            ),
            "P077": Report(
                "PrimeIntellect-ai/verifiers#674",
                "Describing a tool changes the function",
                "no argument is ever injected",
            ),
            "P078": Report(
                "PrimeIntellect-ai/verifiers#2266",
                "A call of a tool that is not there is dropped, or takes others with it",
            ),
            "P079": Report(
                "huggingface/OpenEnv#1126",
                "Two tools with one name, or one named like the protocol",
            ),
            "P081": Report(
                "huggingface/trl#5521", "A result that does not fit is cut in the middle"
            ),
            "P082": Report("NVIDIA-NeMo/Gym#2490", "A result that is no text is rejected"),
            "P083": Report(
                "huggingface/trl#6313", "A reward function without a name crashes, or shares one"
            ),
            "P084": Report(
                "huggingface/OpenEnv#443", "An action of the wrong shape reaches the environment"
            ),
        },
    ),
)
