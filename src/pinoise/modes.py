"""What a block sets and leaves as it found it: modes of torch and of a network, random numbers and their seeds."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

import numpy as np
import torch
from torch import Generator, Tensor, nn


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
        stack.enter_context(_single_precision())
        yield


_FOUND: list[torch.dtype] = []  # the default type, as everyone who holds single precision found it
_FOUND_LOCK = threading.Lock()


@contextmanager
def _single_precision() -> Iterator[None]:
    """Hold the default type at float32 as long as any thread needs it. The last one restores what the first found."""
    with _FOUND_LOCK:
        _FOUND.append(torch.get_default_dtype())
        torch.set_default_dtype(torch.float32)
    try:
        yield
    finally:
        with _FOUND_LOCK:
            first = _FOUND[0]
            _FOUND.pop()
            if not _FOUND:
                torch.set_default_dtype(first)


def _batch_norms(network: nn.Module) -> list[nn.Module]:
    return [part for part in network.modules() if isinstance(part, nn.modules.batchnorm._BatchNorm)]


def has_batch_norm(network: nn.Module) -> bool:
    """Whether the network contains batch normalisation.

    >>> has_batch_norm(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))), has_batch_norm(nn.Linear(2, 2))
    (True, False)
    """
    return bool(_batch_norms(network))


@contextmanager
def _without(flag: str, parts: Iterable[nn.Module]) -> Iterator[None]:
    """Switch a flag of parts off, and afterwards on again where it was."""
    switched = [part for part in parts if getattr(part, flag)]
    for part in switched:
        setattr(part, flag, False)
    try:
        yield
    finally:
        for part in switched:
            setattr(part, flag, True)


def evaluating(module: nn.Module) -> AbstractContextManager[None]:
    """Put a module in evaluation mode, and restore the mode of every part afterwards.

    Batch normalisation then neither uses the statistics of a batch nor changes its running statistics.

    >>> norm = nn.BatchNorm1d(2)
    >>> with evaluating(norm):
    ...     norm.training
    False
    >>> norm.training
    True
    """
    return _without("training", module.modules())


@contextmanager
def without_trace(network: nn.Module, x: Tensor) -> Iterator[None]:
    """Run a network on x without gradient and in evaluation mode, and leave nothing in autocast's cache.

    Weights that autocast rounds here have no gradient. Some versions of torch would reuse them in training.
    """
    with torch.no_grad(), evaluating(network):
        yield
    if torch.amp.is_autocast_available(x.device.type) and torch.is_autocast_enabled(x.device.type):
        torch.clear_autocast_cache()


def frozen_statistics(network: nn.Module) -> AbstractContextManager[None]:
    """Keep batch normalisation from updating its running statistics. In train mode it still normalises by the batch.

    >>> norm = nn.BatchNorm1d(1)
    >>> with frozen_statistics(norm):
    ...     norm(torch.tensor([[1.0], [3.0]])).round().flatten().tolist()
    [-1.0, 1.0]
    >>> norm.running_mean, norm.num_batches_tracked
    (tensor([0.]), tensor(0))
    """
    return _without("track_running_stats", _batch_norms(network))


_CPU = torch.device("cpu")
_GLOBAL = threading.RLock()  # held by the thread that has torch's global generators


class Randomness:
    """A source of random numbers with a generator for each device, all from one seed.

    >>> source, same = Randomness(3), Randomness(3)
    >>> cpu = torch.device("cpu")
    >>> torch.equal(torch.rand(2, generator=source.on(cpu)), torch.rand(2, generator=same.on(cpu)))
    True
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._generators: dict[torch.device, Generator] = {}
        self._lent = False  # to torch's global generators

    def on(self, device: torch.device) -> Generator | None:
        """Return the generator for tensors on a device. None, in a block of ``lent``, is torch's global one."""
        return None if self._lent else self._own(device)

    def _own(self, device: torch.device) -> Generator:
        if device not in self._generators:
            self._generators[device] = Generator(device).manual_seed(self.seed)
        return self._generators[device]

    def reseed(self, seed: int) -> None:
        """Begin again from another seed.

        >>> source = Randomness(3)
        >>> source.reseed(4)
        >>> torch.equal(source.state(torch.device("cpu")), Randomness(4).state(torch.device("cpu")))
        True
        """
        self.seed = seed
        self._generators.clear()

    def state(self, device: torch.device) -> Tensor:
        """Return the state for work on a device: that of the CPU's generator and, on another device, also of its own.

        >>> source = Randomness(3)
        >>> before = source.state(torch.device("cpu"))
        >>> first = torch.rand(2, generator=source.on(torch.device("cpu")))
        >>> source.restore(before, torch.device("cpu"))
        >>> torch.equal(first, torch.rand(2, generator=source.on(torch.device("cpu"))))
        True
        """
        return torch.cat([generator.get_state() for generator in self._both(device)])

    def restore(self, state: Tensor, device: torch.device) -> None:
        """Go back to a state that ``state`` returned. That of another device restores the CPU's part alone."""
        sizes = [len(generator.get_state()) for generator in self._both(device)]
        if len(state) != sum(sizes):
            device, sizes = _CPU, sizes[:1]
        for generator, part in zip(self._both(device), state[: sum(sizes)].split(sizes), strict=True):
            generator.set_state(part.clone())  # torch crashes on a view into a larger tensor

    def _both(self, device: torch.device) -> list[Generator]:
        return [self._own(each) for each in dict.fromkeys((_CPU, device))]

    @contextmanager
    def lent(self, device: torch.device = _CPU) -> Iterator[None]:
        """Let torch's global generators of the CPU and of a device go on from here, and leave them as they were.

        This reaches code that cannot be given a generator: initial weights, dropout, a user's own view. One thread at a
        time has the global generators; the others that want them wait.

        >>> state = torch.get_rng_state()
        >>> with Randomness(3).lent():
        ...     layer = torch.nn.Linear(2, 2)
        >>> with Randomness(3).lent():
        ...     again = torch.nn.Linear(2, 2)
        >>> torch.equal(layer.weight, again.weight), torch.equal(state, torch.get_rng_state())
        (True, True)
        """
        if self._lent:
            yield
            return
        # Not torch.random.fork_rng, which does not know Apple's GPUs.
        places = [torch] if device.type == "cpu" else [torch, torch.get_device_module(device)]
        own = self._both(device)
        with _GLOBAL:
            before = [place.get_rng_state() for place in places]
            for place, generator in zip(places, own, strict=True):
                place.set_rng_state(generator.get_state())
            self._lent = True
            try:
                yield
            finally:
                self._lent = False
                for place, generator, state in zip(places, own, before, strict=True):
                    generator.set_state(place.get_rng_state())
                    place.set_rng_state(state)


