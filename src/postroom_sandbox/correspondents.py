"""The fictional people, shops and lists that write to the sample mailbox, and what they write.

All of them use domains that are reserved for examples. Placeholders such as `{name}` are filled in by `sample.py`.
"""

from dataclasses import dataclass

from postroom_sandbox.raw_mail import Person

OWNER = Person("Mara Lindqvist", "mara@lindqvist.example")

FAMILY = (
    Person("Ida Lindqvist", "ida@lindqvist.example"),
    Person("Tomas Lindqvist", "tomas@post.example.net"),
    Person("Åsa Öberg", "asa.oberg@post.example.net"),
)
FAMILY_NEWS = (
    (
        "Sunday lunch?",
        "Are you coming on Sunday? Dad wants to try the new oven.\nSay yes before Friday, I am shopping.",
    ),
    ("Photos from the lake", "I finally sorted them. The one with the dog and the canoe is for your wall."),
    ("Grandma's birthday", "She turns 85 on the 3rd. I thought of a boat trip. Could you ask about the small ferry?"),
    ("Your spare key", "I still have your spare key. Shall I leave it with the neighbours or bring it on Saturday?"),
    ("Call me when you can", "Nothing bad. I need your opinion on a sofa, and it will not wait."),
)

COLLEAGUES = (
    Person("Jonas Brandt", "jonas.brandt@halden-frost.example"),
    Person("Priya Raman", "priya.raman@halden-frost.example"),
    Person("Élodie Marchand", "elodie.marchand@halden-frost.example"),
    Person("Sam Okafor", "sam.okafor@halden-frost.example"),
)
WORK = (
    ("Floor plans for the library", "The client wants the reading room on the north side. Can you check the stairs?"),
    ("Budget, second round", "We are 4 % over. I marked in yellow what could wait until spring."),
    ("Site visit on Thursday", "Meet at the gate at 8:15, bring boots. The crane will be there from nine."),
    ("Draft of the tender", "Please read section 3 by tomorrow evening; the rest is boilerplate."),
    ("Permit came through", "The city has signed. I have scanned the letter, the original is in the blue folder."),
    ("Quick question about the facade", "Larch or oak? The supplier holds the price only until the end of the week."),
)

PRACTICE = Person("Praxis Dr. Amsel", "termine@praxis-amsel.example")


@dataclass(frozen=True)
class Newsletter:
    sender: Person
    list_id: str
    subjects: tuple[str, ...]
    text: str


NEWSLETTERS = (
    Newsletter(
        Person("The Slow Web Weekly", "letter@slowweb.example"),
        "weekly.slowweb.example",
        (
            "Pages that load before you blink",
            "A love letter to the hyperlink",
            "Why your clock is wrong",
            "Small tools",
        ),
        "Five links, one essay and a recipe for soup.",
    ),
    Newsletter(
        Person("Harbour Theatre", "news@harbour-theatre.example"),
        "news.harbour-theatre.example",
        (
            "Two tickets for the price of one",
            "The new season is here",
            "Tonight: a few seats left",
            "Meet the director",
        ),
        "Book online until 6 pm on the day of the performance.",
    ),
    Newsletter(
        Person("Nachtzug-Notizen", "post@nachtzug.example.org"),
        "notizen.nachtzug.example.org",
        ("Über Nacht nach Süden", "Neue Strecken für den Winter", "Frühbucher: 20 % günstiger", "Schöne alte Bahnhöfe"),
        "Grüße aus dem Schlafwagen. Heute: drei Züge, die sich lohnen.",
    ),
)

SHOPS = (
    Person("Papeterie Lune", "commandes@papeterie-lune.example"),
    Person("Kettle & Crumb", "orders@kettle-and-crumb.example"),
    Person("Fahrradhof Möller", "rechnung@fahrradhof.example"),
)
GOODS = (
    "Notebook, dotted, A5",
    "Loose tea, 250 g",
    "Inner tube 28 inch",
    "Fountain pen ink",
    "Oat biscuits",
    "Chain oil",
)

CARRIER = Person("Parcel Pigeon", "no-reply@parcel-pigeon.example")
SHIPPING = (
    ("Your parcel {number} is on its way", "It left our depot this morning and should arrive in two days."),
    ("Your parcel {number} comes today", "The driver will be with you between 14:10 and 15:40."),
    ("Your parcel {number} is with a neighbour", "Nobody was at home. You will find it at number 12, second floor."),
)

