"""An embedding in parts, and the engines of clusters, which spread it and training over machines."""
