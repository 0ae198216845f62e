"""Mail about the safety of an account is recognised, in the languages and forms in which it comes."""

import pytest

from postroom.core.mail.security import LONGEST_TEXT, is_security_notice

NOTICES = [
    "New sign-in to your account from Chrome on Windows",
    "We noticed a new login from Lagos, Nigeria",
    "Was this you?",
    "Security alert for ada@example.com",
    "A new device has been linked to your account",
    "Reset your password",
    "Your password was changed",
    "You asked for a temporary password",
    "482913 is your Acme verification code",
    "G-482913 is your code",
    "482 913 is your Acme login code",
    "Your one-time passcode",
    "Your code: 482913",
    "PIN: 4821",
    "Two-step verification was turned off",
    "Your recovery email was changed",
    "Your account has been locked",
    "Fraud alert: did you make this purchase?",
    "We blocked a suspicious transaction on your card",
    "Neue Anmeldung bei Ihrem Konto",
    "Anmeldung von einem neuen Gerät",
    "Ungewöhnliche Aktivitäten in deinem Konto",
    "Verdaechtige Anmeldung verhindert",
    "Ihr Passwort wurde geändert",
    "Passwort zurücksetzen",
    "Kennwortänderung bestätigt",
    "Ihr Bestätigungscode",
    "Bestaetigungscode 482913",
    "Ihr Code lautet 482913",
    "Ihre TAN: 482913",
    "Einmalpasswort für die Anmeldung",
    "Zwei-Faktor-Authentifizierung wurde ausgeschaltet",
    "Ihr Konto wurde gesperrt",
    "Wiederherstellungscodes für dein Konto",
    "Verdacht auf Betrug: Ihre Karte wurde gesperrt",
    "Betrugswarnung Ihrer Bank",
    "Code de vérification : 482913",
    "Código de verificación",
    "Codice di sicurezza",
    "Verificatiecode",
]
OTHERS = [
    "Lunch on Friday?",
    "20% off with the promo code 20261",
    "Ihr Rabatt Code: 2026",
    "Our zip code: 12345",
    "Invoice 10023 of 17 November",
    "Your order 482913 has shipped",
    "The weekly digest",
    "Einmalige Gelegenheit: zwei zum Preis von einem",
    "Tango class moved to 19:30",
    "Protokoll der Sitzung vom 4821. Tag",
    "Sign up for our newsletter",
    "",
]


@pytest.mark.parametrize("notice", NOTICES)
def test_a_notice_is_known_by_its_subject_or_by_its_text(notice: str) -> None:
    assert is_security_notice(notice, "")
    assert is_security_notice("Hello", f"Hello Ada,\n\n{notice}\n\nThe team")


@pytest.mark.parametrize("other", OTHERS)
def test_other_mail_is_no_notice(other: str) -> None:
    assert not is_security_notice(other, f"Hello Ada,\n\n{other}\n\nBen")


def test_a_notice_is_found_wherever_a_model_would_read_it() -> None:
    filling = "word " * ((LONGEST_TEXT - 60) // 5)
    assert is_security_notice("Hello", f"{filling}\nYour password was changed")


@pytest.mark.parametrize("text", ["code " * 100_000, "a-" * 200_000, "code: \n :" * 50_000, "1 " * 100_000])
def test_a_long_text_is_no_more_work_than_a_short_one(text: str) -> None:
    assert not is_security_notice(text, text)
