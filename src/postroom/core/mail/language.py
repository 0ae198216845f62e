"""The language of a text, by its letters and its commonest words; `unknown` if they are not enough.

Greek, Hebrew, Arabic, Thai, Korean, Japanese and Chinese are recognized by their scripts. For the others each word of
the beginning counts for the languages in whose list it is; one of them must lead clearly. Short texts, mixed texts,
lists of figures and languages without a list are unknown. The same text always has the same result.
"""

import re
import string
from collections import Counter
from collections.abc import Mapping

UNKNOWN = "unknown"
LONGEST_READ = 2_000
FEWEST_LETTERS = 12
FEWEST_WORDS = 3
# Of the words that were read, the share that must be common words of the language; and how
# often more words must be its own alone than those of another language.
LEAST_SHARE = 0.12
LEAD = 2

_SCRIPTS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("ja", re.compile("[\u3041-\u30ff]")),
    ("ko", re.compile("[\u1100-\u11ff\uac00-\ud7a3]")),
    ("zh", re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")),
    ("el", re.compile("[\u0370-\u03ff\u1f00-\u1fff]")),
    ("he", re.compile("[\u05d0-\u05ea]")),
    ("ar", re.compile("[\u0621-\u064a]")),
    ("th", re.compile("[\u0e01-\u0e4e]")),
)
_LINKS = ("@", "://", "www.")
_AROUND = string.punctuation
_LETTERS = re.compile(r"[^\W\d_]+")

_COMMON: Mapping[str, str] = {
    "en": "the and of to is in that for you it with on your we this are be have not as our if from was will at by or "
    "an can please has all but my they me there what which would their here about when been who how any out",
    "de": "der die das und ist nicht ein eine zu mit sie ich wir auf für den dem von im es des auch sich an wird haben "
    "sind ihre ihr oder bei als aus wie noch nach nur bitte uns einen einer eines zum zur kann wenn dass über hat um",
    "fr": "le la les et des est pas une un vous nous pour dans que qui sur avec ce votre de du en au aux par plus ne "
    "je il elle sont cette être ou mais vos notre si tout bien mes ses merci ont été fait comme son leur même",
    "es": "el la los las y que de en un una por con para es no se su del al lo como más pero sus le ha este esta si "
    "está son usted nos muy también hay ya cuando todo tu mi gracias nuestro nuestra fue sin sobre ser tiene puede",
    "it": "il la le di che è un una per non con del della in si sono i gli lo da al alla nel nella anche come ma ci "
    "questo questa più se ha o dei delle suo sua vostro nostro grazie essere tutti mi ti sul hai abbiamo stato",
    "pt": "o a os as e de que do da em um uma para com não é por no na se dos das mais ao como mas foi sua seu você "
    "ou são está também pelo pela já tem nos muito quando isso obrigado nossa nosso ser este esta às eu até",
    "nl": "de het een en van is niet dat op te in voor met zijn er aan je u ik wij we ook als maar om bij nog naar "
    "uw deze worden wordt hebben heeft kan dit door over uit zij hij onze ons meer wat dan of al graag moet was",
    "sv": "och att det är en som på för av med inte den till i har ett om vi du jag de kan så men från din ditt eller "
    "vill ska alla här vara dig oss också när nu vår mycket hej blir bara finns utan efter sig hade skulle där",
    "da": "og at det er en som på for af med ikke den til i har et om vi du jeg de kan så men fra din dit eller vil "
    "skal alle her være dig os også når nu vores meget hej bliver kun uden efter sig havde hvad nogle blev mere",
    "no": "og at det er en som på for av med ikke den til i har et om vi du jeg de kan så men fra din ditt eller vil "
    "skal alle her være deg oss også når nå vår mye hei blir bare uten etter seg hadde hva noen ble mer",
    "fi": "ja on ei se että hän oli olen mutta kun myös niin ovat joka tai jos nyt kuin sekä vain voit voi ole mitä "
    "tämä sinun meidän teidän kaikki kanssa minun jotka mukaan hyvä kiitos sen ne siitä siis mikä olla saat ennen",
    "pl": "i w nie na się z do że to jest o jak po ale za od są co oraz dla przez czy już tylko tego może jego być "
    "lub ten ta te tym przy które który która pan pani proszę bardzo został można będzie nasz jeśli więc mi",
    "cs": "a je v se na že to s z do o ale jak za by pro jsem jsou k po co tak nebo jako také od při aby být již "
    "které který která jste ve bude vám vás děkuji prosím velmi může podle pokud nás není byl ze si než",
    "hu": "a az és hogy nem is egy van ez meg volt csak de már még ha mint vagy kell el azt lesz minden majd most "
    "nagyon kérjük önnek köszönjük ezt itt után aki ami így való lehet sem pedig ki sok ön által",
    "ro": "și de la în nu o un cu să pe este care din pentru mai ce sunt au ca sau dar fi al ale ai am după vă prin "
    "acest această dacă foarte noastre mulțumim când fost lui cum doar toate poate despre va te le",
    "ru": "и в не на что с я по это он как но вы мы к у за для от из так же бы если или вас ваш все вам есть был "
    "его она они при уже нет только будет мне очень можно до когда чтобы пожалуйста наш спасибо ещё",
    "uk": "і в не на що з я по це він як але ви ми до у за для від із так якщо або вас ваш усі вам є був його вона "
    "вони при вже немає тільки буде мені дуже можна коли щоб будь ласка наш дякуємо та й ще про",
}
_LISTS: Mapping[str, frozenset[str]] = {code: frozenset(words.split()) for code, words in _COMMON.items()}
_LANGUAGES_OF: Mapping[str, tuple[str, ...]] = {
    word: tuple(code for code, words in _LISTS.items() if word in words)
    for word in frozenset[str]().union(*_LISTS.values())
}
LANGUAGES: tuple[str, ...] = tuple(sorted((*_COMMON, *(code for code, _ in _SCRIPTS))))


