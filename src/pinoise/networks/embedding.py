"""What users get of f_θ: its weights in files, of which nothing is executed, and the embedding of a sample.

An embedding is the learned representation alone, or joined with the sample itself.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pinoise.choices import EMBEDDINGS, EmbeddingName
from pinoise.errors import UserError, unknown_choice
from pinoise.files import check_is_file, written
from pinoise.modes import evaluating

_ENTRY = "pinoise"  # of the file's metadata; a single one, because safetensors writes several in any order


class StoredTensors(NamedTuple):
    """What a safetensors file of ours holds."""

    tensors: dict[str, Tensor]
    metadata: dict[str, Any]


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, Any] | None = None) -> None:
    """Write tensors and JSON values to a safetensors file atomically, with a checksum of both against damage."""
    plain = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    text = json.dumps(metadata or {})
    seal = json.dumps({"sha256": digest(plain, text), "metadata": text})
    with written(path) as temporary:
        temporary.write_bytes(safetensors.torch.save(plain, metadata={_ENTRY: seal}))


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read the tensors of a safetensors file that ``write_tensors`` wrote. Refuse a damaged one."""
    return read_stored(path).tensors


def read_stored(path: Path) -> StoredTensors:
    """Read what ``write_tensors`` wrote. The checksum takes a pass over the tensors, at about 1 GB/s."""
    if not path.exists():
        raise UserError(f"{path} is missing: train to the end first, or resume the run.")
    check_is_file(path)
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            entries = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except MemoryError:
        raise
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}.") from None
    except Exception as error:  # what another kind of file or a damaged one raises in the reader
        raise UserError(f"{path} cannot be read as safetensors ({error}): the file is damaged.") from None
    try:
        seal = json.loads(entries[_ENTRY])
        expected, text = str(seal["sha256"]), str(seal["metadata"])
        metadata = dict(json.loads(text))
    except (ValueError, KeyError, TypeError, RecursionError):
        raise UserError(
            f"{path} has no checksum: the file is damaged or was not written by this version of pinoise."
        ) from None
    if digest(tensors, text) != expected:
        raise UserError(f"{path} does not match its checksum: the file is damaged.")
    return StoredTensors(tensors, metadata)


def digest(tensors: Mapping[str, Tensor], text: str = "") -> str:
    """Return the SHA-256 of tensors, with their names, types and shapes, and of a text beside them.

    >>> one, other = digest({"a": torch.zeros(2, 1)}), digest({"a": torch.zeros(1, 2)})
    >>> len(one), one == other, one == digest({"a": torch.zeros(2, 1)})
    (64, False, True)
    """
    found = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        found.update(json.dumps([name, str(tensor.dtype), list(tensor.shape)]).encode())
        values: Any = tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy()
        found.update(values)
    found.update(text.encode())
    return found.hexdigest()


def check_finite_weights(
    tensors: Mapping[str, Tensor], *, where: object, built: Mapping[str, Tensor] | None = None
) -> None:
    """Refuse tensors that hold nan or infinite numbers.

    Args:
        tensors: the stored tensors.
        where: what they are of, for the message.
        built: the tensors of the module before they are loaded. A buffer that is not finite there, such as a mask of
            attention, may be stored so.

    >>> check_finite_weights({"weight": torch.tensor([1.0, float("nan")])}, where="encoder.safetensors")
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: encoder.safetensors holds nan or infinite numbers in 'weight': it cannot be used.
    """
    for name, tensor in tensors.items():
        if not tensor.is_floating_point() or bool(torch.isfinite(tensor).all()):
            continue
        before = (built or {}).get(name)
        if before is None or before.shape != tensor.shape or not _same_where_not_finite(tensor, before.cpu()):
            raise UserError(f"{where} holds nan or infinite numbers in {name!r}: it cannot be used.")


def _same_where_not_finite(tensor: Tensor, before: Tensor) -> bool:
    strange = ~torch.isfinite(tensor)
    return bool((tensor[strange] == before[strange]).all())


def load_weights(module: nn.Module, tensors: Mapping[str, Tensor], *, where: object) -> None:
    """Load stored tensors into a module. Refuse numbers that are not finite.

    Tensors that do not fit raise a RuntimeError, as torch does; torch alone would convert types and some shapes.
    """
    built = module.state_dict()
    for name, tensor in tensors.items():
        if name in built and (tensor.dtype != built[name].dtype or tensor.shape != built[name].shape):
            raise RuntimeError(f"{name} is {tensor.dtype} of shape {tuple(tensor.shape)}")
    check_finite_weights(tensors, where=where, built=built)
    module.load_state_dict(dict(tensors))


