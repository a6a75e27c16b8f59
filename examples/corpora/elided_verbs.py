"""Windows whose last English sentence has lost its verb phrase, while the German one keeps the verb.

python examples/corpora/elided_verbs.py dialogues.jsonl elided.jsonl

"I believe that." / "Das glaube ich." becomes "I do." / "Das glaube ich." after a sentence that has both verbs, such as
"Do you believe it?" / "Glaubst du es?": its own one before, or one of another document. Only the context shows which
verb is missing. Verbs after bare auxiliaries are the phenomenon of ctxpro's `auxiliary` (Wicks and Post 2023); Lupo et
al. (2022) also made data whose context matters by rule. Short sentences of the documents are used; windows are
documents of two to four sentences. `--first-rules` are those of the study: auxiliaries of "do" and "will", and of a
window's own context only the verb is checked. Otherwise the context has to have all that is lost, in both languages.
"""

import argparse
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import cache

from hf_docmt.data.documents import write_documents
from hf_docmt.data.readers import read_documents

IRREGULAR = (  # verb, past, participle where it is another one; of some no past is used
    "know knew known|think thought|go went gone|come came|see saw seen|say said|tell told|take took taken|get got "
    "gotten|give gave given|find found|feel felt|leave left|keep kept|let|mean meant|meet met|pay paid|read|run "
    "ran|sell sold|send sent|sit sat|sleep slept|speak spoke spoken|stand stood|swear swore sworn|understand "
    "understood|win won|write wrote written|bring brought|buy bought|break broke broken|catch caught|choose "
    "chose|drink drank drunk|drive drove|eat ate eaten|fall fell|fight fought|fly flew|forget forgot "
    "forgotten|forgive forgave|grow grew|hear heard|hide hid|hit|hold held|hurt|lose lost|ride rode|sing sang|spend "
    "spent|steal stole|teach taught|throw threw|wear wore|quit|bet|cost|fit"
)
REGULAR = (
    "lie hate love like live want need believe hope ask call care change check cry deserve die enjoy expect happen "
    "help kill kiss laugh learn listen look marry matter mind miss move play promise remember save share show smell "
    "smoke start stay suppose talk thank touch trust try turn use wait walk watch wish wonder work worry offer accept "
    "order book recommend require serve open close finish agree appreciate notice realize recognize sound taste sign "
    "study answer belong bother dance dream follow guess join owe own pray respect seem support treat travel visit "
    "vote"
)
DOUBLED = "plan prefer stop drop"  # planned
PAST_IS_BARE = "read let hit hurt quit bet cost fit".split()
GERMAN = (  # forms of verbs that are not one stem with an ending, the first for all
    "weiß wissen wusste wusst weiss|gehen ging gegangen geh|kommen kam gekommen komm|sehen sah gesehen sieh|nehmen "
    "nahm genommen nimm|geben gab gegeben gib|sprechen sprach gesprochen sprich|verstehen verstand verstanden|finden "
    "fand gefunden|denken dachte gedacht|bringen brachte gebracht|kennen kannte gekannt|treffen traf getroffen "
    "triff|helfen half geholfen hilf|sterben starb gestorben stirb|vergessen vergaß vergiss|lassen ließ "
    "gelassen|laufen lief gelaufen|essen aß gegessen iss|trinken trank getrunken|schreiben schrieb "
    "geschrieben|bleiben blieb geblieben|halten hielt gehalten|heißen hieß|verlieren verlor verloren|lügen log "
    "gelogen|werfen warf geworfen|lesen las gelesen lies|wollen will willst wollte|mögen mag magst mochte|möchten "
    "möchte möchtest|brechen brach gebrochen|stehen stand gestanden|sitzen saß gesessen|tragen trug getragen|schlafen "
    "schlief|fallen fiel|gefallen gefiel gefällt|fahren fuhr gefahren|fangen fing|anfangen|rufen rief gerufen|singen "
    "sang gesungen|ziehen zog gezogen"
)
COMMON = (  # German words that do not identify the missing verb
    "haben hat habe hast habt hatte hatten hattest sein ist bin bist sind war waren seid werden wird werde wirst "
    "wurde tun tut tue tust tat getan machen macht mache machst gemacht nicht kein keine keinen ein eine einen einer "
    "mein meine dein deine sein seine ihr ihre das der die dem den dass sich mich dich auch nur noch schon aber wenn "
    "was wie hier jetzt alle alles etwas mehr sehr gut mir dir uns euch ihm ihn ihnen sie wir ich du er es man und "
    "oder ja nein okay"
).split()
GERMAN_MODALS = "kann kannst können konnte könnte muss müssen musste soll sollen sollte darf dürfen".split()
NO_VERBS = "mal aus los als wurd hat film momen ihr son heu gern welch kan option pass per kurz".split()  # stems
LIGHT = (  # English words that may be lost with a verb of another document
    "it that this him her them me you us so to do be too about of with for on at there here one know go the a your my "
    "all now more much that's anything something everything nothing well very right any some how what why these those "
    "our their his either else again"
).split()
CONTENT = (  # of LIGHT, words that have to be known
    "anything something everything nothing else one know go a be here there what how why right pretty very"
).split()
NEGATED = re.compile(r"n't\b|\bnot\b|\bcannot\b|\bnobody\b|\bnicht|\bkein|\bnie(?:mals|mand)?\b", re.IGNORECASE)
# subjects of the first rules: with a capital, where they open a sentence, "I" alone
PRONOUNS = "I|you|he|she|it|we|they|everyone|everybody|nobody|somebody|someone|this|that|people"
ANY_CASE = f"I|{'|'.join(f'[{word[0].upper()}{word[0]}]{word[1:]}' for word in PRONOUNS.split('|')[1:])}"
ADVERBS = "(?:really |never |always |also |still |just |certainly |definitely |totally |all |both |too )?"
OPENING = (
    r"((?:- ?)?)((?:(?:[Yy]es|[Yy]eah|[Nn]o|[Oo]h|[Ww]ell|[Oo]kay|[Aa]nd|[Bb]ut|[Bb]ecause|[Ss]o|[Mm]aybe|[Oo]f course|"
    r"[Nn]ow|[Ii]f|[Uu]h|[Ss]ure),? )*)"
)
REST = r"((?: [\w'’]+){0,4})((?:, [\w. ]{1,14})?)([.!?]+)$"  # up to four words, a name, the end
QUESTIONS = "Do|Does|Did|Don't|Didn't|Doesn't|Will|Won't|Would|do|does|did|don't|didn't|doesn't"
NEGATIONS = "don't|doesn't|didn't|do not|does not|did not|won't|will|'ll|will not|would|wouldn't"
MODALS = "can|could|should|must|might|can't|couldn't|shouldn't|haven't|hasn't|have|has|had"
ALL_QUESTIONS = f"(?i:{QUESTIONS}|wouldn't|{MODALS})"
ALL_AUXILIARIES = f"{NEGATIONS}|{MODALS}|cannot|could not|should not|must not|have not|has not|'ve"
IN_FULL = {"'ll": "will", "'ve": "have"}


