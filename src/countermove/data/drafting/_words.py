"""What the names and words of a table usually mean, and whether words have an order.

Only ever a guess to be confirmed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

SCALES: tuple[tuple[str, ...], ...] = (
    ("none", "very low", "low", "moderate", "medium", "mid", "middle", "high", "very high"),
    ("none", "tiny", "small", "medium", "large", "huge"),
    ("xs", "s", "m", "l", "xl", "xxl"),
    ("terrible", "very poor", "poor", "fair", "average", "good", "very good", "excellent"),
    ("none", "little", "moderate", "quite rich", "rich"),
    ("never", "rarely", "seldom", "sometimes", "often", "usually", "always"),
    ("never", "yearly", "quarterly", "monthly", "weekly", "daily"),
    ("strongly disagree", "disagree", "neutral", "agree", "strongly agree"),
    ("none", "primary", "secondary", "tertiary"),
    ("none", "primary school", "middle school", "high school", "college", "university"),
    ("school", "high school", "college", "university", "graduate school"),
    ("school", "bachelor", "master", "doctorate"),
    ("high school", "bachelor", "bachelors", "master", "masters", "phd", "doctorate"),
    ("unskilled", "semi-skilled", "skilled", "highly skilled"),
    ("junior", "intermediate", "senior"),
    ("beginner", "intermediate", "advanced", "expert"),
    ("bronze", "silver", "gold", "platinum"),
    ("first", "second", "third", "fourth", "fifth"),
    ("cold", "cool", "mild", "warm", "hot"),
)
"""Words with a natural order, lowest first."""

# A number that hangs on a letter, as in A11, is part of a code and orders nothing.
_NUMBER = re.compile(r"(?<![^\W_])\d+(?:[.,]\d+)*")
_BELOW = re.compile(r"^\s*(?:<=?|≤|under|below|less than|fewer than|up to|at most|max)", re.I)
_ABOVE = re.compile(
    r"(?:\+|or more|or over|or above|and over|and above|and up|plus)\s*$"
    r"|^\s*(?:>=?|≥|over|above|more than|at least|from|min)",
    re.I,
)
_NOTHING = frozenset(("none", "no", "nothing", "never", "unemployed"))
_FILLING = (
    "under below less fewer than up to at most max or more over above and plus least from min "
    "between bis"
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


SENSITIVE = _words(
    "age ages sex gender race ethnicity ethnic religion religious nationality national citizen "
    "citizenship foreign foreigner immigrant migrant disability disabled marital marriage married "
    "single divorced widowed pregnant pregnancy birth birthday birthdate dob orientation colour "
    "color caste veteran language "
    # Groups themselves, as names of 0/1 columns.
    "white black asian hispanic latino latina male female man woman muslim christian jewish hindu "
    # German, French, Spanish, Portuguese, Italian, Dutch, Polish.
    "alter geschlecht rasse ethnie religion konfession nationalität nationalitaet behinderung "
    "staatsangehörigkeit staatsangehoerigkeit familienstand ledig verheiratet geschieden "
    "verwitwet schwanger geburtsdatum geburtsjahr mann frau männlich weiblich herkunft "
    "âge sexe ethnie nationalité nationalite handicap matrimonial célibataire marié divorcé "
    "enceinte naissance homme femme "
    "edad sexo género genero raza etnia religión nacionalidad discapacidad soltero casado "
    "divorciado embarazada nacimiento hombre mujer "
    "idade gênero raça raca religião nacionalidade deficiência "
    "età sesso genere razza religione nazionalità nazionalita cittadinanza disabilità sposato "
    "leeftijd geslacht ras geloof nationaliteit handicap "
    "wiek płeć plec narodowość wyznanie"
)
"""Protected groups; kept for audits, not read by the score."""

BIRTH = _words("birth birthday birthdate dob born geburtsdatum geburt naissance nacimiento")
MOMENT = _words(
    "applied application apply requested request submitted submission decision decided received "
    "extract extracted snapshot antrag antragsdatum demande solicitud"
)
"""In the name of a date that says when a row was true."""

IDENTIFIER = _words(
    "id ids uid uuid guid key number nr no index idx code ref reference nummer numero numéro case"
)
ENTITY = _words(
    "company firm person people customer client patient user applicant account member household "
    "student employee borrower entity subject borough country store shop machine device contract "
    "kunde vertrag antragsteller cliente contrat dossier"
)
TIME = _words("time date datetime timestamp day week month quarter year period step round t visit")
LABEL = _words(
    "label target y outcome class result decision approved accepted repaid default defaulted fraud "
    "churn churned response diagnosis survived hired admitted granted paid spam risk status "
    "distress bad good recidivism readmitted"
)
UNFAVOURABLE_NAME = _words(
    "default defaulted fraud churn churned bad risk spam distress arrears late delinquent "
    "recidivism readmitted refused rejected denied dead died failure failed"
)
"""Words in the name of an outcome whose 1 (yes, true) is unfavourable."""

YES = _words("yes y true t")
YES_WORDS = _words("yes y true t 1 ja j oui o si sí s sim tak")
NO_WORDS = _words("no n false f 0 nein non não nao nie")
"""One answer in several spellings and languages; two of them are one outcome."""

CURRENCIES = {
    spelling: code
    for code, spellings in {
        "usd": "$ usd us$ dollar dollars", "eur": "€ eur euro euros", "gbp": "£ gbp pound pounds",
        "chf": "chf fr. sfr. franken", "jpy": "¥ jpy yen", "cny": "cny rmb", "inr": "₹ inr rs. rs",
        "brl": "r$ brl", "krw": "₩ krw", "rub": "₽ rub", "try": "₺ try", "ils": "₪ ils",
        "pln": "zł pln", "czk": "kč czk", "huf": "ft huf", "sek": "sek", "nok": "nok",
        "dkk": "dkk", "kr": "kr kr.", "aud": "a$ aud", "cad": "c$ cad", "nzd": "nz$ nzd",
        "mxn": "mxn", "zar": "zar", "sgd": "s$ sgd", "hkd": "hk$ hkd", "ron": "ron lei",
        "thb": "฿ thb", "ngn": "₦ ngn", "aed": "aed", "sar": "sar", "idr": "idr rp rp.",
    }.items()
    for spelling in spellings.split()
}  # fmt: skip
"""Signs and codes of money, by the code they mean."""

TIME_UNITS = {
    spelling: days
    for days, spellings in (
        (1 / 24, "h hr hrs hour hours stunde stunden heure heures"),
        (1.0, "d day days tag tage jour jours día días"),
        (7.0, "week weeks wk wks woche wochen semaine semaines"),
        (365.25 / 12, "mo mon mos month months monat monate mois mes meses"),
        (365.25, "y yr yrs year years jahr jahre an ans année années año años"),
    )
    for spelling in spellings.split()
}
"""Units of time, in days."""

GOOD = _words(
    "1 yes y true t good accepted accept approved approve granted repaid paid pass passed ok hired "
    "admitted won success successful benign healthy notspam ham"
)
BAD = _words(
    "0 -1 no n false f bad refused refuse rejected denied declined unpaid fail failed fired lost "
    "failure malignant sick spam none never"
)


def name_words(name: str) -> frozenset[str]:
    """Return the words of a column's name, in lower case."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return frozenset(word.lower() for word in re.findall(r"[^\W\d_]+", spaced))


