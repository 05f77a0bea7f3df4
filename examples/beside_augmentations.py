"""Algorithm 2: learned noise as one more augmentation beside those that one already has."""

from __future__ import annotations

from sklearn.datasets import load_digits

from pinoise import PiNDA


def main() -> None:
    """Draw each view from {SCARF, mixup, π-noise}, sample by sample, and show where the noise went."""
    digits = load_digits()
    model = PiNDA(
        n_components=32,
        hidden=256,
        augmentations=("scarf", {"name": "dacl", "alpha": 0.8}),  # pairing "auto" then means Algorithm 2
        penalty=10.0,
        epochs=10,
        random_state=0,
    ).fit(digits.data)
    sigma = model.noise_scale(digits.data).mean(axis=0)
    ranked = sorted(zip(sigma, digits.feature_names, strict=True), reverse=True)
    print("most noise:", ", ".join(f"{name} ({value:.2f})" for value, name in ranked[:5]))
    print("loss by epoch:", ", ".join(f"{loss:.2f}" for loss in model.history_["loss"]))


if __name__ == "__main__":
    main()