def patterns(subjects: str, questions: str, auxiliaries: str) -> tuple[re.Pattern[str], ...]:
    """A question, a sentence with an auxiliary, a sentence without one."""
    return (
        re.compile(rf"^{OPENING}({questions}) ({subjects}) {ADVERBS}([a-z]+){REST}"),
        re.compile(rf"^{OPENING}({subjects})( |)({auxiliaries}) {ADVERBS}([a-z]+){REST}"),
        re.compile(rf"^{OPENING}({subjects}) {ADVERBS}([a-z]+){REST}"),
    )


FIRST_RULES = patterns(PRONOUNS, QUESTIONS, NEGATIONS)  # of the data of the study
RULES = patterns(ANY_CASE, ALL_QUESTIONS, ALL_AUXILIARIES)
GERMAN_END = re.compile(r"(test|tet|ten|te|est|et|en|st|t|e|n)$")
SHORT, TARGET_WORDS = 12, 8  # English words of sentences that are read, German ones of those that are shortened
COPIES, OTHERS = 4, 14  # of a window with its own sentence before; sentences before it out of other documents


def english_verbs() -> tuple[dict[str, str], dict[str, str]]:
    """Forms of verbs to the verb, and finite forms to the auxiliary that stands for them."""
    verbs, auxiliaries = {}, {}
    entries = [entry.split() for entry in IRREGULAR.split("|")]
    entries += [[verb, with_ending(verb, "ed")] for verb in REGULAR.split()]
    entries += [[verb, f"{verb}{verb[-1]}ed"] for verb in DOUBLED.split()]
    for bare, *others in entries:
        forms = [bare, with_ending(bare, "es" if bare == "go" else "s"), *others]
        verbs |= dict.fromkeys(forms, bare)
        auxiliaries |= dict(zip(forms[bare in PAST_IS_BARE :], ("do", "does", "did")[bare in PAST_IS_BARE :]))
    return verbs, auxiliaries


