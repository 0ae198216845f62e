"""The language of a text is told if its letters and common words tell it, and else is unknown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.core.mail.language import LANGUAGES, UNKNOWN, language_of
from support.processor_time import MILLION, within_turns

SENTENCES = {
    "en": "Thank you for your order. It will be sent to the address that you gave us, and you can follow it here.",
    "de": "Vielen Dank für Ihre Bestellung. Wir haben die Ware an die Adresse versandt, die Sie uns genannt haben.",
    "fr": "Nous vous remercions pour votre commande. Elle est en route et vous la recevrez dans les prochains jours.",
    "es": "Gracias por su pedido. Lo hemos enviado a la dirección que nos ha dado y llegará en los próximos días.",
    "it": "Grazie per il tuo ordine. Lo abbiamo spedito all'indirizzo che ci hai dato e arriverà nei prossimi giorni.",
    "pt": "Obrigado pela sua encomenda. Ela foi enviada para o endereço que você nos deu e não vai demorar muito.",
    "nl": "Bedankt voor uw bestelling. Wij hebben het pakket naar het adres gestuurd dat u ons heeft gegeven.",
    "sv": "Tack för din beställning. Vi har skickat den till adressen som du gav oss, och den kommer inom kort.",
    "da": "Tak for din bestilling. Vi har sendt den til adressen, som du gav os, og den bliver leveret af posten nu.",
    "no": "Takk for din ordre. Vi har sendt den til adressen som du ga oss, og noen ringer deg når den er hos deg.",
    "fi": "Kiitos tilauksesta. Paketti on nyt matkalla, ja voit seurata sitä tästä. Jos se ei tule, niin ota yhteyttä.",
    "pl": "Dziękujemy za zamówienie. Zostało ono wysłane na adres, który nam podano, i będzie u Pana już jutro.",
    "cs": "Děkujeme za objednávku. Zásilka je na cestě a bude doručena na adresu, kterou jste nám uvedli.",
    "hu": "Köszönjük a rendelést. A csomag már úton van, és holnap lesz kézbesítve, ha minden jól megy. Ez nem válasz.",
    "ro": "Vă mulțumim pentru comandă. Coletul este pe drum și va fi livrat la adresa pe care ați dat-o.",
    "ru": "Спасибо за ваш заказ. Мы отправили его по адресу, который вы указали, и он будет у вас уже завтра.",
    "uk": "Дякуємо за ваше замовлення. Ми надіслали його на адресу, яку ви вказали, і воно буде у вас вже завтра.",
    "el": "Σας ευχαριστούμε για την παραγγελία σας.",
    "he": "תודה על ההזמנה שלך.",
    "ar": "شكرا لك على طلبك.",
    "th": "ขอบคุณสำหรับคำสั่งซื้อของคุณ",
    "ko": "주문해 주셔서 감사합니다.",
    "ja": "ご注文ありがとうございます。",
    "zh": "感谢您的订购。",
}


@pytest.mark.parametrize("code", LANGUAGES)
def test_a_usual_sentence_is_told(code: str) -> None:
    assert language_of(SENTENCES[code]) == code
    assert language_of(f"{SENTENCES[code]}\nhttps://www.shop.example/the/and/of?to=you ida@the.example") == code


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Hi",
        "42 17 2026-11-15",
        "https://shop.example/the-order-and-the-invoice",
        "FYI",
        "Lorem ipsum dolor sit amet consectetur adipiscing elit",
        "checking build system type i686 pc linux gnu",
        f"{SENTENCES['en']} {SENTENCES['de']}",
        "Merhaba, siparişiniz yola çıktı.",
    ],
)
def test_a_text_that_does_not_tell_is_of_unknown_language(text: str) -> None:
    assert language_of(text) == UNKNOWN


@given(st.text(max_size=300))
def test_any_text_has_one_language_and_always_the_same(text: str) -> None:
    found = language_of(text)
    assert found in (*LANGUAGES, UNKNOWN)
    assert language_of(text) == found


@pytest.mark.parametrize("text", ["@" * 1_000_000, "a" * 1_000_000, "the " * 250_000, "\u0301" * 1_000_000])
def test_only_the_beginning_of_a_long_text_is_read(text: str) -> None:
    within_turns(MILLION, lambda: language_of(text))