def misfit(wanted: Mapping[str, Tensor], given: Mapping[str, Tensor]) -> str | None:
    """Return why stored tensors do not fit those of a module, None if they do.

    >>> misfit({"weight": torch.zeros(2, 1)}, {"weight": torch.zeros(1, 2)})
    'weight has shape (1, 2) instead of (2, 1)'
    """
    for name, tensor in wanted.items():
        if name not in given:
            return f"{name} is missing"
        if (shape := tuple(getattr(given[name], "shape", ()))) != tuple(tensor.shape):
            return f"{name} has shape {shape} instead of {tuple(tensor.shape)}"
    extra = next((name for name in given if name not in wanted), None)
    return None if extra is None else f"{extra} is not part of it"


def read_weights(
    path: Path, *, wanted: str = "a state dict as torch.save or safetensors writes it"
) -> dict[str, Tensor]:
    """Read a state dict in safetensors or in torch's own format.

    Args:
        path: the file; the suffix ``.safetensors`` selects that format.
        wanted: what the error message asks the user for.

    >>> read_weights(Path("resnet18.pth"))
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: resnet18.pth does not exist: give a state dict as torch.save or safetensors writes it.
    """
    if not path.is_file():
        found = "is a folder" if path.is_dir() else "does not exist"
        raise UserError(f"{path} {found}: give {wanted}.")
    try:
        if path.suffix == ".safetensors":
            state = safetensors.torch.load_file(path)
        else:
            state = torch.load(path, map_location="cpu", weights_only=True)
    except MemoryError:
        raise
    except Exception:  # a file of another kind can raise any error in the reader
        raise UserError(f"{path} is damaged or holds no weights: give {wanted}.") from None
    if not _is_state_dict(state):
        raise UserError(f"{path} holds {type(state).__name__}, not a plain mapping of names to tensors: give {wanted}.")
    check_finite_weights(state, where=path)
    return dict(state)


def _is_state_dict(value: object) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(name, str) and isinstance(tensor, Tensor) and tensor.layout == torch.strided
        for name, tensor in value.items()
    )


LEARNED_WEIGHT = 0.5
"""The size of the learned block of a joined embedding, as a share of the raw block's. The variances are the squares.

A larger weight lets the learned block decide which samples are near. That helps on most data and harms where rows are
few (``benchmarks/blocks.py``). Both blocks in units of the raw features suit plain classifiers, whose defaults are made
for standardised columns."""


class Blocks(NamedTuple):
    """The units of an embedding's learned block over the training rows."""

    centre: Tensor  # (o,): the mean of z/‖z‖
    factor: Tensor  # (): what makes its total variance that of the raw block


class _Moments:
    """The mean and the total variance of rows that come in batches."""

    def __init__(self) -> None:
        self.count, self.sum, self.square = 0, torch.zeros(()), torch.zeros(())

    def add(self, rows: Tensor) -> None:
        rows = rows.double()
        self.count += len(rows)
        self.sum, self.square = self.sum + rows.sum(dim=0), self.square + rows.square().sum()

    @property
    def mean(self) -> Tensor:
        return self.sum / self.count

    @property
    def variance(self) -> Tensor:
        """The variance summed over columns, 0 if it is rounding."""
        length = self.square / self.count  # the mean squared length
        total = length - self.mean.square().sum()
        return torch.where(total > _ROUNDING * length, total, 0)


_SHORTEST = 1e-12  # a row of no length is divided by this
_ROUNDING = 1e-9  # a variance below this share of the mean squared length is none


def measure_blocks(batches: Iterable[tuple[Tensor, Tensor]]) -> Blocks:
    """Measure the units of the learned block on batches of training rows. A block that does not vary gets factor 0.

    Args:
        batches: of the raw block, (m, d), and of the learned representation, (m, o).

    >>> x, z = torch.tensor([[1.0, 2.0], [-1.0, -2.0]]), torch.tensor([[0.0, 3.0], [4.0, 0.0]])
    >>> measure_blocks([(x, z)])  # a total variance of 5 beside one of 1/2
    Blocks(centre=tensor([0.5000, 0.5000]), factor=tensor(3.1623))
    """
    raw, learned = _Moments(), _Moments()
    for x, z in batches:
        raw.add(x)
        learned.add(F.normalize(z, dim=1))
    varies = learned.variance > 0
    factor = torch.where(varies, raw.variance / torch.where(varies, learned.variance, 1), 0).sqrt()
    return Blocks(learned.mean.float(), factor.float())


def raw_block(x: Tensor, *, unit_rows: bool) -> Tensor:
    """Return standardised samples as rows. If samples are rows of length 1, they get one length again around the mean.

    Otherwise an empty text would be nearer to most texts than any other text.

    >>> raw_block(torch.tensor([[[3.0, 4.0]]]), unit_rows=True)
    tensor([[0.8485, 1.1314]])
    """
    flat = x.flatten(1)
    return F.normalize(flat, dim=1, eps=_SHORTEST) * math.sqrt(flat.shape[1]) if unit_rows else flat


