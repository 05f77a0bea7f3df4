"""The modes of torch under which the library computes, whatever modes its caller has set."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch


@contextmanager
def own_modes() -> Iterator[None]:
    """Compute with gradients, in single precision and on the CPU by default, without autocast; then leave all as found.

    Gradients, inference mode, autocast and the default device belong to the calling thread. The default type belongs to
    the whole process, so other threads see single precision meanwhile if it was another one.

    >>> with torch.inference_mode(), own_modes():
    ...     torch.ones(1, requires_grad=True).square().requires_grad
    True
    """
    with ExitStack() as stack:
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        for kind in ("cpu", *(["cuda"] if torch.cuda.is_available() else [])):
            if torch.is_autocast_enabled(kind):
                stack.enter_context(torch.autocast(kind, enabled=False))
        if torch.get_default_device() != torch.device("cpu"):
            stack.enter_context(torch.device("cpu"))
        stack.enter_context(_SINGLE.held())
        yield


class _SinglePrecision:
    """Holds the default type at float32 as long as any thread needs it. The last one restores what the first found."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders = 0
        self._before = torch.float32

    @contextmanager
    def held(self) -> Iterator[None]:
        with self._lock:
            if not self._holders:
                self._before = torch.get_default_dtype()
                torch.set_default_dtype(torch.float32)
            self._holders += 1
        try:
            yield
        finally:
            with self._lock:
                self._holders -= 1
                if not self._holders:
                    torch.set_default_dtype(self._before)


_SINGLE = _SinglePrecision()
