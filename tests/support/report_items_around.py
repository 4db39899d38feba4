"""More faults that others reported: around the loop of playing and learning."""

from support.proof_table import Section
from support.report_items import Report

SECTIONS_AROUND: tuple[Section[Report], ...] = (
    Section(
        "Sessions and the network",
        {
            "P086": Report(
                "huggingface/OpenEnv#1143",
                "After one timeout every later call gets the answer of the one before",
            ),
            "P087": Report(
                "huggingface/OpenEnv#1103",
                "A connection that was cut ends the client, and all later episodes score 0",
            ),
            "P088": Report(
                "huggingface/OpenEnv#1000",
                "Clients that vanish hold their slots until the server is restarted",
            ),
            "P089": Report(
                "huggingface/OpenEnv#619",
                "A server is full as soon as a group opens its sessions",
                "further episodes wait for a slot; a wait in vain names both numbers",
            ),
            "P091": Report(
                "huggingface/OpenEnv#455", "A tool works over one transport and hangs over another"
            ),
            "P092": Report(
                "huggingface/OpenEnv#396",
                "A synchronous client fails within a running event loop, or from a second thread",
            ),
            "P093": Report(
                "huggingface/OpenEnv#516",
                "An environment that is bound to its thread is called from another",
            ),
            "P094": Report(
                "huggingface/OpenEnv#616", "Fields of an observation are lost on the wire"
            ),
            "P096": Report(
                "huggingface/OpenEnv#608", "A second reset keeps what belonged to the first"
            ),
            "P097": Report("huggingface/OpenEnv#959", "A server whose start failed stays behind"),
            "P101": Report(
                "PrimeIntellect-ai/verifiers#1177",
                "An episode that crashed is scored as a bad answer",
            ),
            "P102": Report(
                "marin-community/marin#8947",
                "Work that was done when time ran out is thrown away",
                "an episode that timed out is scored as it stands",
            ),
            "P107": Report(
                "PrimeIntellect-ai/verifiers#2062", "A call that is sent again is executed twice"
            ),
            "P108": Report(
                "NVIDIA-NeMo/Gym#1555",
                "A connection that the server closed while it was idle fails the next call",
            ),
            "P109": Report(
                "NVIDIA-NeMo/Gym#1959",
                "A connection that went silent is waited for until the job ends",
            ),
            "P111": Report(
                "NVIDIA-NeMo/Gym#2418", "A server counts as started before it can answer"
            ),
            "P112": Report("THUDM/slime#1714", "Calls to this machine go through a proxy"),
            "P113": Report("rllm-org/rllm#616", "What was started for an episode is never ended"),
            "P114": Report(
                "huggingface/trl#5729",
                "Tools that only some tasks have are missing when these are played",
                "a task's tools are those of its environment; the column `environment` chooses it",
            ),
        },
    ),
    Section(
        "Many episodes at the same time",
        {
            "P132": Report("huggingface/OpenEnv#198", "Environments step one after the other"),
            "P133": Report("rllm-org/rllm#494", "One blocking function stalls all episodes"),
            "P136": Report("huggingface/trl#7176", "One episode that fails ends the run"),
            "P143": Report(
                "huggingface/trl#6250", "Each turn computes the whole conversation anew"
            ),
        },
    ),
    Section(
        "Memory, weights and processes",
        {
            "P137": Report(
                "NVIDIA-NeMo/RL#3488", "A process waits for ever for one that has failed"
            ),
            "P147": Report("huggingface/trl#3678", "Logits of all tokens fill the memory"),
            "P154": Report("huggingface/trl#7310", "A metric that only one process logs stops all"),
            "P158": Report(
                "PrimeIntellect-ai/prime-rl#1650",
                "After an update, caches of the old weights are used",
            ),
            "P162": Report(
                "inclusionAI/AReaL#801", "An evaluation plays with the numbers of training"
            ),
            "P166": Report(
                "huggingface/trl#5699",
                "A setting that is not supported is accepted without a word",
                "[the list](trl-settings.md)",
            ),
        },
    ),
    Section(
        "Checkpoints",
        {
            "P167": Report(
                "PrimeIntellect-ai/prime-rl#3332", "A resumed run starts its data again"
            ),
            "P168": Report(
                "huggingface/trl#3148", "A run that ended within a generation cannot be resumed"
            ),
            "P169": Report(
                "PrimeIntellect-ai/prime-rl#2992",
                "A kill while a checkpoint is written leaves one that cannot be read",
            ),
            "P172": Report(
                "PrimeIntellect-ai/verifiers#1644",
                "Unusual line separators within a record cut it in two",
            ),
            "P173": Report(
                "PrimeIntellect-ai/prime-rl#1762", "What is no whole checkpoint is resumed from"
            ),
            "P174": Report(
                "PrimeIntellect-ai/prime-rl#2112",
                "Pickled objects in a checkpoint do not load with the next torch",
            ),
        },
    ),
    Section(
        "What a run records",
        {
            "P178": Report("huggingface/trl#6380", "Metrics are means of the processes' means"),
            "P182": Report("gradio-app/trackio#133", "A tracker that fails ends the training"),
            "P184": Report("huggingface/trl#6420", "Logging content that is no text ends the run"),
            "P186": Report("PrimeIntellect-ai/prime-rl#3182", "What is unknown is shown as 0"),
            "P187": Report(
                "PrimeIntellect-ai/verifiers#1163",
                "Importing a library changes everybody's logging",
            ),
            "P189": Report(
                "huggingface/trl#6491", "Nobody can look at episodes without collecting them first"
            ),
            "P191": Report(
                "PrimeIntellect-ai/prime-rl#1725",
                "Numbers of other libraries cannot be written; an empty file of metrics fails",
            ),
        },
    ),
    Section(
        "Installing and first steps",
        {
            "P193": Report("huggingface/OpenEnv#379", "Code in the docs does not run"),
            "P194": Report(
                "huggingface/OpenEnv#460",
                "What the scaffold makes cannot be built or served",
                "tested and served by its README's commands, and played; no test builds its image",
            ),
            "P197": Report(
                "huggingface/trl#5912",
                "An environment needs a reward function and a data set beside it",
            ),
            "P199": Report(
                "NovaSky-AI/SkyRL#1962",
                "A setting of None becomes text, and nobody sees where a setting is from",
            ),
            "P202": Report(
                "google-deepmind/open_spiel#1021",
                "A native package is missing, and its name is not that of the module",
            ),
            "P203": Report(
                "huggingface/OpenEnv#883",
                "A refusal of the hub says nothing that helps",
            ),
        },
    ),
    Section(
        "What others may reach",
        {
            "P206": Report(
                "huggingface/OpenEnv#1199",
                "A reward that is no finite number is taken, or one that the agent wrote itself",
                later="partly: rewards are checked; code that an agent runs comes with sandboxes",
            ),
            "P208": Report("huggingface/OpenEnv#611", "The answer can be read off the state"),
            "P211": Report("NVIDIA-NeMo/Gym#2262", "What an environment started outlives it"),
            "P212": Report("inclusionAI/AReaL#1323", "A server is open to everybody by default"),
            "P213": Report(
                "PrimeIntellect-ai/prime-rl#1413",
                "A secret reaches trackers, or what only looks like one is hidden",
            ),
            "P214": Report("huggingface/OpenEnv#603", "A secret stands in the command line"),
            "P216": Report(
                "huggingface/OpenEnv#742",
                "A name that begins like this machine's counts as this machine",
            ),
            "P217": Report(
                "PrimeIntellect-ai/prime-rl#2158", "Servers outlive the process that started them"
            ),
            "P218": Report(
                "thinking-machines-lab/tinker-cookbook#337",
                "What a model wrote becomes HTML in a viewer",
            ),
            "P219": Report(
                "PrimeIntellect-ai/verifiers#1715", "A server behind another name refuses everybody"
            ),
        },
    ),
)
