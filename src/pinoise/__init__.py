"""Learned data augmentation for contrastive learning: π-noise (PiNDA) on any data."""
