"""BLEU's tokenizer by language: that of sacrebleu for the language, whatever the code is called."""

import pytest
import sacrebleu

from hf_docmt.data.language_codes import primary_language
from hf_docmt.evaluation.metrics.segments import bleu
from hf_docmt.evaluation.translation_scores import score_translations

CODES = {
    "zh": ["zh", "ZH", "zh_CN", "zh-TW", "zh-Hans-CN", "zho", "zho_Hans", "zho_Hant", "cmn", "cmn_Hans", "yue_Hant"],
    "ja": ["ja", "ja_XX", "ja-JP", "jpn", "jpn_Jpan"],
    "ko": ["ko", "ko_KR", "kor", "kor_Hang"],
}
LINES = {  # hypotheses, references
    "zh": (["今天天气很好,我们去公园吧。", "他买了3本书。"], ["今天天气真好,我们去公园玩吧。", "他买了三本书。"]),
    "ja": (
        ["今日は天気がいいので公園へ行きます。", "彼は本を買った。"],
        ["今日は天気がよいので公園に行きます。", "彼は本を三冊買った。"],
    ),
    "ko": (
        ["오늘은 날씨가 좋아서 공원에 갑니다.", "그는 책을 샀다."],
        ["오늘은 날씨가 좋으니 공원에 갑니다.", "그는 책을 세 권 샀다."],
    ),
}
MODULES = {"zh": "sacrebleu", "ja": "ipadic", "ko": "mecab_ko"}


@pytest.mark.parametrize("lang", CODES)
def test_scores_of_regional_codes(lang):
    """s-BLEU and its signature are those of `sacrebleu -l en-LANG`, in every way to write the language."""
    pytest.importorskip(MODULES[lang], reason=f"sacrebleu[{lang}] is not installed")
    hypotheses, references = LINES[lang]
    peer = sacrebleu.metrics.BLEU(trg_lang=lang)
    expected = peer.corpus_score(hypotheses, [references]).score
    for code in CODES[lang]:
        options = {"dataset": "d", "split": "s", "metrics": ["s-BLEU"], "target_lang": code}
        (result,) = score_translations([hypotheses], [references], **options)
        assert result.value == expected and str(result.signature) == f"segments:sentence|{peer.get_signature()}"
    assert expected > 40 > 27 > sacrebleu.corpus_bleu(hypotheses, [references]).score


@pytest.mark.parametrize("code", ["pt_BR", "de", "deu_Latn", "en-GB", "kok", "jav_Latn", "", None])
def test_other_languages_have_13a(code):
    assert "tok:13a" in score_signature(code)


def score_signature(code):
    options = {"dataset": "d", "split": "s", "metrics": ["d-BLEU"], "target_lang": code}
    return str(score_translations([["a b c d"]], [["a b c d"]], **options)[0].signature)


def test_codes():
    assert all(primary_language(code) == lang for lang, codes in CODES.items() for code in codes)
    assert primary_language("pt_BR") == "pt" and primary_language(None) == ""


@pytest.mark.parametrize(
    ("options", "module", "message"),
    [
        ({"target_lang": "ja_XX"}, "ja", r"'ja_XX' cannot be used \(Japanese .*\): pip install 'sacrebleu\[ja\]', or"),
        ({"target_lang": "kor_Hang"}, "ko", r"'kor_Hang' cannot be used \(Korean .*\): pip install 'sacrebleu\[ko\]'"),
        ({"tokenize": "ja-mecab"}, "ja", r"'ja-mecab' cannot be used .*pip install 'sacrebleu\[ja\]'"),
    ],
)
def test_a_missing_dictionary_is_an_error(monkeypatch, options, module, message):
    monkeypatch.setattr(f"sacrebleu.tokenizers.tokenizer_{module}_mecab.MeCab", None)
    with pytest.raises(ValueError, match=message):
        bleu(**{"lowercase": False, "tokenize": None, "target_lang": None, **options})
    assert bleu(False, "char", "ja_XX").tokenizer_signature == "char"


def test_an_unknown_tokenizer_is_an_error():
    with pytest.raises(ValueError, match="unknown BLEU tokenizer 'intI': expected one of .*did you mean 'intl'"):
        bleu(False, "intI", None)