class Raw(nn.Module):
    """From standardised samples to the raw features that embeddings are compared with."""

    def __init__(self, *, unit_rows: bool) -> None:
        super().__init__()
        self.unit_rows = unit_rows

    def forward(self, x: Tensor) -> Tensor:
        """Return the features of samples (m, *shape), shape (m, d)."""
        return raw_block(x, unit_rows=self.unit_rows)


class Embedding(nn.Module):
    """From standardised samples to embeddings in the units of the samples.

    ``learned`` is the representation z = f(x), of length 1, around its mean, and of the same total variance over the
    training rows as the samples. ``joined`` is [x ; w z] with w = 0.5: the samples lose nothing, and the learned block
    drowns in no number of features.

    Args:
        encoder: f_θ.
        name: ``"joined"`` or ``"learned"``.
        blocks: the units of the learned block.
        unit_rows: whether the data is rows of length 1, such as word counts.

    >>> x = torch.randn(50, 3)
    >>> embedded = Embedding.measured(nn.Linear(3, 2), [x], name="joined")(x)
    >>> variance = embedded.var(dim=0, correction=0)
    >>> embedded.shape, round((variance[3:].sum() / variance[:3].sum()).item(), 4)
    (torch.Size([50, 5]), 0.25)
    """

    centre: Tensor
    factor: Tensor

    def __init__(self, encoder: nn.Module, *, name: EmbeddingName, blocks: Blocks, unit_rows: bool = False) -> None:
        super().__init__()
        if name not in EMBEDDINGS:
            raise unknown_choice("embedding", name, EMBEDDINGS)
        self.encoder = encoder
        self.name = name
        self.unit_rows = unit_rows
        for part, value in blocks._asdict().items():
            self.register_buffer(part, value)

    @classmethod
    def measured(
        cls, encoder: nn.Module, batches: Iterable[Tensor], *, name: EmbeddingName, unit_rows: bool = False
    ) -> Embedding:
        """Return an embedding in the units of training rows, given in batches (m, *shape)."""
        with torch.no_grad(), evaluating(encoder):
            blocks = measure_blocks((raw_block(x, unit_rows=unit_rows), encoder(x)) for x in batches)
        return cls(encoder, name=name, blocks=blocks, unit_rows=unit_rows)

    @property
    def blocks(self) -> Blocks:
        """The units of the learned block."""
        return Blocks(self.centre, self.factor)

    def column_names(self, features: Sequence[str]) -> tuple[str, ...]:
        """Return the names of the embedding's columns: raw ones have those of the features, learned ones are numbered.

        >>> embedding = Embedding(nn.Linear(2, 1), name="joined", blocks=Blocks(torch.zeros(1), torch.ones(())))
        >>> embedding.column_names(["age", "income"]), embedding.column_names(["age", "pinda0"])
        (('age', 'income', 'pinda0'), ('age', 'pinda0', 'pinda_0'))
        """
        raw = tuple(features) if self.name == "joined" else ()
        width = cast(int, self.encoder.out_features)
        taken, prefix = set(raw), "pinda"
        while any(f"{prefix}{i}" in taken for i in range(width)):  # of an embedding that is embedded again
            prefix += "_"
        return (*raw, *(f"{prefix}{i}" for i in range(width)))

    def forward(self, x: Tensor) -> Tensor:
        """Return the embedding of samples (m, *shape), shape (m, d + o) or (m, o)."""
        z = self.learned(x)
        return z if self.name == "learned" else torch.cat([raw_block(x, unit_rows=self.unit_rows), z], dim=1)

    def learned(self, x: Tensor) -> Tensor:
        """Return the learned block of the embedding of samples (m, *shape), shape (m, o)."""
        z = self.factor * (F.normalize(self.encoder(x), dim=1) - self.centre)
        return z if self.name == "learned" else LEARNED_WEIGHT * z

    def raw_factor(self, x: Tensor) -> Tensor:
        """Return what multiplies standardised samples (m, *shape) in the raw block, shape (m, 1).

        >>> embedding = Embedding(nn.Linear(2, 1), name="joined", blocks=Blocks(torch.zeros(1), torch.ones(())))
        >>> embedding.raw_factor(torch.tensor([[3.0, 4.0]]))
        tensor([[1.]])
        """
        flat = x.flatten(1)
        if not self.unit_rows:
            return flat.new_ones(len(flat), 1)
        lengths: Tensor = torch.linalg.vector_norm(flat, dim=1, keepdim=True)
        return math.sqrt(flat.shape[1]) * lengths.clamp_min(_SHORTEST).reciprocal()