# Purposes of random numbers, for seed_of.
BUILDING, TRAINING, HOLDING_OUT = 0, 1, 2


def seed_of(seed: int, purpose: int, rank: int = 0) -> int:
    """Derive an independent seed for one purpose and process, so that no two share their random numbers.

    >>> seed_of(0, 1) == seed_of(0, 1), seed_of(0, 1) == seed_of(0, 2), seed_of(0, 1) == seed_of(1, 1)
    (True, False, False)
    """
    return int(np.random.SeedSequence([seed, purpose, rank]).generate_state(1)[0])


@contextmanager
def flushed_denormals() -> Iterator[None]:
    """Make the CPU treat numbers below 1e-38 as 0 inside the block.

    If gradients vanish, as in a collapsed generator, the optimiser's moments decay to numbers of this size and slow the
    steps down. The setting holds for the calling thread and for worker threads that start later, so enter it early.

    >>> with flushed_denormals():
    ...     bool(torch.tensor(1e-39) * 0.5 == 0)
    True
    """
    flushed_before = bool(torch.tensor(1e-39) * 0.5 == 0)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(flushed_before)


_LARGEST_USUAL_BLOCK = 31 << 20  # bytes; those of its administration are added


def keep_freed_memory() -> None:
    """Let the process keep what a step frees for the next step, which then need not ask the system for it again.

    GNU's C library gives large blocks back at once, until a larger one was freed: then it takes blocks of that size for
    usual. The largest that it learns from has 32 MB. Without this a step spends time on pages that it had before
    (``benchmarks/speed/freed.py``). Other systems do not care.

    >>> keep_freed_memory()
    """
    torch.empty(_LARGEST_USUAL_BLOCK, dtype=torch.uint8)
