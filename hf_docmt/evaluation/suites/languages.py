"""Do the languages of a suite fit those of a model?"""

from collections.abc import Sequence

from hf_docmt.data.language_codes import primary_language
from hf_docmt.evaluation.suites.items import SuiteItem
from hf_docmt.files import DataError


def check_language(items: Sequence[SuiteItem], source_lang: str | None, target_lang: str | None) -> None:
    """DataError where items are known to be of other languages than a model that translates between these.

    A language that is unknown on either side is not compared. Codes such as `de_DE`, `deu_Latn` and `de` are the same
    language; codes of different length, of languages that are not in the table, are not compared.
    """
    for item in items[:1]:
        check_languages(item.where, item.languages, source_lang, target_lang)


def check_languages(
    where: str, languages: tuple[str | None, str | None], source_lang: str | None, target_lang: str | None
) -> None:
    """As `check_language`, for data with these languages; `where` begins the message."""
    for side, own, other in zip(("source", "target"), languages, (source_lang, target_lang)):
        codes = {primary_language(code) for code in (own, other) if code}
        if len(codes) == 2 and len(set(map(len, codes))) == 1:
            raise DataError(
                f"{where}: the {side} language is {own!r}, the model's {other!r}; take data from {source_lang} to "
                f"{target_lang}, or a model of these languages"
            )
