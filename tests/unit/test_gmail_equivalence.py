"""Imported Gmail filters decide as the filters themselves do, run by an independent interpreter."""

from random import Random

from postroom.core.rules.gmail import read_gmail_filters
from support.foreign_rules.gmail import ME, apply_filters
from support.foreign_rules.gmail_filters import as_file, random_filters, random_mail
from support.foreign_rules.mailbox import State, decided, facts_of, rulebook_of
from support.scale import scale

SEED = 20261117
MESSAGES = 10
FILES = scale(200, 2_000)


def test_imported_filters_decide_as_gmail_does() -> None:
    print(f"seed {SEED}")
    rng = Random(SEED)
    mail = [(message, facts_of(message, frozenset({ME}))) for message in (random_mail(rng) for _ in range(200))]
    whole = pairs = acted = 0
    for number in range(FILES):
        filters = random_filters(rng)
        imported = read_gmail_filters(as_file(filters))
        rules = rulebook_of(imported.drafts)
        whole += not imported.left_out
        for message, facts in rng.sample(mail, MESSAGES):
            ours, theirs = decided(rules, facts), apply_filters(filters, message)
            where = f"file {number}: {filters}\n{imported.drafts}\n{imported.left_out}\n{message.as_string()[:800]}"
            pairs += 1
            acted += ours != State()
            if not imported.left_out:
                assert ours == theirs, where
            else:
                assert ours.is_part_of(theirs), where
    print(f"{pairs:,} pairs, {acted:,} with an action; {whole:,} of {FILES:,} files came over whole")
    assert pairs >= scale(2_000, 20_000)
    assert whole >= FILES // 2
    assert acted >= pairs // 20
