"""Random Sieve scripts, and random mail about the same few people and words."""

from email.message import EmailMessage
from random import Random

LOCALS = ("ada", "bob", "ada.l", "Newsletter")
DOMAINS = ("x.example", "shop.example", "mail.shop.example")
WORDS = ("invoice", "Sale", "hello", "past due", "50% off", "[list]", "Straße", "Über", "a*b", "KÄSE")
NAMES = ("", "Ada Lovelace", "ada@shop.example via list", "Böhm", "sale")
HEADERS = ("X-Spam", "List-Id", "Precedence")
FOLDERS = ("Shop", "INBOX.Club", "Work", "Archive", "Trash", "INBOX")
KEYS = (*WORDS, "", "in", "o", "STRASSE", "über", "käse", "yes", "SALE")
GLOBS = ("*", "inv*", "*sale*", "?ello", "*\\*b", "*[list]*", "", "*a?*", "h*o*", "*\\\\*")


def random_address(rng: Random) -> str:
    return f"{rng.choice(LOCALS)}@{rng.choice(DOMAINS)}"


def random_message(rng: Random) -> EmailMessage:
    message = EmailMessage()
    if rng.random() < 0.95:
        message["From"] = _mailbox(rng)
    for name, chance in (("To", 0.9), ("Cc", 0.4), ("Sender", 0.2), ("Reply-To", 0.2)):
        if rng.random() < chance:
            message[name] = ", ".join(_mailbox(rng) for _ in range(rng.randint(1, 2 if name in ("To", "Cc") else 1)))
    if rng.random() < 0.9:
        message["Subject"] = " ".join(rng.choice(WORDS) for _ in range(rng.randint(0, 3)))
    for name in HEADERS:
        if rng.random() < 0.3:
            message[name] = rng.choice(("yes", "", "bulk", "<news.shop.example>"))
    message.set_content("hello " * rng.choice((1, 300, 3_000)))
    return message


def _mailbox(rng: Random) -> str:
    name, address = rng.choice(NAMES), random_address(rng)
    return f'"{name}" <{address}>' if name else address


def random_script(rng: Random) -> str:
    head = 'require ["fileinto", "copy", "imap4flags"];\n'
    count = rng.choice((1, 2, 2, 3, 3, 4))
    style = rng.choice(("stopping", "adding", "any"))
    return head + "\n".join(_command(rng, 0, style) for _ in range(count))


def _command(rng: Random, depth: int, style: str) -> str:
    if depth == 0 or (depth < 3 and rng.random() < 0.25):
        found = [f"if {random_test(rng)} {_block(rng, depth + 1, style)}"]
        for _ in range(rng.choice((0, 0, 0, 1, 2))):
            found.append(f"elsif {random_test(rng)} {_block(rng, depth + 1, style)}")
        if rng.random() < 0.25:
            found.append(f"else {_block(rng, depth + 1, style)}")
        return "\n".join(found)
    return _action(rng, style)


def _block(rng: Random, depth: int, style: str) -> str:
    commands = [_command(rng, depth, style) for _ in range(rng.choice((0, 1, 1, 1, 2)))]
    if style == "stopping" or (style == "any" and rng.random() < 0.4):
        commands.append("stop;")
    return "{ " + " ".join(commands) + " }"


def _action(rng: Random, style: str) -> str:
    copy = rng.choice(("", "", ":copy "))
    filed = f"fileinto {copy}{quoted(rng.choice(FOLDERS[:3] if style == 'adding' else FOLDERS))};"
    sent = f"redirect {copy}{quoted(rng.choice(('boss@work.example', 'home@y.example')))};"
    if style == "adding":
        return rng.choice((filed, filed, filed, sent, "discard;"))
    flagged = f"{rng.choice(('addflag', 'addflag', 'setflag', 'removeflag'))} {rng.choice(FLAGS)};"
    return rng.choice((filed, filed, filed, sent, "keep;", "discard;", flagged, flagged, "stop;"))


FLAGS = (r'"\\Seen"', r'"\\Flagged"', r'["\\Seen", "\\flagged"]')


def random_test(rng: Random, depth: int = 0) -> str:
    kind = rng.choice(("header", "header", "address", "address", "exists", "size", "allof", "anyof", "not", "constant"))
    match kind:
        case "allof" | "anyof" if depth < 2:
            inner = ", ".join(random_test(rng, depth + 1) for _ in range(rng.randint(1, 3)))
            return f"{kind} ({inner})"
        case "not" if depth < 2:
            return f"not {random_test(rng, depth + 1)}"
        case "exists":
            return f"exists {_list(rng, (*HEADERS, 'Subject', 'cc'))}"
        case "size":
            return f"size {rng.choice((':over', ':under'))} {rng.choice(('0', '300', '1K', '3K', '1M'))}"
        case "constant" if rng.random() < 0.3:
            return rng.choice(("true", "false"))
        case "address":
            return _address_test(rng)
        case _:
            return _header_test(rng)


def _header_test(rng: Random) -> str:
    match = rng.choice((":is", ":contains", ":contains", ":matches", ""))
    comparator = rng.choice(("", "", "", ':comparator "i;octet" ', ':comparator "i;ascii-casemap" '))
    keys = GLOBS if match == ":matches" else KEYS
    return f"header {comparator}{match} {_list(rng, ('subject', 'X-Spam', 'From', 'List-Id'))} {_list(rng, keys)}"


def _address_test(rng: Random) -> str:
    match = rng.choice((":is", ":contains", ":matches", ""))
    part = rng.choice((":all", ":localpart", ":domain", ""))
    keys = {
        ":contains": ("ada", "shop", "@", "", "news", "a@s", "EXAMPLE"),
        ":matches": ("*@shop.example", "a*", "*.example", "?da*", "*", "", "*@*.shop.example", "NEWS*"),
    }.get(match, ("ada", "Newsletter@shop.example", "shop.example", "ADA@x.example", "", "sale", "bob@x.example"))
    return f"address {match} {part} {_list(rng, ('from', 'To', 'cc', 'sender', 'Reply-To'))} {_list(rng, keys)}"


def _list(rng: Random, choices: tuple[str, ...]) -> str:
    count = rng.choice((1, 1, 1, 2))
    found = [quoted(rng.choice(choices)) for _ in range(count)]
    return found[0] if count == 1 else f"[{', '.join(found)}]"


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
