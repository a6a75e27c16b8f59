"""Principal components that the encodings of positions need (Lupo et al. 2023, section 2.3 and figure 1).

    python examples/analysis/positions.py --picture components.png
    python examples/analysis/positions.py --model MODEL

Without a model: the sinusoids of Vaswani et al. (2017) of `--dim` dimensions.
"""

import pandas as pd
import torch
from inputs import load, parser, show

from hf_docmt.analysis.pictures import SINGLE, picture
from hf_docmt.modeling.segments import sinusoid

SHARES = (0.9, 0.95, 0.99, 0.999, 0.9999)  # of the variance


def model_positions(model, count: int) -> torch.Tensor:
    """Encodings of the first positions at the encoder's input, (count, D)."""
    config, limit = model.config, model.config.max_position_embeddings
    if config.position_type == "learned" and count > limit:
        raise SystemExit(f"the model has learned encodings of {limit} positions, got {count}: ask for fewer")
    with torch.inference_mode():
        return model.get_encoder().position_encoding(torch.arange(count, device=model.device)[None])[0].float()


def explained(encodings: torch.Tensor) -> torch.Tensor:
    """Share of the variance of encodings (positions, D) that the first 1, 2, ... components have."""
    centred = encodings.double() - encodings.double().mean(dim=0)
    variance = torch.linalg.svdvals(centred).square()
    if not float(variance.sum()) > 0:
        raise SystemExit("the encodings of all positions are the same: the model has no positions at its input")
    return variance.cumsum(0) / variance.sum()


def main() -> None:
    made = parser(__doc__)
    made.add_argument("--model", help="model folder or Hub name")
    made.add_argument("--count", type=int, default=1024, help="positions to encode, from the first one")
    made.add_argument("--dim", type=int, default=512, help="dimensions of the sinusoids")
    options = made.parse_args()
    if options.model:
        encodings = model_positions(load(options)[0], options.count)
    else:
        encodings = sinusoid(torch.arange(options.count), options.dim)
    cumulative = explained(encodings).cpu()
    needed = [int((cumulative < share).sum()) + 1 for share in SHARES]
    show(pd.DataFrame({"variance (%)": [100 * share for share in SHARES], "components": needed}), options)
    if options.picture:
        with picture(options.picture, SINGLE) as figure:
            axes = figure.subplots()
            axes.plot(range(1, len(cumulative) + 1), 100 * cumulative.numpy())
            axes.set(xlabel="principal components", ylabel="share of the variance (%)", ylim=(0, 102))


if __name__ == "__main__":
    main()
