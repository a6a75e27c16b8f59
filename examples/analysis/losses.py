"""Training losses of several runs, for example with different optimisation windows (Feng et al. 2022, figure 5).

python examples/analysis/losses.py runs/short runs/long --picture losses.png
"""

import json
from pathlib import Path

import pandas as pd
from inputs import parser, show

from hf_docmt.analysis.pictures import COLOURS, SINGLE, picture


def read_losses(folder: str) -> tuple[pd.Series, float | None]:
    """The training losses of a finished run by update, and the best validation loss, from its training.json."""
    path = Path(folder, "training.json")
    facts = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    if not facts.get("losses"):
        raise SystemExit(f"{folder} has no logged losses; give a folder that docmt train wrote")
    training = pd.DataFrame(facts["losses"], columns=["update", "loss"]).set_index("update")["loss"]
    return training, min((loss for _, loss in facts.get("validation_losses") or []), default=None)


def main() -> None:
    made = parser(__doc__)
    made.add_argument("runs", nargs="+", help="folders of finished training runs")
    options = made.parse_args()
    runs = {Path(folder).resolve().name: read_losses(folder) for folder in options.runs}
    rows = []
    for name, (training, validation) in runs.items():
        last = training.iloc[-max(1, len(training) // 4) :]  # the last quarter
        rows.append((name, training.index[-1], last.mean(), last.std(ddof=0), validation))
    columns = ["run", "update", "training loss", "deviation", "validation loss"]
    show(pd.DataFrame(rows, columns=columns).round(4), options)
    if options.picture:
        with picture(options.picture, SINGLE) as figure:
            axes = figure.subplots()
            for colour, (name, (training, _)) in zip(COLOURS, runs.items()):
                axes.plot(training.index, training, label=name, color=colour)
            axes.set(xlabel="update", ylabel="training loss")
            axes.legend()


if __name__ == "__main__":
    main()
