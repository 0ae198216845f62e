"""The category packs on mail of today: what they find in the half that they were not tuned on."""

import pytest

from postroom.core.mail.categories import CATEGORIES, categories_of
from postroom.core.mail.ingestion import IngestionFacts
from postroom.core.mail.mime import parse_message
from postroom.core.mail.tiers import Known
from support.category_figures import figures_of
from support.modern_mail import OWNER, Letter, letters

KNOWN = Known.of([OWNER])
RECALL, PRECISION = 0.85, 0.8


def found(category: str, mail: list[Letter]) -> set[str]:
    facts = ((each.name, IngestionFacts.of(parse_message(each.raw))) for each in mail)
    return {name for name, each in facts if category in categories_of(each, KNOWN)}


@pytest.mark.parametrize("is_held_out", [False, True], ids=["tuned", "held_out"])
@pytest.mark.parametrize("category", CATEGORIES)
def test_a_pack_finds_its_mail_of_today_and_little_else(category: str, is_held_out: bool) -> None:
    mail = [each for each in letters() if each.is_held_out == is_held_out]
    accepted = found(category, mail)
    truth = {each.name: each for each in mail}
    figures = figures_of(category, accepted, truth)
    print(f"\n{category}: {figures}")
    if not is_held_out:
        wrong = [
            f"{each.name} {sorted(each.categories)}"
            for each in mail
            if (each.name in accepted) != (category in each.categories)
        ]
        print(*wrong, sep="\n")
    assert figures.recall >= RECALL
    assert figures.precision >= PRECISION
