"""What pictures show, and whether anything in them covers anything else."""

import itertools

import pytest


@pytest.fixture
def drawn(monkeypatch):
    """The figures that are written to files, each with `boxes` of its parts and `labels` of its axes, in pixels."""
    Figure = pytest.importorskip("matplotlib.figure").Figure
    figures, savefig = [], Figure.savefig

    def catch(figure, *args, **options):
        savefig(figure, *args, **options)
        around = [figure._suptitle, figure._supxlabel, *figure.legends]
        figure.boxes = [part.get_window_extent() for part in around if part is not None and part.get_visible()]
        figure.boxes += [axes.get_tightbbox() for axes in figure.axes]
        sides = [side for axes in figure.axes for side in (axes.get_xticklabels(), axes.get_yticklabels())]
        figure.labels = [[label.get_window_extent() for label in side if label.get_text()] for side in sides]
        figures.append(figure)  # measured now, for the style holds until the file is written

    monkeypatch.setattr(Figure, "savefig", catch)
    return figures


@pytest.fixture
def nothing_covers_anything():
    """Raise where parts or labels of a figure overlap, or a part is outside of it."""

    def check(figure):
        for group in (figure.boxes, *figure.labels):
            assert not [pair for pair in itertools.combinations(group, 2) if pair[0].overlaps(pair[1])]
        assert all(figure.bbox.padded(1).contains(*corner) for box in figure.boxes for corner in box.corners())

    return check
