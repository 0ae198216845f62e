"""Imported Sieve scripts decide as the script itself does, run by an independent interpreter."""

from random import Random

from postroom.core.rules.sieve import read_sieve_rules
from support.foreign_rules.mailbox import State, decided, facts_of, rulebook_of
from support.foreign_rules.sieve import Result, run
from support.foreign_rules.sieve_scripts import random_message, random_script
from support.scale import scale

SEED = 20261117
MESSAGES = 10
SCRIPTS = scale(200, 2_000)


def state_of(result: Result) -> State:
    """The state in one mailbox that has labels instead of folders."""
    folders = {name.removeprefix("INBOX.") for name in result.folders}
    copies = [*result.folders.values(), *([] if result.inbox is None else [result.inbox])]
    flags = copies[0] if copies else frozenset[str]()
    assert all(each == flags for each in copies), "an importer must have refused two copies with different flags"
    return State(
        frozenset(folders - {"Archive", "Trash"}),
        result.inbox is not None,
        "Trash" in folders or not (copies or result.redirects),
        "\\seen" in flags,
        "\\flagged" in flags,
        frozenset(result.redirects),
    )


def test_imported_scripts_decide_as_sieve_does() -> None:
    print(f"seed {SEED}")
    rng = Random(SEED)
    mail = [(message, facts_of(message)) for message in (random_message(rng) for _ in range(200))]
    whole = pairs = partly = 0
    for number in range(SCRIPTS):
        script = random_script(rng)
        imported = read_sieve_rules(script)
        rules = rulebook_of(imported.drafts)
        whole += not imported.left_out
        for message, facts in rng.sample(mail, MESSAGES):
            ours = decided(rules, facts)
            where = f"script {number}:\n{script}\n{imported.drafts}\n{message.as_string()[:600]}"
            pairs += 1
            if not imported.left_out:
                assert ours == state_of(run(script, message)), where
            elif ours != State():
                partly += 1
                theirs = run(script, message)
                assert ours.is_part_of(state_of(theirs)), where
    print(f"{pairs:,} pairs; {whole:,} of {SCRIPTS:,} scripts came over whole; {partly:,} decisions of others")
    assert pairs >= scale(2_000, 20_000)
    assert whole >= SCRIPTS // 2
    assert partly > 0
