from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import kstest

from pinoise.errors import UserError
from pinoise.views import BackgroundNoise, Batch, GaussianNoise, read_masks

SCALE = torch.tensor([1.0, 0.5, 0.0])[:, None, None].expand(3, 6, 5)


def make(rows: int = 10) -> tuple[BackgroundNoise, torch.Tensor]:
    masks = torch.rand(rows, 6, 5) < 0.4
    return BackgroundNoise(SCALE, masks, rows=rows, sigma=2.0), masks


def test_nothing_but_the_background_of_the_sample_s_own_row_changes() -> None:
    view, masks = make()
    rows = torch.tensor([7, 0, 7, 3])
    x = torch.randn(4, 3, 6, 5)
    result = view(Batch(x, rows))
    for i, row in enumerate(rows.tolist()):
        for channel in range(3):
            changed = result.x[i, channel] != x[i, channel]
            assert torch.equal(changed, masks[row] if channel < 2 else torch.zeros_like(changed))
    assert torch.equal(result.rows, rows)


def test_the_noise_is_gaussian_in_units_of_the_feature_scale() -> None:
    masks = torch.ones(1, 6, 5, dtype=torch.bool)
    view = BackgroundNoise(SCALE, masks, rows=1, sigma=2.0)
    noise = view(Batch(torch.zeros(100, 3, 6, 5), torch.zeros(100, dtype=torch.long))).x
    for channel, deviation in ((0, 2.0), (1, 1.0)):
        assert kstest(noise[:, channel].flatten().numpy(), "norm", args=(0, deviation)).pvalue > 1e-3


def test_on_a_background_of_everything_it_is_random_noise() -> None:
    batch = Batch(torch.randn(4, 3, 6, 5), torch.arange(4))
    torch.manual_seed(3)
    everywhere = BackgroundNoise(SCALE, torch.ones(4, 6, 5, dtype=torch.bool), rows=4, sigma=0.3)(batch).x
    torch.manual_seed(3)
    assert torch.equal(everywhere, GaussianNoise(SCALE, sigma=0.3)(batch).x)


def test_masks_are_no_part_of_what_a_checkpoint_stores() -> None:
    assert set(make()[0].state_dict()) == {"feature_scale"}


@pytest.mark.parametrize(
    ("masks", "message"),
    [
        (torch.zeros(10, 6, 5), "masks must be bool, .* got torch.float32"),
        (torch.zeros(10, 6, 5, dtype=torch.uint8), "masks must be bool, .* got torch.uint8"),
        (torch.zeros(9, 6, 5, dtype=torch.bool), "9 masks for 10 training rows"),
        (torch.zeros(10, 5, 6, dtype=torch.bool), r"shape \(10, 5, 6\) .* = \(10, 6, 5\)"),
        (torch.zeros(10, 30, dtype=torch.bool), r"shape \(10, 30\) .* = \(10, 6, 5\)"),
    ],
)
def test_masks_that_do_not_fit_are_refused(masks: torch.Tensor, message: str) -> None:
    with pytest.raises(UserError, match=message):
        BackgroundNoise(SCALE, masks, rows=10)


def test_vectors_have_no_background() -> None:
    with pytest.raises(UserError, match=r"images .* got samples of shape \(7,\)"):
        BackgroundNoise(torch.ones(7), torch.zeros(2, 1, 7, dtype=torch.bool), rows=2)


@pytest.mark.parametrize("factor", [None, 1, 255])
@pytest.mark.parametrize("ending", [".npy", ".npz"])
def test_masks_of_a_file_are_read(tmp_path: Path, factor: int | None, ending: str) -> None:
    masks = np.random.default_rng(0).random((4, 3, 2)) < 0.5
    written = masks if factor is None else (factor * masks).astype(np.uint8)
    path = tmp_path / f"masks{ending}"
    if ending == ".npy":
        np.save(path, written)
    else:
        np.savez(path, something=written)
    read = read_masks(path, rows=4, size=(3, 2))
    assert read.dtype == np.bool_
    assert np.array_equal(read, masks)


def test_of_all_masks_those_of_the_chosen_images_are_returned(tmp_path: Path) -> None:
    masks = np.random.default_rng(0).random((6, 3, 2)) < 0.5
    np.save(tmp_path / "masks.npy", masks)
    chosen = np.array([5, 0, 3])
    assert np.array_equal(read_masks(tmp_path / "masks.npy", rows=6, size=(3, 2), chosen=chosen), masks[[5, 0, 3]])
    np.save(tmp_path / "masks.npy", masks[:3])
    sentence = r"3 masks for 6 images \(3 of them trained on\): give one for each of the 6, in the order of the images"
    with pytest.raises(UserError, match=sentence):
        read_masks(tmp_path / "masks.npy", rows=6, size=(3, 2), chosen=chosen)


def test_of_several_arrays_the_one_called_masks_is_read(tmp_path: Path) -> None:
    masks = np.ones((2, 3, 3), dtype=np.bool_)
    np.savez(tmp_path / "a.npz", ids=np.arange(2), masks=masks)
    assert np.array_equal(read_masks(tmp_path / "a.npz", rows=2, size=(3, 3)), masks)
    np.savez(tmp_path / "b.npz", ids=np.arange(2), other=masks)
    with pytest.raises(UserError, match="none of its 2 arrays is named 'masks'"):
        read_masks(tmp_path / "b.npz", rows=2, size=(3, 3))


@pytest.mark.parametrize(
    ("masks", "message"),
    [
        (np.zeros((4, 3, 2)), "bool or uint8, .* got float64"),
        (np.zeros((4, 2, 3), dtype=np.bool_), r"shape \(4, 2, 3\) .* = \(4, 3, 2\)"),
        (np.zeros((5, 3, 2), dtype=np.bool_), "5 masks for 4 training rows"),
        (np.arange(24, dtype=np.uint8).reshape(4, 3, 2), "nothing between, got 0, 1, 2, 3, …"),
        (np.array([{"a": 1}]), "cannot be read as an array of numbers"),
    ],
)
def test_a_file_of_other_masks_is_refused(tmp_path: Path, masks: np.ndarray, message: str) -> None:
    path = tmp_path / "masks.npy"
    np.save(path, masks, allow_pickle=True)
    with pytest.raises(UserError, match=message) as caught:
        read_masks(path, rows=4, size=(3, 2))
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("name", ["masks.npy", "masks.npz"])
def test_a_file_that_is_missing_or_damaged_is_named(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with pytest.raises(UserError, match="does not exist"):
        read_masks(path, rows=1, size=(2, 2))
    for content in (b"", b"no array", b"PK\x03\x04 cut off", b"\x93NUMPY\x01\x00"):
        path.write_bytes(content)
        with pytest.raises(UserError, match="cannot be read as an array of numbers"):
            read_masks(path, rows=1, size=(2, 2))


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"a \.npy or \.npz file"):
        read_masks(tmp_path / "masks.png", rows=1, size=(2, 2))
