"""A page that translates documents and shows which context each sentence used.

python examples/space/app.py --model runs/demo/hub
"""

import argparse
import os
import sys
import threading
import time
from pathlib import Path

try:
    import gradio as gr
except ImportError as error:
    from hf_docmt.messages import install_command

    sys.exit(f"the page needs more packages ({error}): {install_command('space')}")

import page
from turns import Turn, Turns
from uploads import ENDINGS, MOST_BYTES, MOST_SENTENCES, Upload, pasted, read_upload, source_of, write_upload
from workbench import Langs, Workbench

from hf_docmt.translation.live_translation import Progress

HERE = Path(__file__).resolve().parent
STORED = {"secret": "hf-docmt"}  # what a browser keeps for its user is still there when the page has been restarted
MOST_KEPT = 3 * 2**20  # bytes of files that a browser keeps
WAITING = 1.0  # seconds between two looks at whose turn it is
IN_TURN = {"concurrency_id": "model", "concurrency_limit": 16}  # most who wait for their turn in a thread
MOST_QUEUED = 64
THEME = gr.themes.Default(primary_hue="teal", font=["system-ui", "sans-serif"], font_mono=["ui-monospace", "monospace"])
NO_FILE = {"file": None}


class Page:
    """The components and what they do. The server keeps nothing: draft, result and files are in the browser."""

    def __init__(self, bench: Workbench):
        self.bench = bench
        self.turns = Turns()
        self.runs: dict[str, threading.Event] = {}  # session -> set when its translation is to end
        with gr.Blocks(title="Document translation", analytics_enabled=False, delete_cache=(60, 600)) as self.blocks:
            self.draft = gr.BrowserState({"text": "", **NO_FILE}, storage_key="docmt-draft", **STORED)
            self.result = gr.BrowserState(None, storage_key="docmt-result", **STORED)
            gr.HTML(page.header(bench))
            with gr.Row(elem_id="input"):
                with gr.Column(scale=3, min_width=280):
                    self.text = gr.Textbox(
                        label=f"Document ({bench.langs[0]})" if len(bench.language_choices[0]) == 1 else "Document",
                        placeholder="Paste a document here. Shift+Enter translates.",
                        lines=9,  # as many as max_lines: no measuring of the whole text at every change
                        max_lines=9,
                        elem_id="text",
                    )
                    self.file = gr.HTML(visible=False, elem_id="file")
                with gr.Column(scale=1, min_width=240):
                    self.open = gr.UploadButton(
                        "Open a file", file_types=list(ENDINGS), type="filepath", size="md", elem_id="open"
                    )
                    gr.HTML(f"<p class='note'>{' '.join(ENDINGS)}, up to {MOST_SENTENCES} sentences</p>")
                    self.remove = gr.Button("Remove the file", visible=False, size="md", elem_id="remove")
                    self.langs = [language_choice(bench, side) for side in (0, 1)]
                    names = list(bench.strategies)
                    about = bench.strategies[names[0]]
                    self.strategy = gr.Dropdown(names, value=names[0], label="Strategy", info=about, elem_id="strategy")
                    self.start = gr.Button("Translate", variant="primary", elem_id="start")
                    self.stop = gr.Button("Stop", variant="stop", visible=False, elem_id="stop")
            with gr.Row(elem_id="state"):
                self.status = gr.HTML(elem_id="status")
                script = (HERE / "download.js").read_text(encoding="utf-8")
                self.download = gr.HTML(js_on_load=script, visible=False, elem_id="download")
            with gr.Row(elem_id="output"):
                script = (HERE / "rows.js").read_text(encoding="utf-8")
                self.rows = gr.HTML(js_on_load=script, elem_id="rows", scale=3)
                script = (HERE / "panel.js").read_text(encoding="utf-8")
                self.panel = gr.HTML(js_on_load=script, elem_id="panel", scale=2)
            self._connect()

    def _connect(self) -> None:
        """Events. What is typed goes to the browser's storage without the server."""
        keep = "(text, draft) => ({...draft, text})"
        self.text.change(None, [self.text, self.draft], self.draft, js=keep, show_progress="hidden")
        input_side = [self.draft, self.text, self.file, self.open, self.remove]
        self.open.upload(self.open_file, [self.open, self.draft, self.langs[0]], input_side, show_progress="hidden")
        self.remove.click(self.remove_file, [self.draft], input_side, show_progress="hidden")
        self.strategy.change(self.about, self.strategy, self.strategy, show_progress="hidden")
        shown = [self.result, self.status, self.rows, self.panel, self.download, self.start, self.stop]
        inputs = [self.text, self.draft, self.strategy, *self.langs]
        begin = [self.start.click, self.text.submit]
        gr.on(begin, self.translate, inputs, shown, show_progress="hidden", trigger_mode="once", **IN_TURN)
        self.stop.click(self.ask_to_stop, queue=False)
        self.rows.click(self.explain, [self.result], self.panel, show_progress="hidden", **IN_TURN)
        typed_first = "(text, draft) => text || !draft.text ? {__type__: 'update'} : draft.text"
        self.blocks.load(None, [self.text, self.draft], self.text, js=typed_first, show_progress="hidden")
        kept, settings = [self.draft, self.result], [self.strategy, *self.langs]
        self.blocks.load(self.restore, kept, [*input_side[1:], *settings, *shown], show_progress="hidden")

    def about(self, strategy: str) -> dict:
        return gr.update(info=self.bench.strategies[strategy])

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

    def translate(self, text: str, draft: dict, strategy: str, source_lang: str, target_lang: str, request: gr.Request):
        """Yields what is shown while the translation grows; where it is to stop, what is there, and nothing after it.

        Events that gradio cancels may still send what they have yielded, and so hide the buttons again.
        """
        session, stop, turn = request.session_hash, threading.Event(), None
        self.runs[session] = stop
        try:
            with shown_errors():
                turn = self.turns.ask(address_of(request))
                while not self.turns.wait(turn, WAITING):
                    yield self._waiting(is_stopped := stop.is_set())
                    if is_stopped:
                        return
                yield from self._grow(text, draft, strategy, (source_lang, target_lang), stop, turn)
        finally:
            if turn:
                self.turns.end(turn)
            if self.runs.get(session) is stop:
                del self.runs[session]

    def _waiting(self, is_stopped: bool) -> tuple:
        """What is shown before a turn has come: the same as before, but for the status and the buttons."""
        status = "" if is_stopped else page.WAITING
        return (
            gr.update(),
            status,
            *(gr.update(),) * 3,
            gr.update(visible=is_stopped),
            gr.update(visible=not is_stopped),
        )

    def ask_to_stop(self, request: gr.Request) -> None:
        if request.session_hash in self.runs:
            self.runs[request.session_hash].set()

    def _grow(self, text: str, draft: dict, strategy: str, langs: Langs, stop: threading.Event, turn: Turn):
        upload = Upload.from_json(draft["file"]) if draft.get("file") else pasted(text)
        rows = read_upload(upload, langs[0])
        sources = [source_of(row, langs[0]) for row in rows]
        begin = time.monotonic()
        for progress in self.bench.translate(sources, strategy, langs):
            file = self._file(upload, rows, progress, langs) if progress.repairs is not None else None
            is_kept = len(upload.data) + len(file.data if file else b"") <= MOST_KEPT
            result = {
                "upload": upload.as_json() if is_kept else None,
                "strategy": strategy,
                "langs": langs,
                "translations": progress.translations,
                "repairs": progress.repairs,
                "file": file.as_json() if file and is_kept else None,
            }
            is_late = file is None and self.turns.is_over(turn)
            is_stopped = stop.is_set() or is_late
            seconds = None if is_stopped else time.monotonic() - begin
            yield result, *self._output_side(rows, progress, strategy, langs, file, seconds, not is_stopped)
            if is_late:
                raise ValueError(f"the translation took more than {self.turns.longest} s: split the document")
            if is_stopped:
                return

    def _file(self, upload: Upload, rows: list[dict], progress: Progress, langs: Langs) -> Upload:
        """The translated file; a warning for all that went wrong in it."""
        sources = [source_of(row, langs[0]) for row in rows]
        fits = self.bench.word_fits(rows, sources, progress.translations, langs)
        file, problems = write_upload(upload, rows, progress.translations, langs, fits)
        for problem in problems:
            gr.Warning(problem)
        return file

    def _output_side(
        self,
        rows: list[dict],
        progress: Progress,
        strategy: str,
        langs: Langs,
        file: Upload | None,
        seconds: float | None,
        is_running: bool,
    ) -> tuple:
        """Status, sentences, panel, download and the two buttons."""
        sources = [source_of(row, langs[0]) for row in rows]
        names = [row["doc_id"] for row in rows]
        repairs = progress.repairs or [[] for _ in rows]
        is_done = progress.repairs is not None
        return (
            page.status(progress, strategy, seconds),
            page.side_by_side(names, sources, progress.translations, repairs, langs),
            "",
            gr.update(value=page.download(file) if file else "", visible=file is not None),
            gr.update(visible=is_done or not is_running),
            gr.update(visible=is_running and not is_done),
        )

    def explain(self, result: dict | None, event: gr.EventData, request: gr.Request) -> str:
        """The panel of the sentence that was chosen."""
        with shown_errors():
            rows, progress, langs, _ = self._read_result(result)
            document, number = int(event.document), int(event.sentence)
            source = source_of(rows[document], langs[0])
            made, repairs = progress.translations[document], (progress.repairs or [[]] * len(rows))[document]
            known = [text if translation is not None else "" for text, translation in zip(source, made)]
            made = [text or "" for text in made]
            turn = self.turns.ask(address_of(request))
            try:
                while not self.turns.wait(turn, WAITING):
                    pass
                found = self.bench.explain(known, made, repairs, result["strategy"], langs, number)
            finally:
                self.turns.end(turn)
            return page.context(found, langs)

    def _read_result(self, result: dict | None) -> tuple[list[dict], Progress, Langs, Upload | None]:
        """What the browser kept of a translation. ValueError: nothing, or what this page has not made."""
        if not result or not result.get("upload"):
            raise ValueError("there is no translation to look at: translate the document again")
        upload, langs = Upload.from_json(result["upload"]), tuple(result["langs"])
        if any(lang not in codes for lang, codes in zip(langs, self.bench.language_choices, strict=True)):
            raise ValueError(f"the languages {langs} are of another model: translate again")
        rows = read_upload(upload, langs[0])
        translations, repairs = result["translations"], result["repairs"]
        texts = [text for one in translations for text in one]
        is_same = [len(one) for one in translations] == [len(row["translation"]) for row in rows]
        if not is_same or not all(text is None or isinstance(text, str) for text in texts):
            raise ValueError("the translation that was kept is of another document: translate again")
        if result["strategy"] not in self.bench.strategies:
            raise ValueError(f"strategy {result['strategy']!r} is of another model: translate again")
        done = sum(text is not None for text in texts)
        file = Upload.from_json(result["file"]) if result.get("file") else None
        return rows, Progress(done, len(texts), translations, repairs), langs, file

    def restore(self, draft: dict, result: dict | None) -> tuple:
        """After a reload: file and translation as they were; the text itself comes back without the server."""
        kept = None
        try:
            kept = self._read_result(result)
        except (ValueError, TypeError, KeyError):  # nothing, or of another model or version
            pass
        langs = kept[2] if kept else self.bench.langs
        try:
            upload = Upload.from_json(draft["file"]) if draft.get("file") else None
            own = read_upload(upload, langs[0]) if upload else []
        except ValueError:
            upload, own = None, []
        input_side = self._input_side(upload, own)
        if not kept:
            return *input_side, *(gr.update(),) * 3, None, *(gr.update(),) * 6
        rows, progress, _, file = kept
        output_side = self._output_side(rows, progress, result["strategy"], langs, file, None, False)
        return *input_side, result["strategy"], *langs, result, *output_side