def language_of(text: str) -> str:
    """The code of the language (ISO 639-1), or `unknown`. Only the beginning of a long text is read."""
    text = _without_links(text[:LONGEST_READ])
    if text.isascii():  # mostly, and much faster
        words = [word for piece in text.lower().split() if (word := piece.strip(_AROUND)).isalpha()]
    else:
        words = _LETTERS.findall(text.lower())
    letters = sum(map(len, words))
    if not letters:
        return UNKNOWN
    return _by_script(text, letters) or _by_words(words, letters)


def _without_links(text: str) -> str:
    """Addresses and links are in no language."""
    if not any(mark in text for mark in _LINKS):
        return text
    return " ".join([piece for piece in text.split() if not any(mark in piece for mark in _LINKS)])


def _by_script(text: str, letters: int) -> str | None:
    """The language of a script that makes up most of the text. A few kana among the Han mean Japanese."""
    if text.isascii():
        return None
    found = {code: len(pattern.findall(text)) for code, pattern in _SCRIPTS}
    if found["ja"] and found["ja"] * 5 >= found["zh"]:
        found["ja"] += found["zh"]
        found["zh"] = 0
    best = max(found, key=lambda code: found[code])
    return best if found[best] >= 2 and found[best] * 2 > letters else None


def _by_words(words: list[str], letters: int) -> str:
    if letters < FEWEST_LETTERS or len(words) < FEWEST_WORDS:
        return UNKNOWN
    common = [word for word in words if word in _LANGUAGES_OF]
    counts = Counter(code for word in common for code in _LANGUAGES_OF[word])
    if not counts:
        return UNKNOWN
    best, most = max(counts.items(), key=lambda counted: counted[1])
    if most < max(2, LEAST_SHARE * len(words)):
        return UNKNOWN
    near = [code for code, count in counts.items() if code != best and count * (LEAD + 1) >= most]
    return best if all(_leads(best, other, common) for other in near) else UNKNOWN


def _leads(best: str, other: str, common: list[str]) -> bool:
    """Whether the words that only one of the two has are clearly for the first."""
    ours, theirs = _LISTS[best], _LISTS[other]
    for_best = sum(word not in theirs for word in common if word in ours)
    for_other = sum(word not in ours for word in common if word in theirs)
    return for_best > LEAD * for_other
