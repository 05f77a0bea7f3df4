"""Learned noise in a LightningModule: the noise is a submodule, and the three lines are in its two methods."""

from __future__ import annotations

import logging
import warnings

import pytorch_lightning as pl
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from pinoise import PiNoise
from pinoise.methods import nt_xent


class SimCLR(pl.LightningModule):
    """SimCLR whose views are made by learned noise."""

    def __init__(self, data: Tensor) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(data.shape[1], 256), nn.ReLU(), nn.Linear(256, 64))
        self.noise = PiNoise.along(data)
        self.losses: list[Tensor] = []

    def training_step(self, batch: tuple[Tensor, Tensor]) -> Tensor:
        """Return the loss of a batch of row numbers and samples."""
        rows, x = batch
        first, second = self.noise.views(x, rows)
        loss = nt_xent(self.encoder(first), self.encoder(second)).mean() + self.noise.regularizer(x)
        self.losses.append(loss.detach())
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return an optimiser with a learning rate of the noise's own."""
        return torch.optim.Adam([{"params": self.encoder.parameters()}, *self.noise.param_groups(1e-3)], lr=1e-3)


def main() -> None:
    """Train for five epochs, and print how the loss goes."""
    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="pytorch_lightning")
    torch.manual_seed(0)
    data = torch.from_numpy(load_digits().data).float()
    loader = DataLoader(TensorDataset(torch.arange(len(data)), data), batch_size=256, shuffle=True, drop_last=True)
    model = SimCLR(data)
    trainer = pl.Trainer(
        max_epochs=5,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(model, loader)
    means = torch.stack(model.losses).reshape(5, -1).mean(dim=1)
    print(f"loss by epoch {', '.join(f'{loss:.2f}' for loss in means)}")


if __name__ == "__main__":
    main()