def language_choice(bench: Workbench, side: int) -> gr.Dropdown:
    """The codes of one side, 0 = source, 1 = target; shown where there is a choice."""
    codes, label = bench.language_choices[side], ("From", "To")[side]
    return gr.Dropdown(
        codes, value=bench.langs[side], label=label, visible=len(codes) > 1, elem_id=f"{label.lower()}-language"
    )


class shown_errors:  # noqa: N801  # used like a function
    """Within it, an error of what the user gave is shown on the page."""

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if isinstance(error, ValueError) and not isinstance(error, gr.Error):
            raise gr.Error(str(error), print_exception=False) from error


def address_of(request: gr.Request) -> str:
    """Where a request comes from: what the proxy of a Space says, which is behind what was sent to it."""
    forwarded = request.headers.get("x-forwarded-for", "")
    return forwarded.split(",")[-1].strip() or request.client.host


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default=os.environ.get("DOCMT_MODEL"), help="folder or Hub name of a model")
    options = parser.parse_args(arguments)
    if not options.model:
        sys.exit("no model: give --model FOLDER, or set the variable DOCMT_MODEL to a folder or a Hub name")
    try:
        bench = Workbench(options.model)
    except ValueError as error:
        sys.exit(f"the page has no model: {error}")
    Page(bench).blocks.queue(max_size=MOST_QUEUED).launch(
        theme=THEME, css_paths=[HERE / "style.css"], max_file_size=MOST_BYTES, footer_links=[]
    )


if __name__ == "__main__":
    main()
