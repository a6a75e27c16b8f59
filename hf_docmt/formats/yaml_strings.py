"""YAML files of strings, as of Rails: values that are text; comments, anchors and the style of each value stay."""

import json
import re
from functools import partial

import yaml
from yaml.emitter import Emitter

from hf_docmt.data.language_codes import primary_language
from hf_docmt.files import DataError
from hf_docmt.formats.string_files import StringFile, locale_code

STRING = "tag:yaml.org,2002:str"
PROPERTIES = re.compile(r"(?:[&!][^\s,\[\]{}]*\s+)*")  # anchor and tag before a value
LOCALE = re.compile(r"[a-z]{2,3}([-_]\w+)*")


class YamlStringsFormat(StringFile):
    """Values that are text. Keys, addresses, identifiers, symbols, and messages with branches (plural, select) stay.

    A top key that is a language becomes that of the target language.
    """

    name = "yaml"
    endings = (".yml", ".yaml")
    in_folders = False

    def find(self, text: str) -> None:
        try:
            documents = list(yaml.compose_all(text, yaml.SafeLoader))
            for root in documents:
                self._find_locale(root)
                self._values(root, [], {id(None)}, False)
        except yaml.YAMLError as error:
            raise DataError(_message(error)) from error
        except RecursionError as error:
            raise DataError("values are nested too deep; simplify them") from error

    def _find_locale(self, root: yaml.Node | None) -> None:
        target = self.options.target_lang
        if isinstance(root, yaml.MappingNode) and len(root.value) == 1 and target:
            key, value = root.value[0]
            spans_all = isinstance(key, yaml.ScalarNode) and isinstance(value, yaml.MappingNode) and key.style is None
            is_language = spans_all and LOCALE.fullmatch(key.value)
            if is_language and primary_language(key.value) == primary_language(self.options.source_lang):
                code = locale_code(target, "_" if "_" in key.value else "-")
                code = f'"{code}"' if code == "no" else code  # which is false in YAML 1.1
                self.locales.append((key.start_mark.index, key.end_mark.index, code))

    def _values(self, node: yaml.Node | None, path: list[str], visited: set[int], flow: bool) -> None:
        """Add those in a node; of what aliases name, once."""
        if id(node) in visited:
            return
        visited.add(id(node))
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                self._values(value, [*path, str(key.value)], visited, flow or bool(node.flow_style))
        elif isinstance(node, yaml.SequenceNode):
            for number, value in enumerate(node.value):
                self._values(value, [*path, str(number)], visited, flow or bool(node.flow_style))
        elif (
            isinstance(node, yaml.ScalarNode) and node.tag == STRING and self.is_translated(text := _joined(node.value))
        ):
            start, end = node.start_mark.index, node.end_mark.index
            start = PROPERTIES.match(self.page.text, start, end).end()
            encode = partial(_encoded, self.page.text[start:end], node.style, flow, text)
            self.add(start, end, text, ".".join(path), encode)


def _message(error: yaml.YAMLError) -> str:
    """The error for text that PyYAML cannot read; it may be YAML 1.2, which PyYAML does not support."""
    place, problem = "", " ".join(str(error).split())
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        problem = ", ".join(filter(None, (error.context, error.problem)))
    return f"{place}PyYAML, which reads YAML 1.1, cannot read it ({problem}); repair it, or write it so"


def _joined(text: str) -> str:
    """A text in which two escapes are one character, as in JSON, with that character."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def _encoded(raw: str, style: str | None, flow: bool, old: str, text: str) -> str:
    """A text in the style of a value, which was `old`; in double quotes where that style cannot have it."""
    if style in ("|", ">") and _edges(text) == _edges(old):
        return _block(raw, style, text)
    emitter = Emitter(None)
    emitter.allow_unicode = True
    analysis = emitter.analyze_scalar(text)
    if style is None and not analysis.multiline:
        is_plain = analysis.allow_flow_plain if flow else analysis.allow_block_plain
        resolver = yaml.SafeLoader("")
        if is_plain and resolver.resolve(yaml.ScalarNode, text, (True, False)) == STRING:
            return text
    if style == "'" and not analysis.multiline and analysis.allow_single_quoted:
        return "'" + text.replace("'", "''") + "'"
    quoted = json.dumps(text, ensure_ascii=False)
    quoted = re.sub("[\x7f-\x9f\u2028\u2029\ufeff]", lambda match: f"\\u{ord(match[0]):04x}", quoted)
    return quoted + raw[len(raw.rstrip(" \t\r\n")) :]  # the lines after a block


def _edges(text: str) -> tuple[str, str]:
    """The white space before and after a text, which a block keeps in its head and its last lines."""
    return text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]


def _block(raw: str, style: str, text: str) -> str:
    """A block of lines with its former head, indentation and trailing lines.

    In a folded block a break has one more line end than the text, unless its lines are indented: those stay as in
    a literal one.
    """
    line_end = "\r\n" if "\r\n" in raw else "\n"
    head, _, body = raw.partition("\n")
    content = body.rstrip()
    digit = re.search(r"\d", head.partition("#")[0])
    lines = text.rstrip().split("\n")
    first = next(line for line in content.split("\n") if line.strip())
    spaces = len(first) - len(first.lstrip(" "))
    if digit:  # spaces beyond it are text; the first line of the value that is not empty has them, too
        value = next((line for line in lines if line.strip()), "")
        spaces -= len(value) - len(value.lstrip(" "))
    if style == ">" and any(line[:1] in (" ", "\t") for line in lines):
        head = head.replace(">", "|", 1)
    elif style == ">":
        lines = re.sub(r"(?<=[^\n])\n+", lambda match: match[0] + "\n", "\n".join(lines)).split("\n")
    indented = line_end.join(" " * spaces + line if line else "" for line in lines)
    return head.rstrip("\r") + line_end + indented + body[len(content) :]
