"""What the names and words of a table usually mean; only ever a guess to be confirmed."""

from __future__ import annotations

import re


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


SENSITIVE = _words(
    "age ages sex gender race ethnicity ethnic religion religious nationality national citizen "
    "citizenship foreign foreigner immigrant migrant disability disabled marital marriage married "
    "single divorced widowed pregnant pregnancy birth birthday birthdate dob orientation colour "
    "color caste veteran language"
)
"""Groups that law or decency protects; kept for audits, not read by the score."""

IDENTIFIER = _words("id ids uid uuid guid key number nr no index idx code ref reference")
ENTITY = _words(
    "company firm person people customer client patient user applicant account member household "
    "student employee borrower entity subject borough country store shop machine device"
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
"""Words in the name of an outcome whose 1 (yes, true) is the bad news."""

YES = _words("yes y true t")
GOOD = _words(
    "1 yes y true t good accepted accept approved approve granted repaid paid pass passed ok hired "
    "admitted won success successful benign healthy notspam ham"
)
BAD = _words(
    "0 -1 no n false f bad refused refuse rejected denied declined unpaid fail failed fired lost "
    "failure malignant sick spam none never"
)

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
"""Words in an order nobody disputes, lowest first."""


def name_words(name: str) -> frozenset[str]:
    """Return the words of a column's name, in lower case.

    >>> sorted(name_words("HasDefaultedLast_year2"))
    ['defaulted', 'has', 'last', 'year']
    """
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return frozenset(word.lower() for word in re.findall(r"[^\W\d_]+", spaced))
