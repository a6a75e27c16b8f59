"""Documents in which "it" and "they" agree with a noun before them, from English to Portuguese, by a sentence model.

python examples/agreement_corpus.py runs/real/sentence data/agreement --shortlist lex.50.50.enpt.s2t.bin

The model translates everything itself, so a student keeps its wording. "The apple was stolen." gives the feminine
form of "It was stolen.": "A maçã foi roubada." without its noun phrase. Pronouns of objects change their ending.
Running text is the reference of the Python language, which every Python has. Nouns, first sentences and predicates
differ from those in `agreement_pairs.py`.
"""

import argparse
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from pydoc_data.topics import topics

import hf_docmt
from hf_docmt.data.documents import make_row, write_documents

Pair = tuple[str, str]  # a sentence and its translation

NOUNS = (
    "accordion airport alarm album antenna apartment apple apron archive armchair arrow article avenue axe backpack "
    "bakery balcony banana banner barrel bathtub battery beach beard blanket blouse bomb bone brake branch brick "
    "broom brush bucket bus button cabin cable cake calculator calendar candle cannon canvas cape card castle "
    "cathedral cave ceiling cell chain chapel chapter check cheese chimney church cinema city clause closet cloud "
    "collar column comb contract corridor cottage cradle crane crown cube dam dance database device diagram diary "
    "dictionary document doll dream drawer drawing drill dryer elevator envelope essay exam factory feather ferry "
    "field file film finger fireplace floor flower flute folder forest fountain fridge function furnace garage glove "
    "grave hall harbor harp headline helicopter highway hole hospital hotel idea invitation island jar jewel joke "
    "keyboard kite laboratory lake lantern laptop lawn leaf lemon library license list lock magazine market mask meal "
    "medal melody message microphone microscope mill mine mission module monastery monument motor mountain museum "
    "nail napkin necklace nest net network newspaper novel oar office onion opera orange orchard order package page "
    "palace parachute park parcel passport password path pear pencil photograph pie pillar pipe pizza plan planet "
    "plant platform pocket poem pool portrait postcard pot prison program project proposal pump purse puzzle question "
    "racket radio railway razor recipe refrigerator report restaurant ribbon rifle river rock roof room ruler saddle "
    "sail salad satellite saw scarf scene screen screw script sculpture seat sentence server shawl shed sheet shelf "
    "shield ship shoe sketch sleeve snake sock soup speech square staircase stamp star stone storm story stove "
    "strategy street suit sword tablet tank task tax telephone telescope television temple text theater theory thread "
    "throne ticket tie tomb tool tooth town trap tray treasure tree trophy trumpet tunnel turbine vaccine valley van "
    "vehicle verb veil vessel village volcano wagon wardrobe warehouse weapon website wing wire workshop yacht zipper"
).split()
VOTERS = "apartment apple pencil candle museum battery telephone kite tree ferry backpack sculpture".split()
FIRST = """I saw {} yesterday.|My sister sold {}.|Where is {}?|{} is here.|There is a problem with {}.|Have you seen {}?
He showed me {}.|{} belongs to my uncle.|Peter and Anna brought {} from Spain.|My parents gave us {} last summer.
Do you remember {}?|Let us have a look at {}.|We have to talk to Mr Silva about {}.
The new owner does not want to keep {}.|Nobody knows who left {} in the basement.|Can you describe {} to the police?
She was standing in front of {}.|{} was the first thing that he noticed.|In the evening, he finally came back with {}.
Thank you for {}.|You will need {}.|I cannot work without {}.|The teacher took a picture of {}.|I dreamed of {}.
Before we leave, I want to say something about {}.|According to the article, {} costs two hundred euros.
The king, who was very old, had heard of {}.|When I was a child, {} was my favorite thing.|First we clean {}.
Then choose {}.|The manual describes {}.|My neighbor is looking for {}.|{} caught fire last night.|Leave {} alone!
He walked slowly towards {}.|Everyone in the village admired {}.|He never used {}.|Does your father still have {}?
My brother, a student, needs {} for a year.|She drew {} on a piece of paper.|Nobody had ever heard of {} before.
The news about {} surprised us all.|You can see {} from here.|{} changed my life.
In the middle of the night they heard a noise behind {}.|Good morning, Mrs Costa, {} has arrived."""
PREDICATES = """{} was stolen yesterday.|{} is too small for us.|{} has been repaired twice.|{} was painted white.
{} was made in Italy.|I think {} was stolen.|{} seems damaged.|{} was covered with snow.|{} is almost empty.
Unfortunately, {} is closed today.|{} is not ready yet.|I heard that {} was sold.|{} is old.|{} is very old.
{} is yellow.|{} is black and white.|{} is beautiful.|{} was very beautiful.|{} is full.|{} was completely destroyed.
{} was lost in the war.|{} was found by the police.|{} is known all over the world.|{} was discovered in 1920.
{} must be replaced.|{} should be cleaned every week.|{} can be bought everywhere.|{} will be finished next week.
Perhaps {} was forgotten.|Of course {} is safe.|{} was hidden.|{} was well hidden.
He said that {} was perfect.|{} is quite modern.|{} became famous.|{} is famous.|{} was wet.|{} was divided in two.
{} was divided into two parts.|{} is made of wood.|{} was used for many years.|{} was too heavy.|{} was saved.
{} is cheap.|{} was not very cheap.|{} is already sold.|{} is well protected.|{} was bought by a museum.|{} is strange.
As soon as {} was opened, everybody came.|{} was built in the last century.|{} is mine.|{} is not mine.|{} is low.
{} is high.|Is {} clean?|Was {} removed?|Why was {} removed?|{} is slow.|{} is fast.|{} is cold.|{} was quite cold.
{} was created by two students.|{} is needed every day.|{} is loaded when the program starts.|{} is marked in red.
If {} is lost, call me.|{} was cut.|{} was created automatically.|{} is defined below.|{} has been tested.|{} is round.
{} is stuck.|{} was blocked.|{} was decorated with flowers.|{} was dry.|{} was brought here by ship.|{} is not complete.
When {} was new, my father was proud.|{} was praised by the critics.|{} was left behind.|{} was hated by everybody.
{} was sent to Brazil.|{} was returned.|I was told that {} was free.|{} is free.|{} is open.|{} was open all night.
{} is now switched off.|{} is turned on.|{} was designed by an architect.|{} will be published in May.|{} is missing.
{} was rejected.|{} was accepted at once.|Has {} been accepted?|{} is being prepared.|{} is well known.|{} is white.
{} is red.|{} was red and yellow.|{} was thrown away.|{} was burned in the fire.|{} is rare.|{} was prohibited.
Two years later {} was abandoned.|Today {} is visited by thousands of people.|{} is described in the book.|{} is ugly.
{} was carefully packed.|{} is connected.|{} is not protected.|{} is quiet.|{} was paid in cash.|{} is thin.
{} was stored in the cellar.|{} was written by a friend.|{} is occupied.|Soon {} was full of water.|{} is deep.
{} was signed by the minister.|{} was ruined by the rain.|{} looks ready.|{} looks tired and old.|{} is crazy."""
OBJECTS = """We bought {} last year.|I can't find {}.|I want to see {}.|Nobody wanted to buy {}.|Put {} on the floor.
You have to take {} with you.|I looked at {}.|I have not read about {}.|Anna sat down next to {}.|I am afraid of {}.
The children were playing with {}.|There is a spider on {}.|Let me show you what is in {}.|We cannot go without {}.
What do you think of {}?|Who lost {}?|I want to keep {}.|We have to repair {}.|I forgot {}.|We painted {}.
Anna knows {} very well.|Did you see {}?|Nobody remembers {}.|Someone took {}.|Do you still need {}?|I live near {}.
We are proud of {}.|I will never forget {}.|My uncle found {} in Brazil.|Can you describe {}?|I saw {} yesterday.
I have always wanted to have {}.|My sister sold {} yesterday.|We can share {}.|You must return {}.|I will fix {}."""
OTHERS = """It is late.|It was already dark.|It is cold today.|It is difficult to say.|It was a long day.|Look!
It is important to leave early.|It was clear that nobody would come.|It is true.|It is nice to see you.|I am sure.
He was very tired.|I was surprised.|She was angry.|We were late.|My brother is happy.|My mother was worried.
They were all very happy.|Nobody was hurt.|Everything is ready.|Nothing has changed.|That is all.|Thank you very much.
I am not sure.|You are right.|He did not answer.|She smiled.|We do not know why.|What happened?|Are you ready?
Anna was alone.|The man was old.|Both were invited.|It does not matter.|It takes time.|It depends.|Who cares?
They were friends.|They were invited to the party.|He is a teacher.|She is a teacher.|Two weeks passed.|He was alone."""
WORDS = r"[\w-]+|[^\w\s]"
PRONOUNS = {"o": "ele", "a": "ela", "os": "eles", "as": "elas"}  # by the article of the noun
OBJECT_FORMS = r"\b([dn]?)el[ea](s?)\b"
BEFORE = "Eu|Nós|Você|Quem|Alguém|Ninguém|que|[Nn]ão|nunca|sempre|Anna|tio|irmã"  # a pronoun of an object
CLITICS = rf"(-[ln]?|\b(?:{BEFORE}) )[oa](s?)\b"
VERBS = {
    "is": "are",
    "was": "were",
    "has": "have",
    "seems": "seem",
    "looks": "look",
    "belongs": "belong",
    "costs": "cost",
}
LIMIT = 4  # sentences of a document


