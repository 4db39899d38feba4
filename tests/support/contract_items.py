"""The 52 items of the trainer contract, and where Corral answers one otherwise or not yet."""

from support.proof_table import Section

SECTIONS: tuple[Section[str], ...] = (
    Section(
        "Configuration",
        {
            1: "Sizes of a batch follow from each other; those that do not fit are refused",
            2: "Every field of the configuration has the reference's default, or is refused",
            3: "Every wrong use of the constructor raises its type of error",
            4: "`trainer.end()` exists; `TRL_EXPERIMENTAL_SILENCE` is accepted",
            5: "Fields that hold mappings take JSON text",
        },
    ),
    Section(
        "Environment lifetime",
        {
            6: "A factory is called once at construction, then once for each concurrent episode",
            7: "The same row of a batch is always played in the same instance",
            8: "`reset` gets the whole row; with several environments without `environment`",
            9: "What `reset` returns (nothing, text, blocks) becomes exactly this last message",
            10: "An exception in `reset`",
            11: "Without data: placeholder prompts, `max_steps` steps",
            12: "Members of a group whose resets differ each train on their own prompt",
        },
    ),
    Section(
        "Tools",
        {
            13: "Which members of a class are tools; a property is never evaluated",
            14: "Plain functions first, then methods in alphabetical order",
            15: "Types, choices, defaults and docstrings become the schema, or are refused",
            16: "The exact text of every kind of result",
            17: "`tools/call_frequency` and `tools/failure_frequency`",
            18: "Asynchronous tools of one message run at the same time",
            19: "`reset`, `get_reward` and names with an underscore cannot be called",
        },
    ),
    Section(
        "The loop",
        {
            20: "What the engine reads is prompt, sampled and suffix ids; none changes afterwards",
            21: "The mask is 0 and the sampling logprob 0.0 exactly on suffix ids",
            22: "Suffix ids of every family are those of the template",
            23: "No episode is longer than `max_completion_length`; results that do not fit go",
            24: "The model's context ends an episode",
            25: "`max_tool_calling_iterations` of 0, 1, N: N executions, N + 1 turns",
            26: "A malformed call",
            27: "Unclosed calls, calls in reasoning, one bad call among good ones",
            28: "Lengths count sampled tokens; `clipped_ratio` looks at the last token",
            29: "A template that cannot be extended is replaced where known, else refused",
            30: "Images of data, `reset` and tools add up in order",
        },
    ),
    Section(
        "`rollout_func`",
        {31: "Required keys, `env_mask`, extra keys, duplicate prompts, weights before the call"},
    ),
    Section(
        "Rewards",
        {
            32: "Arguments, alignment, wrong lengths, None, rows that nothing scores",
            33: "Sync in order and async together; reward models, names, weights, own rewards",
            34: "Functions for different environments each score their own rows",
        },
    ),
    Section(
        "Numbers",
        {
            35: "Advantages",
            36: "Losses and their metrics",
            37: "The four modes of importance correction",
            38: "dapo over accumulation, last window shorter",
            39: "`mask_truncated_completions` with nothing left: loss 0",
            40: "Moving the reference model; an adapter's reference is the model without it",
            41: "Optimizer steps: loss, reward, gradient norm and weights",
            42: "The order of prompts for a seed, from indexed and iterable data",
        },
    ),
    Section(
        "Logs",
        {
            43: "Every metric under its condition, `eval_` in front at evaluation, NaN left out",
            44: "The completions table: columns, file name, trackers, unique prompts",
        },
    ),
    Section(
        "Asynchronous training and harnesses",
        {
            45: "Reconciled histories, staleness, population deviation",
            46: "What cannot be pickled is named",
            47: "Traces of a harness: validation, masks, rewritten histories",
            48: "Failed and timed-out sessions",
            49: "Sampling policies that cannot be trained on",
            50: "Both spellings of each name",
        },
    ),
    Section(
        "End to end",
        {
            51: "The example scripts run with only the import changed",
            52: "Rewards of Wordle",
        },
    ),
)

ITEMS = {number: text for section in SECTIONS for number, text in section.items.items()}

DIFFERS = {
    3: "an adapter of the output head is trained, and a template without a place for tools gets "
    "one; neither is refused",
    10: "does not end training: the episode leaves its group; a step of which none could be played "
    "makes no update, and only ten of those in a row (three at the start) end the run",
    16: "arguments that do not fit are explained (which, what was given, what is wanted) instead "
    "of quoting Python's TypeError; a list that is no content blocks is text",
    18: "results are in the order of the calls, not the synchronous ones first",
    23: "where no token of a result would fit, the tool is not run",
    26: "is answered with what is wrong and counted; the model has another turn",
    27: "the good calls beside a bad one run; a turn cut by a limit runs none",
    38: "divided by the tokens of the step, which a shorter window has fewer of, not by an "
    "estimate",
}
"""Where Corral decides otherwise on purpose; docs/coming-from-trl.md says why."""

LATER = {
    45: "comes with asynchronous training",
    46: "comes with asynchronous training",
    47: "comes with training of harnesses",
    48: "comes with training of harnesses",
    49: "comes with training of harnesses",
    50: "comes with asynchronous training",
}
"""What is not promised yet, and what it waits for."""
