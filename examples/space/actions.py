"""Handlers of the page's events: they get the state kept in the browser, and return the output to show."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import gradio as gr
import page
from translation import Run, Translation
from turns import Turns
from uploads import Upload, pasted, read_upload, write_upload
from workbench import STRATEGY_NAMES, Langs, Workbench

MOST_KEPT = 3 * 2**20  # bytes of files that a browser keeps
WAITING = 1.0  # seconds between two looks at whose turn it is
NO_FILE = {"file": None}


class Actions:
    """The handlers of all events, for a model. `runs` are the translations under way by session."""

    def __init__(self, bench: Workbench):
        self.bench = bench
        self.turns = Turns()
        self.runs: dict[str, Run] = {}

    def about(self, strategy: str) -> dict:
        return gr.update(info=STRATEGY_NAMES[strategy][1])

    def open_file(self, path: str, draft: dict, source_lang: str) -> tuple:
        upload = Upload(Path(path).name, Path(path).read_bytes())
        Path(path).unlink()  # nothing stays on the server
        with shown_errors():
            rows = read_upload(upload, source_lang)
        if len(upload.data) > MOST_KEPT:
            gr.Warning(f"{upload.name} is too large to be kept: open it again after a reload of the page.")
        return draft | {"file": upload.as_json()}, *self._input_side(upload, rows)

    def remove_file(self, draft: dict) -> tuple:
        return draft | NO_FILE, *self._input_side(None, [])

    def _input_side(self, upload: Upload | None, rows: list[dict]) -> tuple:
        line = page.file_line(upload.name, rows) if upload else ""
        return (
            gr.update(visible=not upload),
            gr.update(value=line, visible=bool(upload)),
            gr.update(label="Open another file" if upload else "Open a file", value=None),
            gr.update(visible=bool(upload)),
        )

    def translate(
        self,
        text: str,
        draft: dict,
        strategy: str,
        source_lang: str,
        target_lang: str,
        compare: bool,
        request: gr.Request,
    ):
        """Yields what is shown while the translation grows; when stopped, only the finished part."""
        langs = (source_lang, target_lang)
        yield from self._in_turn(
            request, lambda run: self._translated(self._upload(text, draft), strategy, langs, compare, run)
        )

    def compare_now(self, compare: bool, result: dict | None, request: gr.Request):
        """The existing translation, with or without what differs sentence by sentence."""
        try:
            made = self._read_result(result)
        except (ValueError, TypeError, KeyError):
            return
        made.alone = made.alone if compare else None
        if made.alone or not compare:
            yield self._shown(made)
        else:
            yield from self._in_turn(request, lambda run: self._compared(made, run))

    def _in_turn(self, request: gr.Request, work: Callable[[Run], Iterator[tuple]]):
        """Wait for the turn of an address and do the work, which yields what is shown.

        Events that gradio cancels may still send what they have yielded, and so hide the buttons again.
        """
        session, run = request.session_hash, Run(self.turns)
        self.runs[session] = run
        try:
            with shown_errors():
                run.turn = self.turns.ask(address_of(request))
                while not self.turns.wait(run.turn, WAITING):
                    yield self._waiting(run)
                    if run.is_stopped:
                        return
                yield from work(run)
        finally:
            if run.turn:
                self.turns.end(run.turn)
            if self.runs.get(session) is run:
                del self.runs[session]

    def _waiting(self, run: Run) -> tuple:
        """The output while a request waits for its turn: unchanged except the status and the buttons."""
        status = "" if run.is_stopped else page.waiting(self.turns.before(run.turn))
        return gr.update(), status, *(gr.update(),) * 5, stop_button(not run.is_stopped)

    def ask_to_stop(self, request: gr.Request) -> None:
        if request.session_hash in self.runs:
            self.runs[request.session_hash].stop()

    def _upload(self, text: str, draft: dict) -> Upload:
        return Upload.from_json(draft["file"]) if draft.get("file") else pasted(text)

    def _translated(self, upload: Upload, strategy: str, langs: Langs, compare: bool, run: Run):
        made = Translation(upload, strategy, langs)
        sources = made.sources
        begin, is_first = time.monotonic(), True
        rows = made.rows
        for made.progress in self.bench.translate(sources, strategy, langs, rows):
            is_done = made.progress.repairs is not None
            made.is_stopped = not is_done and run.is_over
            if is_done or made.is_stopped:
                made.file = self._file(made)
            is_running = not (is_done or made.is_stopped) or (is_done and compare)
            yield self._shown(made, time.monotonic() - begin, is_running, is_first)
            is_first = False
            if made.is_stopped:
                run.check_time()
                return
        if compare:
            yield from self._compared(made, run)

    def _compared(self, made: Translation, run: Run):
        """The translation next to that of its sentences alone."""
        if made.strategy != "sentence":
            for progress in self.bench.translate(made.sources, "sentence", made.langs, made.rows):
                if progress.repairs is not None:
                    made.alone = progress.translations
                yield self._shown(made, is_running=progress.repairs is None and not run.is_over)
                if run.is_over:
                    return run.check_time()
        yield self._shown(made)

    def _file(self, made: Translation) -> Upload:
        """The translated file, the source where there is no translation; a warning for all that went wrong in it."""
        results = self.bench.results(made.rows, made.sources, made.progress, made.langs)
        file, problems = write_upload(made.upload, made.rows, results, made.langs, made.progress.repairs)
        for problem in problems:
            gr.Warning(problem)
        return file

    def _shown(
        self, made: Translation, seconds: float | None = None, is_running: bool = False, is_new: bool = False
    ) -> tuple:
        """Result, status, sentences, panel, research, download, comparison and the button to stop."""
        progress = made.progress
        repairs = progress.repairs or [[] for _ in made.rows]
        names = [row["doc_id"] for row in made.rows]
        count = page.differing(progress.translations, made.alone) if made.alone else None
        is_comparing = is_running and progress.repairs is not None
        return (
            made.as_json(MOST_KEPT),
            page.status(progress, made.strategy, seconds, made.is_stopped),
            page.side_by_side(
                names, made.sources, progress.translations, repairs, made.langs, made.strategy, made.alone
            ),
            *("" if is_new else gr.update(),) * 2,
            gr.update(value=page.download(made.file) if made.file else "", visible=made.file is not None),
            page.comparison(count, progress.total, is_comparing),
            stop_button(is_running),
        )

    def explain(self, result: dict | None, event: gr.EventData) -> tuple[str, str]:
        """The panel of the chosen sentence, without waiting for the documents of other users."""
        with shown_errors():
            made = self._read_result(result)
            document, number = int(event.document), int(event.sentence)
            source, texts, repairs = made.known(document)
            found = self.bench.explain(source, texts, repairs, made.strategy, made.langs, number)
            return page.explanation(found, made.langs, document), ""

    def show_research(self, result: dict | None, event: gr.EventData, request: gr.Request) -> str:
        """Details of the same sentence for researchers, in turn: other threads would disturb the measurement."""
        with shown_errors():
            made = self._read_result(result)
            document, number = int(event.document), int(event.sentence)
            source, texts, _ = made.known(document)
            turn = self.turns.ask(address_of(request))
            try:
                while not self.turns.wait(turn, WAITING):
                    pass
                use = self.bench.context_use(source, texts, made.langs, number)
            finally:
                self.turns.end(turn)
            return page.research(use, number, made.langs)

    def _read_result(self, result: dict | None) -> Translation:
        """The translation kept in the browser. ValueError: missing, or not made by this page."""
        made = Translation.from_json(result)
        if any(lang not in codes for lang, codes in zip(made.langs, self.bench.language_choices, strict=True)):
            raise ValueError(f"the languages {made.langs} are of another model: translate again")
        if made.strategy not in self.bench.strategies:
            raise ValueError(f"strategy {made.strategy!r} is of another model: translate again")
        return made

    def restore(self, draft: dict, result: dict | None) -> tuple:
        """After a reload: restores file and translation; the browser restores the text."""
        kept = None
        try:
            kept = self._read_result(result)
        except (ValueError, TypeError, KeyError):  # nothing, or of another model or version
            pass
        langs = kept.langs if kept else self.bench.langs
        try:
            upload = Upload.from_json(draft["file"]) if draft.get("file") else None
            own = read_upload(upload, langs[0]) if upload else []
        except ValueError:
            upload, own = None, []
        input_side = self._input_side(upload, own)
        if not kept:
            return *input_side, *(gr.update(),) * 3, None, *(gr.update(),) * 7
        kept.is_stopped = kept.progress.repairs is None
        return *input_side, kept.strategy, *langs, *self._shown(kept, is_new=True)


class shown_errors:  # noqa: N801  # used like a function
    """Within it, an error of what the user gave is shown on the page."""

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if isinstance(error, ValueError) and not isinstance(error, gr.Error):
            raise gr.Error(str(error), print_exception=False) from error


def address_of(request: gr.Request) -> str:
    """The address of a request, from the header of a Space's proxy, which comes after the client's own."""
    forwarded = request.headers.get("x-forwarded-for", "")
    return forwarded.split(",")[-1].strip() or request.client.host


def stop_button(is_visible: bool) -> dict:
    """The button to stop; gradio shows one that was hidden without its label, unless it is given again."""
    return gr.update(value="Stop", visible=is_visible)
