"""The engines of clusters: the same work as the command does by itself, spread over machines by one that exists."""