def lines(text: str) -> list[str]:
    return text.replace("\n", "|").split("|")


def plural(noun: str) -> str:
    """The plural of a regular noun."""
    for ending, new in (("fe", "ves"), ("f", "ves"), ("y", "ies")):
        if noun.endswith(ending) and noun[-2] not in "aeou":
            return noun.removesuffix(ending) + new
    return noun + ("es" if noun.endswith(("s", "x", "ch", "sh")) else "s")


def sentence(frame: str, phrase: str, many: bool) -> str:
    """A frame with a noun phrase or pronoun in its gap, and the verb next to the gap in its number."""
    if many:
        frame = re.sub(r"\{\} (\w+)", lambda found: "{} " + VERBS.get(found[1], found[1]), frame)
        frame = re.sub(r"\b(is|was|has) \{\}", lambda found: VERBS[found[1]] + " {}", frame)
        frame = re.sub(r"^(Is|Was|Has) \{\}", lambda found: VERBS[found[1].lower()].title() + " {}", frame)
    text = frame.format(phrase)
    return text[0].upper() + text[1:]


def differ_by_gender(one: str, other: str) -> bool:
    """Whether two Portuguese words are the same except for a last o or a, in either number."""
    return re.sub("[oa](s?)$", r"_\1", one.lower()) == re.sub("[oa](s?)$", r"_\1", other.lower())