SERVICES = (
    (Person("Sparbank", "hinweis@sparbank.example"), "Your statement for this month is ready", "Sign in to read it."),
    (Person("Stadtwerke", "kunden@stadtwerke.example"), "Please read your meter", "You can enter the numbers online."),
    (
        Person("Cloud Cupboard", "security@cloud-cupboard.example"),
        "New sign-in to your account",
        "Somebody signed in from a new device. If it was you, there is nothing to do.",
    ),
)

CHOIR = "choir@lists.example.org"
SINGERS = (
    Person("Greta Holm", "greta@singers.example.org"),
    Person("Paul Iversen", "paul@singers.example.org"),
    Person("Wei Chen", "wei@singers.example.org"),
)
CHOIR_TOPICS = (
    ("Rehearsal moved to Wednesday", "The hall is taken on Tuesday. Same time, Wednesday."),
    ("Who has the alto scores?", "I counted eleven, there should be fourteen. Please look in your bags."),
    ("Lifts to the concert", "I have two free seats, leaving at five from the station."),
    ("Minutes of the meeting", "The fee stays as it is; the tour is in May. Details below."),
)

STRANGERS = (
    (
        "Yuki Tanaka",
        "yuki@kawa.example",
        "来週の打ち合わせについて",
        "来週の火曜日はいかがでしょうか。\n田中",
        "iso-2022-jp",
    ),
    ("Ольга Соколова", "olga@sever.example", "Приглашение на выставку", "Будем рады видеть вас в субботу.", "koi8-r"),
    (
        "José Núñez",
        "jose@taller.example",
        "Presupuesto de la ventana",
        "Le envío el presupuesto. ¡Saludos!",
        "iso-8859-1",
    ),
    (
        "Zoë Müller",
        "zoe@atelier.example",
        "Schlüssel übergeben",
        "Die Schlüssel liegen „wie immer“ im Büro.",
        "windows-1252",
    ),
)

MEETINGS = ("Library: weekly", "Review of the tender", "Lunch with the structural engineer", "Planning, next quarter")

JUNK = (
    Person("Prize Department", "winner@prizes.example"),
    "You have WON!!!",
    "Send us your bank details within 24 hours to claim your prize.",
)


@dataclass(frozen=True)
class Conversation:
    """A message that the owner sent, and possible replies to it."""

    key: str
    partner: Person
    subject: str
    text: str
    answers: tuple[str, ...]

    @property
    def message_id(self) -> str:
        return f"<{self.key}@mail.{OWNER.domain}>"


CONVERSATIONS = (
    Conversation(
        "ferry-enquiry",
        Person("Eira Sund", "eira@small-ferry.example"),
        "Boat for twelve people on the 3rd?",
        "Good morning,\n\nwe would like to hire the small ferry for one afternoon. Is the 3rd free?\n\nMara Lindqvist",
        (
            "The 3rd is free from two o'clock. Shall I keep it for you?",
            "I need an answer by Friday, others are asking.",
        ),
    ),
    Conversation(
        "stairs-north",
        COLLEAGUES[0],
        "Stairs on the north side",
        "Jonas, the stairs fit if we turn the lift by 90 degrees. Sketch tomorrow.\nMara",
        ("Brilliant. Does the lift maker agree?", "The fire inspector says yes to the lift."),
    ),
    Conversation(
        "sofa-advice",
        FAMILY[1],
        "The sofa",
        "The green one. Always the green one.\nM.",
        ("You were right, the green one.", "It does not fit through the door. Ideas?"),
    ),
    Conversation(
        "window-offer",
        Person("José Núñez", "jose@taller.example"),
        "Repair of the kitchen window",
        "Hello José, could you look at the kitchen window next week? It no longer closes.\nMara",
        ("I can come on Tuesday at nine.", "The part has arrived, may I come earlier?"),
    ),
    Conversation(
        "choir-solo",
        SINGERS[0],
        "The solo in the second piece",
        "Greta, I would try it, if nobody else wants to.\nMara",
        ("Wonderful, the solo is yours!", "Could you come half an hour early to practise?"),
    ),
)