def with_ending(verb: str, ending: str) -> str:
    """go -> goes, cry -> cried, hate -> hated, watch -> watches."""
    if re.search(r"[^aeiou]y$", verb):
        return f"{verb[:-1]}i{ending}" if ending == "ed" else f"{verb[:-1]}ies"
    if ending == "s" and re.search(r"(s|x|ch|sh)$", verb):
        return f"{verb}es"
    return verb + (ending[1:] if ending == "ed" and verb.endswith("e") else ending)


VERBS, AUXILIARIES = english_verbs()
FIRST_FORMS = {form: entry.split()[0] for entry in GERMAN.split("|") for form in entry.split()}


def without_verb_phrase(sentence: str, rules=RULES) -> tuple[str, str, str] | None:
    """An English sentence without its verb phrase, the verb, and what else it has lost; None where no rule applies."""
    asked, auxiliary_first, plain = rules
    if (match := asked.match(sentence)) and match[5] in VERBS:
        dash, opening, auxiliary, subject, verb, lost, name, end = match.groups()
        return f"{dash}{opening}{auxiliary} {subject}{name}{end}", VERBS[verb], lost
    if (match := auxiliary_first.match(sentence)) and match[6] in VERBS:
        dash, opening, subject, _, auxiliary, verb, lost, name, end = match.groups()
        return f"{dash}{opening}{subject} {IN_FULL.get(auxiliary, auxiliary)}{name}{end}", VERBS[verb], lost
    if (match := plain.match(sentence)) and match[4] in AUXILIARIES:
        dash, opening, subject, verb, lost, name, end = match.groups()
        return f"{dash}{opening}{subject} {AUXILIARIES[verb]}{name}{end}", VERBS[verb], lost
    return None


def verbs_of(sentence: str) -> set[str]:
    return {VERBS[word] for word in re.findall(r"[a-z']+", sentence.lower()) if word in VERBS}


@cache
def german_stem(word: str) -> str:
    """About what the forms of a German verb share: glaubst, geglaubt -> glaub; weiß, wusste -> weiß."""
    word = word.lower()
    end = GERMAN_END.sub("", word)
    same = [first for form, first in FIRST_FORMS.items() if len(end) > 2 and GERMAN_END.sub("", form) == end]
    word = FIRST_FORMS.get(word) or (same[0] if same else word)
    return GERMAN_END.sub("", re.sub(r"^ge(?=\w{4})", "", word)).translate(str.maketrans("äöü", "aou"))


def stems_of(sentence: str) -> set[str]:
    words = re.findall(r"\w+", sentence)
    return {german_stem(word) for word in words if word.lower() not in COMMON and len(word) > 2}


def without_nouns(sentence: str) -> str:
    """German without words that have a capital, except the first."""
    return re.sub(r"(?<=\w\W)[A-ZÄÖÜ]\w+", "", sentence)


Pair = tuple[str, str]  # an English sentence and its translation


