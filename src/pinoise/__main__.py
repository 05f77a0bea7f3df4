"""``python -m pinoise`` is the command ``pinoise``."""

from pinoise.cli import main

main()
