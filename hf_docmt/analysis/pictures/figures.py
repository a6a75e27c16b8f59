"""Style, fonts and files of all pictures."""

import logging
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from hf_docmt.files import check_writable_file
from hf_docmt.messages import install_command

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")  # Okabe and Ito (2008)
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
ENDINGS = (".png", ".svg")
LINES = ("-", ":", "--", "-.")  # of every further round of colours
GREY = "#BBBBBB"  # of systems that were not chosen
DPI = 200  # dots per inch of PNG
SINGLE = (5.2, 2.7)  # inches, the only panel

STYLE = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.3,
    "lines.markersize": 4.5,
    "svg.hashsalt": "hf-docmt",  # the same picture gives the same file
}
CJK = ("Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "WenQuanYi Zen Hei", "PingFang SC", "Microsoft YaHei")
DISTINCT = len(COLOURS) * len(LINES)  # looks
MISSING = re.compile(r"Glyph (\d+) .*missing from")  # a warning of matplotlib
NAMED = 8  # characters that a warning names
METADATA = {".png": {"Software": "hf-docmt"}, ".svg": {"Date": None, "Creator": "hf-docmt"}}

_logger = logging.getLogger(__name__)


def check_matplotlib() -> None:
    """ValueError: matplotlib is not installed."""
    if find_spec("matplotlib") is None:
        raise ValueError(f"pictures need matplotlib, which is not installed: {install_command('plots')}")


def check_picture_path(path: str | Path) -> Path:
    """The path of a picture to be written.

    ValueError: matplotlib is not installed, another ending than `ENDINGS`, a file that cannot be written.
    """
    check_matplotlib()
    path = Path(path)
    if path.suffix.lower() not in ENDINGS:
        raise ValueError(f"{path}: a picture's name ends in {' or '.join(ENDINGS)}, got {path.suffix or 'no ending'!r}")
    return check_writable_file(path)


@contextmanager
def picture(path: str | Path, size: tuple[float, float], *, title: str = "", style: dict | None = None) -> Iterator:
    """A figure of `size` inches that is drawn within the context, and then written to a file.

    The ending says PNG or SVG. There is neither date nor version in it, so that the same picture
    gives the same file. Characters that DejaVu Sans lacks come from the installed fonts of `CJK`; one warning names
    those that no font has. Signs in the title are no formula. ValueError: see `check_picture_path`.
    """
    path = check_picture_path(path)
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.font_manager import get_font_names

    installed = get_font_names()
    families = ["DejaVu Sans", *(name for name in CJK if name in installed)]
    with rc_context(STYLE | {"font.family": families} | (style or {})):
        figure = Figure(figsize=size, dpi=DPI, layout="constrained")
        yield figure
        if title:
            figure.suptitle(title, fontsize=9, parse_math=False)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            figure.savefig(path, metadata=METADATA[path.suffix.lower()])
        if path.suffix.lower() == ".png":
            reduce_colours(path)
        report_missing(path, [str(warning.message) for warning in caught])


def reduce_colours(path: Path) -> None:
    """Writes a PNG file again with a palette of 256 colours, at a third of its size."""
    from PIL import Image  # comes with matplotlib
    from PIL.PngImagePlugin import PngInfo

    with Image.open(path) as image:
        colours, resolution, texts = image.convert("RGB"), image.info["dpi"], PngInfo()
        for key, text in METADATA[".png"].items():
            texts.add_text(key, text)
    colours.quantize(256, dither=Image.Dither.NONE).save(path, optimize=True, dpi=resolution, pnginfo=texts)


def report_missing(path: Path, messages: Sequence[str]) -> None:
    """One warning for all characters that no installed font has, as matplotlib's messages name them."""
    codes = {int(found[1]) for found in (MISSING.match(message) for message in messages) if found}
    if codes:
        shown = " ".join(map(chr, sorted(codes)[:NAMED])) + (" ..." if len(codes) > NAMED else "")
        _logger.warning(
            "%s: no installed font has %s; install Noto Sans, for Chinese and Japanese Noto Sans CJK (on Debian "
            "fonts-noto-core and fonts-noto-cjk)",
            path,
            shown,
        )
    for message in messages:
        if not MISSING.match(message):
            warnings.warn(message, stacklevel=3)


def look_of(number: int) -> dict:
    """Colour, marker and line of the system of this number, from 0; the first `DISTINCT` are all different."""
    rounds, colour = divmod(number, len(COLOURS))
    look = {"color": COLOURS[colour], "marker": MARKERS[(colour + 3 * (rounds // 2)) % len(MARKERS)]}
    look |= {"linestyle": LINES[rounds % len(LINES)]} if rounds else {}
    return look | ({"markerfacecolor": "white"} if rounds % 2 else {})
