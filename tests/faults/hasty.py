"""The command with less patience for a process that hangs, so that a test need not wait for a minute."""

from __future__ import annotations

import os

os.environ["TORCH_CPP_LOG_LEVEL"] = "ERROR"  # as the command sets it before it imports torch

from pinoise.training import rendezvous, watch

watch.SILENT, watch.FAREWELL, rendezvous.LAST_WAIT = 4, 2.0, 2.0

if __name__ == "__main__":
    from pinoise.cli import main

    main()
