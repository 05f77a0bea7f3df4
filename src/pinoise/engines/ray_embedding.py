"""``pinoise embed --engine ray``: Ray Data hands out the parts of an embedding, once more if a worker dies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pinoise.engines.embedding import Work
from pinoise.engines.ray_cluster import connected
from pinoise.errors import UserError
from pinoise.evaluation.parts import check_parts


class Writer:
    """A worker, which keeps the work in memory between two parts."""

    def __init__(self, work: Work) -> None:
        import torch

        torch.set_num_threads(1)  # Ray gives every worker a core
        self._work = work

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Write a part. A mistake of the user is returned: an error would come with Ray's own report of it."""
        (number,) = batch["item"].tolist()
        try:
            self._work.write(number)
        except UserError as mistake:
            return {"mistake": [str(mistake)]}
        return {"mistake": [""]}


def embed_on_ray(work: Work, *, workers: int | None = None, on_part: Callable[[], None] = lambda: None) -> None:
    """Write the parts that are missing, and check that every planned row is there.

    Args:
        work: what is to be embedded.
        workers: the processes that work at a time; as many as the cluster has cores, if None.
        on_part: called for every part that was written.
    """
    if work.missing:
        with connected(workers=workers) as ray:
            _write(ray, work, workers=workers, on_part=on_part)
    check_parts(work.out, work.plan)


def _write(ray: Any, work: Work, *, workers: int | None, on_part: Callable[[], None]) -> None:
    import ray.data as ray_data

    context = ray_data.DataContext.get_current()
    context.enable_progress_bars = False
    most = workers or int(ray.cluster_resources().get("CPU", 1))
    parts = ray_data.from_items(list(work.missing), override_num_blocks=len(work.missing))
    written = parts.map_batches(
        Writer,
        fn_constructor_args=(work,),
        batch_size=1,
        compute=ray_data.ActorPoolStrategy(size=min(most, len(work.missing))),
    )
    for row in written.iter_rows():
        if row["mistake"]:
            raise UserError(row["mistake"])
        on_part()
