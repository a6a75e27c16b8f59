"""Training and validation losses of finished runs."""

import json
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, pstdev


@dataclass(frozen=True)
class Losses:
    """Losses of one run: logged (update, loss) pairs of training and of validation."""

    name: str
    training: list[tuple[int, float]]
    validation: list[tuple[int, float]]
    updates: int

    def summary(self) -> dict[str, str | int | float | None]:
        """Mean and standard deviation of the training loss in the last quarter, and the best validation loss."""
        last = [loss for _, loss in self.training[-max(1, len(self.training) // 4) :]]
        return {
            "run": self.name,
            "updates": self.updates,
            "training loss": round(fmean(last), 4),
            "deviation": round(pstdev(last), 4),
            "validation loss": round(min(loss for _, loss in self.validation), 4) if self.validation else None,
        }


def read_losses(folders: list[str]) -> list[Losses]:
    """The losses of runs, from the `training.json` of their folders.

    ValueError: a folder without it, or without logged losses; two folders of one name.
    """
    names = [Path(folder).resolve().name for folder in folders]
    if len(set(names)) < len(names):
        raise ValueError(f"runs are named by their folders, which must differ; got {', '.join(names)}; rename one")
    runs = []
    for folder, name in zip(folders, names):
        try:
            facts = json.loads(Path(folder, "training.json").read_text(encoding="utf-8"))
            training, validation = (
                [(int(step), float(loss)) for step, loss in facts.get(key, [])]
                for key in ("losses", "validation_losses")
            )
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise ValueError(
                f"{folder} holds no finished run ({error}); give a folder that docmt train wrote"
            ) from error
        if not training:
            raise ValueError(
                f"{folder}: no loss was logged; train with a training.log_steps below the number of updates"
            )
        steps = facts.get("steps")
        runs.append(Losses(name, training, validation, steps if isinstance(steps, int) else training[-1][0]))
    return runs