def without_noun(alone: str, named: str) -> tuple[str, str, str] | None:
    """Translation of a sentence with a pronoun, with the gender in `named`, which has a noun there; article, noun.

    `alone` has a pronoun, or none, where `named` has article and noun; None where more than gender differs.

    >>> without_noun("Foi roubado ontem.", "A maçã foi roubada ontem.")
    ('Foi roubada ontem.', 'a', 'maçã')
    """
    short, long = re.findall(WORDS, alone), re.findall(WORDS, named)
    at = next((index for index, word in enumerate(short) if word.lower() in PRONOUNS.values()), None)
    rest = short if at is None else short[:at] + short[at + 1 :]
    size = len(long) - len(rest)
    if not 2 <= size <= 6:  # of a noun phrase
        return None
    for start in range(len(rest) + 1) if at is None else [at]:
        kept, article = long[:start] + long[start + size :], long[start].lower()
        if article in PRONOUNS and all(map(differ_by_gender, kept, rest)):
            if at is not None:
                kept.insert(at, PRONOUNS[article])
            new = (word.capitalize() if old[0].isupper() else word.lower() for word, old in zip(kept, short))
            return re.sub(WORDS, lambda _, new=new: next(new), alone), article, long[start + 1].lower()
    return None


def object_pronoun(translation: str, gender: str) -> str | None:
    """The translation with its pronouns of an object in this gender, o or a; None where it has none.

    >>> object_pronoun("Nós o compramos.", "a"), object_pronoun("Penso nelas.", "o")
    ('Nós a compramos.', 'Penso neles.')
    """
    new = re.sub(OBJECT_FORMS, rf"\1el{'e' if gender == 'o' else 'a'}\2", translation)
    new = re.sub(CLITICS, rf"\1{gender}\2", new)
    return new if re.search(OBJECT_FORMS, translation) or re.search(CLITICS, translation) else None


def running_text() -> Iterator[list[str]]:
    """Sentences of each paragraph of the language reference, without tables and code."""
    for paragraph in "\n\n".join(topics.values()).split("\n\n"):
        if not paragraph.startswith((" ", "*", "=", "|", "+")) and not re.search("::=|>>>", paragraph):
            text = re.sub(r"\[\d+\]", "", " ".join(paragraph.split()))
            sentences = re.split(r"(?<=[a-z)][.!?]) (?=[A-Z])", text)
            yield [each for each in sentences if 15 < len(each) < 220 and not re.search(r"[*=`\\|<>_]", each)]


