"""Work of a benchmark's process that takes 2 GiB."""

import torch


def allocate(case, send):
    return {"bytes": torch.ones(2**29).nbytes}
