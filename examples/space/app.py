"""A page that translates documents and shows which context each sentence used.

python examples/space/app.py --model runs/demo/hub
"""

import argparse
import json
import os
import sys
from pathlib import Path

try:
    import gradio as gr
except ImportError as error:
    from hf_docmt.messages import install_command

    sys.exit(f"the page needs more packages ({error}): {install_command('space')}")

import page
from actions import NO_FILE, Actions
from uploads import ENDINGS, MOST_BYTES, MOST_SENTENCES
from workbench import STRATEGY_NAMES, Workbench

HERE = Path(__file__).resolve().parent
STORED = {"secret": "hf-docmt"}  # data in a browser stays valid after a restart of the page
IN_TURN = {"concurrency_id": "model", "concurrency_limit": 16}  # most who wait for their turn in a thread
MOST_QUEUED = 64
THEME = gr.themes.Default(primary_hue="teal", font=["system-ui", "sans-serif"], font_mono=["ui-monospace", "monospace"])


class Page(Actions):
    """The components, and which event does what. The server keeps nothing: draft and result are in the browser."""

    def __init__(self, bench: Workbench):
        super().__init__(bench)
        with gr.Blocks(title="Document translation", analytics_enabled=False, delete_cache=(60, 600)) as self.blocks:
            self.draft = gr.BrowserState({"text": "", **NO_FILE}, storage_key="docmt-draft", **STORED)
            self.result = gr.BrowserState(None, storage_key="docmt-result", **STORED)
            gr.HTML(page.header(bench), js_on_load=script("live"))
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
                    self.example = gr.Button("Example", visible=bool(bench.example), size="md", elem_id="example")
                    self.langs = [language_choice(bench, side) for side in (0, 1)]
                    names = [(STRATEGY_NAMES[name][0], name) for name in bench.strategies]
                    own = bench.strategies[0]
                    self.strategy = gr.Dropdown(
                        names, value=own, label="Strategy", info=STRATEGY_NAMES[own][1], elem_id="strategy"
                    )
                    self.compare = gr.Checkbox(label="Compare with sentence by sentence", elem_id="compare")
                    self.start = gr.Button("Translate", variant="primary", elem_id="start")
                    self.stop = gr.Button("Stop", variant="stop", visible=False, elem_id="stop")
            with gr.Row(elem_id="state"):
                self.status = scripted("status")
                self.comparison = scripted("comparison")
                self.download = scripted("download", visible=False)
            with gr.Row(elem_id="output"):
                self.rows = scripted("rows", scale=3)
                with gr.Column(scale=2, elem_id="side"):
                    self.panel = scripted("panel")
                    self.research = scripted("research")
            self._connect()

    def _connect(self) -> None:
        """Events. What is typed goes to the browser's storage without the server."""
        own_text = {"show_progress": "hidden", "js": script("draft")}
        self.text.change(None, [self.text, self.draft, self.result], self.draft, **own_text)
        input_side = [self.draft, self.text, self.file, self.open, self.remove]
        self.open.upload(self.open_file, [self.open, self.draft, self.langs[0]], input_side, show_progress="hidden")
        self.remove.click(self.remove_file, [self.draft], input_side, show_progress="hidden")
        self.remove.click(None, js=focus("open"))
        self.example.click(None, None, self.text, js=f"() => {json.dumps(self.bench.example)}")
        self.strategy.change(self.about, self.strategy, self.strategy, show_progress="hidden")
        shown = [
            self.result,
            self.status,
            self.rows,
            self.panel,
            self.research,
            self.download,
            self.comparison,
            self.stop,
        ]
        inputs = [self.text, self.draft, self.strategy, *self.langs, self.compare]
        begin = [self.start.click, self.text.submit]
        gr.on(begin, self.translate, inputs, shown, show_progress="hidden", trigger_mode="once", **IN_TURN)
        self.compare.input(
            self.compare_now, [self.compare, self.result], shown, show_progress="hidden", trigger_mode="once", **IN_TURN
        )
        self.stop.click(self.ask_to_stop, queue=False)
        self.stop.click(None, js=focus("start"))
        at_once = {"show_progress": "hidden", "concurrency_id": "why", "concurrency_limit": 2}
        self.rows.click(self.explain, [self.result], [self.panel, self.research], **at_once)
        self.panel.click(self.show_research, [self.result], self.research, show_progress="hidden", **IN_TURN)
        typed_first = "(text, draft) => text || !draft.text ? {__type__: 'update'} : draft.text"
        self.blocks.load(None, [self.text, self.draft], self.text, js=typed_first, show_progress="hidden")
        kept, settings = [self.draft, self.result], [self.strategy, *self.langs]
        self.blocks.load(self.restore, kept, [*input_side[1:], *settings, *shown], show_progress="hidden")


def language_choice(bench: Workbench, side: int) -> gr.Dropdown:
    """The codes of one side, 0 = source, 1 = target; shown where there is a choice."""
    codes, label = bench.language_choices[side], ("From", "To")[side]
    names = sorted((bench.language_name(code), code) for code in codes)
    return gr.Dropdown(
        names, value=bench.langs[side], label=label, visible=len(codes) > 1, elem_id=f"{label.lower()}-language"
    )


def script(name: str) -> str:
    return (HERE / f"{name}.js").read_text(encoding="utf-8")


def scripted(name: str, **settings) -> gr.HTML:
    """A part of the page with its script, both called by its name."""
    return gr.HTML(js_on_load=script(name), elem_id=name, **settings)


def focus(name: str) -> str:
    """A script that moves the focus away from a button that goes."""
    return f"() => {{ document.getElementById('{name}')?.focus(); }}"


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