class Corpus:
    """Documents by the translations of a sentence-level model."""

    def __init__(self, model: str, shortlist: str | None, seed: int = 1):
        options = {} if shortlist is None else {"shortlist": shortlist}
        self.teacher = hf_docmt.load_system(model, dtype="int8", num_beams=4, batch_size=64, **options)
        self.random = random.Random(seed)
        self.known: dict[str, str] = {}

    def translate(self, sentences: Sequence[str]) -> list[Pair]:
        new = sorted(set(sentences) - self.known.keys(), key=len)
        self.known.update(zip(new, (each for (each,) in self.teacher.translate([[each] for each in new]))))
        return [(each, self.known[each]) for each in sentences]

    def predicates(self, many: bool) -> dict[str, dict[str, str]]:
        """Sentences with "it" or "they" -> article -> translation that agrees, of those with a form for each gender."""
        forms = {}
        for frame in lines(PREDICATES):
            nouns = [sentence(frame, f"the {plural(noun) if many else noun}", many) for noun in VOTERS]
            (alone, translation), *named = self.translate([sentence(frame, "they" if many else "it", many), *nouns])
            found = [each for _, other in named if (each := without_noun(translation, other))]
            votes = Counter((article, form) for form, article, _ in found)
            best = {article: form for (article, form), count in reversed(votes.most_common()) if count > 1}
            if len(best) == 2:
                forms[alone] = best
        return forms

    def agreement(self, many: bool, copies: int) -> Iterator[list[Pair]]:
        """Documents of a sentence with a noun and sentences with pronouns, some with an unrelated sentence."""
        forms, it = self.predicates(many), "they" if many else "it"
        probe = lines(PREDICATES)[0]
        ((_, alone),) = self.translate([sentence(probe, it, many)])
        others = self.translate(lines(OTHERS))
        objects = self.translate([sentence(frame, "them" if many else "it", many) for frame in lines(OBJECTS)])
        phrases = [f"the {plural(noun) if many else noun}" for noun in NOUNS]
        frames = {phrase: self.random.sample(lines(FIRST), copies) for phrase in phrases}
        self.translate([sentence(frame, phrase, many) for phrase in phrases for frame in [probe, *frames[phrase]]])
        for phrase in phrases:
            found = without_noun(alone, self.known[sentence(probe, phrase, many)])
            for first in [sentence(each, phrase, many) for each in frames[phrase]]:
                translation = self.known[first]
                if found is None or found[2] not in re.findall(WORDS, translation.lower()):
                    continue  # another noun, whose gender may be another one
                article = found[1]
                fitting = [form for form in forms if article in forms[form]]
                chosen = self.random.sample(fitting, min(len(fitting), 2))
                pairs = [(each, forms[each][article]) for each in chosen]
                english, object_sentence = self.random.choice(objects)
                if changed := object_pronoun(object_sentence, article[0]):
                    pairs.insert(self.random.randint(0, 2), (english, changed))
                document = [(first, translation)]
                for pair in pairs:
                    document += [self.random.choice(others)] * (self.random.random() < 0.25) + [pair]
                yield [self.random.choice(others)] * (self.random.random() < 0.15) + document[:LIMIT]

    def alone(self, copies: int) -> Iterator[list[Pair]]:
        """The sentences with pronouns as the model translates them without context."""
        for many in (False, True):
            for pair in self.translate(list(self.predicates(many))):
                yield from [[pair]] * copies

    def running(self, copies: int) -> Iterator[list[Pair]]:
        """Segments of running text, without later sentences in which the model may have guessed a gender."""
        guessed = r"(?i)\b([dn]?el[ea]s?|\w+[ai]d[oa]s?)\b|-[ln]?[oa]s?\b"
        paragraphs = list(running_text())
        self.translate([each for paragraph in paragraphs for each in paragraph])
        for paragraph in paragraphs * copies:
            pairs = self.translate(paragraph)
            while pairs:
                size = self.random.randint(1, LIMIT)
                ends = [
                    index
                    for index, (english, translation) in enumerate(pairs[1:size], 1)
                    if re.search(r"(?i)\b(it|they|them)\b", english) and re.search(guessed, translation)
                ]
                size = ends[0] if ends else size
                yield pairs[:size]
                pairs = pairs[size + bool(ends) :]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="sentence-level model, English to Portuguese")
    parser.add_argument("output", type=Path, help="folder for train.jsonl and validation.jsonl")
    parser.add_argument("--shortlist", help="Marian's, for speed")
    parser.add_argument(
        "--copies", type=int, default=12, help="first sentences of each noun; a third of it in the plural"
    )
    arguments = parser.parse_args()
    corpus = Corpus(arguments.model, arguments.shortlist)
    documents = [*corpus.agreement(False, arguments.copies), *corpus.agreement(True, max(arguments.copies // 3, 1))]
    documents += [*corpus.alone(4), *corpus.running(4)]
    corpus.random.shuffle(documents)
    arguments.output.mkdir(parents=True, exist_ok=True)
    for name, part in (("validation", documents[:100]), ("train", documents[100:])):
        rows = (make_row("agreement", f"{name}-{index}", *zip(*each), ("en", "pt")) for index, each in enumerate(part))
        write_documents(rows, arguments.output / f"{name}.jsonl")


if __name__ == "__main__":
    main()