class ElidedVerbs:
    """Windows out of documents, lists of pairs; which German stems go with an English verb is counted in these."""

    def __init__(self, documents: Sequence[Sequence[Pair]], seed: int = 3, first_rules: bool = False):
        self.documents, self.random, self.first_rules = documents, random.Random(seed), first_rules
        short = [
            (document, index, verbs_of(source), stems_of(target))
            for document in documents
            for index, (source, target) in enumerate(document)
            if len(source.split()) <= SHORT
        ]
        self.stems = translations(short)
        self.places = defaultdict(list)  # by verb and stem, sentences that have both
        for document, index, verbs, stems in short:
            for verb in verbs:
                for stem in self.stems.get(verb, set()) & stems:
                    self.places[verb, stem].append((document, index))

    def windows(self) -> Iterator[list[Pair]]:
        """Items with their own context, several times, then items with context of other documents."""
        far = []
        for document in self.documents:
            for index, (source, target) in enumerate(document):
                found = without_verb_phrase(source.strip(), FIRST_RULES if self.first_rules else RULES)
                if found is None or len(target.split()) > TARGET_WORDS:
                    continue
                shortened, verb, lost = found
                stems = self.stems.get(verb, set()) & stems_of(target if self.first_rules else without_nouns(target))
                before = list(document[max(0, index - 3) : index])
                has_verb = any(verb in verbs_of(english) and stems & stems_of(german) for english, german in before)
                if has_verb and self.is_implied((shortened, target), lost, stems, before):
                    yield from [[*before, (shortened, target)]] * COPIES
                elif stems and not has_verb and self.is_implied((shortened, target), lost, stems, []):
                    far.append((document, verb, sorted(stems), (shortened, target)))
        for document, verb, stems, pair in far:
            places = [place for stem in stems for place in self.places[verb, stem] if place[0] is not document]
            for other, index in self.random.sample(places, min(OTHERS, len(places))):
                before = list(other[max(0, index - self.random.choice((0, 1, 2))) : index + 1])
                if self.random.random() < 0.2 and len(before) < 3:
                    before += other[index + 1 : index + 2]
                yield [*before, pair]

    def is_implied(self, pair: Pair, lost: str, stems: set[str], before: list[Pair]) -> bool:
        """Whether the sentences before have what is lost except the verb, and the sides are negated alike."""
        words = set(lost.lower().split())
        if self.first_rules:
            return bool(before) or words <= set(LIGHT)
        read = (re.findall(r"[\w'’]+", english.lower()) for english, _ in before)
        others = stems_of(pair[1]).difference(stems, *(stems_of(german) for _, german in before))
        others -= set(map(german_stem, GERMAN_MODALS))
        is_alike = bool(NEGATED.search(pair[0])) == bool(NEGATED.search(pair[1]))
        shown = len(pair[0].split()) - 2  # except subject and auxiliary
        is_known = words <= set(LIGHT).difference(CONTENT).union(*read) and len(others) <= shown
        return is_known and is_alike and len(pair[1].split()) > 1


def translations(short: Sequence[tuple]) -> dict[str, set[str]]:
    """German stems that often occur with an English verb, and rarely without it."""
    verbs = Counter(verb for _, _, verbs, _ in short for verb in verbs)
    stems = Counter(stem for *_, stems in short for stem in stems)
    pairs = Counter((verb, stem) for _, _, verbs, stems in short for verb in verbs for stem in stems)
    found = defaultdict(set)
    for (verb, stem), count in pairs.items():
        if count >= 4 and count > 0.06 * verbs[verb] and count > 0.12 * stems[stem]:
            found[verb].add(stem)
    return {verb: stems.difference(NO_VERBS) for verb, stems in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("documents")
    parser.add_argument("output")
    parser.add_argument("--first-rules", action="store_true", help="the rules that made the data of the study")
    arguments = parser.parse_args()
    rows = read_documents(path=arguments.documents, source_lang="en", target_lang="de")
    documents = [[(pair["en"], pair["de"]) for pair in row["translation"]] for row in rows]
    windows = list(ElidedVerbs(documents, first_rules=arguments.first_rules).windows())
    pairs = ([{"en": source, "de": target} for source, target in window] for window in windows)
    write_documents(
        ({"doc_id": f"elided-{i}", "translation": found} for i, found in enumerate(pairs)), arguments.output
    )
    print(f"{len(windows)} windows of {len({window[-1] for window in windows})} different pairs")


if __name__ == "__main__":
    main()
