"""From data and settings to trained weights: the model, the loop, checkpoints and the run folder."""
