"""Messages written for tests of starter rules and previews: what people get, and what is to become of it."""

from typing import NamedTuple

OWNER = "mara@lindqvist.example"
FRIEND = "ida@friends.example"
SENT_ID = "<sent-1@lindqvist.example>"
SENT = (
    f"From: {OWNER}\nTo: jo@works.example\nSubject: Plans\nMessage-ID: {SENT_ID}\nDate: Mon, 2 Nov 2026 08:00:00 +0000"
)


class Written(NamedTuple):
    """A message, and the rule and actions that the starter rules together give it; None if no rule matches."""

    head: str
    rule: str | None = None
    action: str = "none"
    body: str = "Hello.\n"

    @property
    def subject(self) -> str:
        return next(line[9:] for line in self.head.splitlines() if line.startswith("Subject: "))

    def raw(self, number: int = 0) -> bytes:
        given = self.head if "\nTo: " in self.head else f"{self.head}\nTo: {OWNER}"
        dated = f"{given}\nDate: Tue, 3 Nov 2026 08:{number % 60:02}:00 +0000\nMessage-ID: <{number}@written.example>"
        return f"{dated}\nMIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\n\n{self.body}".encode()


BULK = "List-Unsubscribe: <https://x.example/u>"
SECURITY = ("Security alerts", "apply_label Security")
PEOPLE = ("People you know", "apply_label People")
ANSWERS = ("Answers to your mail", "apply_label People")
ANSWERED = ("Calendar answers", "apply_label Calendar, archive")
INVITED = ("Calendar invitations", "apply_label Calendar")
CODE = ("Code notifications", "apply_label Code, archive")
ASKED = ("Code that asks for you", "apply_label Code")
RECEIPT = ("Receipts", "apply_label Receipts, archive")
INVOICE = ("Invoices", "apply_label Receipts")
SHIPPING = ("Shipping", "apply_label Shipping")
TRAVEL = ("Travel", "apply_label Travel")
NEWS = ("Newsletters", "apply_label Newsletters, archive")

MESSAGES = (
    Written("From: no-reply@accounts.example\nSubject: Security alert: new sign-in from Windows", *SECURITY),
    Written(f"From: news@bank.example\n{BULK}\nSubject: Your password was changed", *SECURITY),
    Written(f"From: no-reply@shop.example\n{BULK}\nSubject: 482 913 is your verification code", *SECURITY),
    Written("From: noreply@cloud.example\nSubject: Neue Anmeldung in deinem Konto", *SECURITY),
    Written("From: noreply@cloud.example\nSubject: Réinitialisez votre mot de passe", *SECURITY),
    Written(f"From: {FRIEND}\nSubject: Security alert on my account, help", *SECURITY),
    Written(
        "From: GitHub <notifications@github.com>\nX-GitHub-Reason: security_alert\nSubject: [acme/app] A dependency",
        *SECURITY,
    ),
    Written(f"From: Ida <{FRIEND}>\nSubject: Dinner on Friday?", *PEOPLE),
    Written(f"From: Jo <jo@home.example>\nIn-Reply-To: {SENT_ID}\nSubject: Re: Plans", *ANSWERS),
    Written("From: stranger@elsewhere.example\nSubject: A question about your talk"),
    Written("From: stranger@elsewhere.example\nSubject: Where is your receipt?"),
    Written("From: stranger@elsewhere.example\nSubject: Your order of speakers"),
    Written("From: ben@works.example\nSubject: Accepted: Weekly meeting", *ANSWERED),
    Written("From: ben@works.example\nSubject: Abgelehnt: Jour fixe", *ANSWERED),
    Written("From: ben@works.example\nSubject: Invitation: Weekly meeting", *INVITED),
    Written("From: ben@works.example\nSubject: Einladung: Sommerfest", *INVITED),
    Written("From: ben@works.example\nSubject: The invitation list"),
    Written(
        f"From: GitHub <notifications@github.com>\nX-GitHub-Reason: subscribed\nList-ID: <app.acme.github.com>\n"
        f"{BULK}\nSubject: [acme/app] Fix the build (#12)",
        *CODE,
    ),
    Written(
        f"From: GitHub <notifications@github.com>\nX-GitHub-Reason: review_requested\nList-ID: <app.acme.github.com>\n"
        f"{BULK}\nSubject: [acme/app] Add a parser (#13)",
        *ASKED,
    ),
    Written("From: gitlab@forge.example\nX-GitLab-Project: app\nSubject: app | Pipeline passed", *CODE),
    Written(
        "From: gitlab@forge.example\nX-GitLab-Project: app\nX-GitLab-NotificationReason: mentioned\n"
        "Subject: app | Hello",
        *ASKED,
    ),
    Written("From: Corner Books <orders@books.example>\nSubject: Your receipt from Corner Books", *RECEIPT),
    Written(f"From: service@pay.example\n{BULK}\nSubject: Payment received", *RECEIPT),
    Written("From: noreply@laden.example\nSubject: Deine Bestellung bei Laden", *RECEIPT),
    Written("From: billing@host.example\nSubject: Invoice 2026-11 is due", *INVOICE),
    Written("From: noreply@strom.example\nSubject: Ihre Rechnung für Oktober", *INVOICE),
    Written("From: auto-confirm@shop.example\nSubject: Your package is out for delivery", *SHIPPING),
    Written(f"From: noreply@post.example\n{BULK}\nSubject: Ihr Paket kommt morgen", *SHIPPING),
    Written("From: booking@hotel.example\nSubject: Booking confirmation 7HQ2", *TRAVEL),
    Written("From: noreply@airline.example\nSubject: Your boarding pass to Lisbon", *TRAVEL),
    Written(f"From: letter@gazette.example\n{BULK}\nSubject: This week in typography", *NEWS),
    Written(f"From: deals@mall.example\n{BULK}\nPrecedence: bulk\nSubject: Half price on everything", *NEWS),
    Written(
        f"From: anna@lists.example\nTo: dev@lists.example\nList-Id: <dev.lists.example>\nPrecedence: list\n{BULK}\n"
        "List-Post: <mailto:dev@lists.example>\nSubject: [dev] Release plan",
    ),
)
