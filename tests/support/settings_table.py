"""The page on settings of TRL that Corral has not, made from what the code says of them.

``PYTHONPATH=tests python -m support.settings_table`` writes the page anew.
"""

from corral import GRPOConfig, SFTConfig
from corral.training.foreign import GRPO_SETTINGS, SFT_SETTINGS, ForeignSetting, Reading
from support import generated

PAGE = "docs/trl-settings.md"

_TRAINERS = {"GRPO": GRPO_SETTINGS, "SFT": SFT_SETTINGS}


def tables() -> str:
    """The middle of the page."""
    refused = [
        [f"`{name}`", of, _values(setting), setting.reason, setting.instead]
        for name, of, setting in _settings(Reading.REFUSED)
    ]
    idle = [[f"`{name}`", of, setting.reason] for name, of, setting in _settings(Reading.NOTED)]
    kept = ", ".join(f"`{name}`" for name, _, _ in _settings(Reading.KEPT))
    names = {**GRPOConfig.OTHER_NAMES, **SFTConfig.OTHER_NAMES}
    return "\n".join(
        [
            "## Refused",
            "",
            *generated.table(["setting", "of", "but for", "because", "instead"], refused),
            "",
            "## Without effect",
            "",
            "They change no result. Another value than the default is told in one line.",
            "",
            *generated.table(["setting", "of", "because"], idle),
            "",
            f"Scripts read these, trainers do not, in TRL neither: {kept}.",
            "",
            "## Under another name",
            "",
            *generated.table(
                ["TRL's name", "field"],
                [[f"`{other}`", f"`{field}`"] for other, field in sorted(names.items())],
            ),
        ]
    )


def _settings(reading: Reading) -> list[tuple[str, str, ForeignSetting]]:
    """Name, trainers and setting, once for each thing that is said of a name."""
    found: dict[tuple[str, str], tuple[list[str], ForeignSetting]] = {}
    for trainer, settings in _TRAINERS.items():
        for name, setting in settings.items():
            if setting.reading is reading:
                found.setdefault((name, repr(setting)), ([], setting))[0].append(trainer)
    rows = [(name, ", ".join(of), setting) for (name, _), (of, setting) in found.items()]
    return sorted(rows, key=lambda row: row[:2])


def _values(setting: ForeignSetting) -> str:
    values = map(repr, (setting.default, *setting.harmless))
    return ", ".join(f"`{value}`" for value in dict.fromkeys(values))


if __name__ == "__main__":
    generated.write(PAGE, tables())
