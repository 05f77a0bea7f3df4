"""Random numbers of one's own. Torch's global generator, which all threads share, is never seeded, read or moved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Generator, Tensor
from torch.utils._python_dispatch import TorchDispatchMode


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

    def on(self, device: torch.device) -> Generator:
        """Return the generator for tensors on a device."""
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
            device, sizes = torch.device("cpu"), sizes[:1]
        for generator, part in zip(self._both(device), state[: sum(sizes)].split(sizes), strict=True):
            generator.set_state(part.clone())  # torch crashes on a view into a larger tensor

    @staticmethod
    def is_state(state: Tensor) -> bool:
        """Whether a tensor can be restored, at least on the CPU.

        >>> Randomness.is_state(Randomness(0).state(torch.device("cpu"))), Randomness.is_state(torch.zeros(8))
        (True, False)
        """
        generator = Generator()
        try:
            generator.set_state(state[: len(generator.get_state())].clone())
        except (RuntimeError, TypeError):
            return False
        return True

    def _both(self, device: torch.device) -> list[Generator]:
        devices = dict.fromkeys((torch.device("cpu"), device))
        return [self.on(each) for each in devices]

    @contextmanager
    def feeding(self, wanted: bool = True) -> Iterator[None]:
        """Let random operations in the block draw from here if they would draw from torch's global generator.

        This reaches code that cannot be given a generator: initial weights, dropout, a user's own view. It holds for
        the calling thread alone and costs about 10 µs for every operation of torch in the block.

        >>> state = torch.get_rng_state()
        >>> with Randomness(3).feeding():
        ...     layer = torch.nn.Linear(2, 2)
        >>> with Randomness(3).feeding():
        ...     again = torch.nn.Linear(2, 2)
        >>> torch.equal(layer.weight, again.weight), torch.equal(state, torch.get_rng_state())
        (True, True)
        """
        if not wanted:
            yield
            return
        with _Feeding(self):
            yield


class _Feeding(TorchDispatchMode):
    """Gives a generator to every random operation that has none."""

    def __init__(self, source: Randomness) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._source = source

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        given = dict(kwargs or {})
        if torch.Tag.nondeterministic_seeded not in func.tags or _has_generator(args, given):
            return func(*args, **given)
        device = _device_of(args, given)
        if device.type == "meta":  # nothing is drawn
            return func(*args, **given)
        generator = self._source.on(device)
        if func is torch.ops.aten.native_dropout.default:
            return _dropout(*args, generator=generator)
        if _takes_generator(func):
            return func.overloadpacket(*args, **{**given, "generator": generator})
        return func(*args, **given)  # fused attention on a GPU, which cannot be given one


def _has_generator(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    return any(isinstance(value, Generator) for value in (*args, *kwargs.values()))


def _takes_generator(func: Any) -> bool:
    """Whether an operation, or a variant of it, takes a generator."""
    packet = func.overloadpacket
    return any(
        argument.name == "generator"
        for overload in packet.overloads()
        for argument in getattr(packet, overload)._schema.arguments
    )


def _device_of(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> torch.device:
    device = kwargs.get("device")
    if device is not None:
        return torch.device(device)
    return next((value.device for value in args if isinstance(value, Tensor)), torch.device("cpu"))


def _dropout(x: Tensor, p: float, train: bool | None, *, generator: Generator) -> tuple[Tensor, Tensor]:
    """Dropout and its mask, as a GPU computes them in one operation."""
    mask = torch.ones_like(x, dtype=torch.bool)
    if train is False or p == 0:
        return x.clone(), mask
    mask.bernoulli_(1 - p, generator=generator)
    return x * mask * (0.0 if p == 1 else 1 / (1 - p)), mask