def ordered_words(words: Sequence[str]) -> tuple[str, ...] | None:
    """Return the words in their order, lowest first, or None when they show none."""
    return _on_a_scale(words) or _around_numbers(words)


def _on_a_scale(words: Sequence[str]) -> tuple[str, ...] | None:
    spelled = {word: " ".join(re.split(r"[\s_-]+", word.lower())) for word in words}
    for scale in SCALES:
        places = {re.sub(r"[\s_-]+", " ", step): place for place, step in enumerate(scale)}
        if len(words) > 1 and all(text in places for text in spelled.values()):
            ranked = sorted(words, key=lambda word: places[spelled[word]])
            # "Low" and "low" share a place: then the order is not complete.
            if len({places[spelled[word]] for word in words}) == len(words):
                return tuple(ranked)
    return None


def _around_numbers(words: Sequence[str]) -> tuple[str, ...] | None:
    keys = {word: _interval(word) for word in words if word.lower() not in _NOTHING}
    intervals = [key for key in keys.values() if key is not None]
    if len(intervals) < len(keys) or len(intervals) < 2 or len(words) - len(keys) > 1:
        return None
    if len({rest for _, rest in intervals}) > 1 or len({key for key, _ in intervals}) < len(keys):
        return None
    lowest = (-1.0, -2)
    order = {word: key[0] for word, key in keys.items() if key is not None}
    return tuple(sorted(words, key=lambda word: order.get(word, lowest)))


def _interval(word: str) -> tuple[tuple[float, int], frozenset[str]] | None:
    """Return where a phrase begins (and on which side of it), and its words beside the numbers."""
    found = _NUMBER.findall(word)
    if not 1 <= len(found) <= 2 or re.search(r"[^\W\d_]\d", word):
        return None
    side = -1 if _BELOW.search(word) else 1 if _ABOVE.search(word) else 0
    rest = re.findall(r"[^\W\d_]+", _NUMBER.sub(" ", word).lower())
    # One year, three years: the plural is the same unit.
    kept = frozenset(text.removesuffix("s") for text in rest if text not in _FILLING.split())
    return (float(re.sub(r"[,.](?=\d{3}\b)|,", "", found[0])), side), kept
