"""The command ``pinoise``, one file per verb. Nothing here imports torch until a verb runs."""

from pinoise.cli.command import main
