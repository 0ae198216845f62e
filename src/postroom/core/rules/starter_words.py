"""The words by which starter rules tell mail, in the languages that most mail of programs is written in.

Whole words and phrases, accents and case folded; see core/rules/words.py.
"""

# English, German, French, Spanish, Italian, Dutch.
SECURITY = (
    *("security alert", "security notice", "security notification", "security code", "security warning"),
    *("suspicious activity", "suspicious sign in", "suspicious login", "unusual activity", "unusual sign in"),
    *("new sign in", "new signin", "new login", "new device", "sign in attempt", "login attempt", "signed in from"),
    *("sign in from", "login from", "sign in code", "login code", "verification code", "confirmation code"),
    *("one time code", "one time password", "one time passcode", "two factor", "2 step verification", "two step"),
    *("reset your password", "password reset", "password was changed", "password has been changed"),
    *("password changed", "change of password", "recovery email", "account recovery", "account locked"),
    *("account was locked", "account has been locked", "data breach", "unauthorized access", "fraud alert"),
    *("verify your email", "verify your account", "confirm your email", "access token", "ssh key", "app password"),
    *("Sicherheitswarnung", "Sicherheitshinweis", "Sicherheitscode", "neue Anmeldung", "Anmeldeversuch"),
    *("Bestätigungscode", "Passwort zurücksetzen", "Passwort geändert", "Ihr Passwort", "dein Passwort"),
    *("alerte de sécurité", "nouvelle connexion", "code de vérification", "mot de passe", "activité suspecte"),
    *("alerta de seguridad", "inicio de sesión", "código de verificación", "contraseña", "actividad sospechosa"),
    *("avviso di sicurezza", "nuovo accesso", "codice di verifica", "reimposta la password"),
    *("beveiligingswaarschuwing", "nieuwe aanmelding", "verificatiecode", "wachtwoord"),
)
CALENDAR_ANSWERS = (
    *("accepted", "declined", "tentative", "tentatively accepted", "zugesagt", "abgelehnt", "angenommen"),
    *("mit vorbehalt", "accepté", "acceptée", "refusé", "refusée", "aceptado", "aceptada", "rechazado", "accettato"),
    *("rifiutato", "geaccepteerd", "afgewezen"),
)
CALENDAR_INVITATIONS = (
    *("invitation", "updated invitation", "canceled event", "cancelled event", "canceled", "cancelled", "invite"),
    *("einladung", "aktualisierte einladung", "abgesagt", "abgesagter termin", "annulé", "invitación", "cancelado"),
    *("invito", "annullato", "uitnodiging", "geannuleerd"),
)
INVOICES = (
    *("invoice", "bill", "payment due", "past due", "overdue", "payment failed", "payment declined", "reminder"),
    *("Rechnung", "Mahnung", "Zahlungserinnerung", "facture", "factura", "fattura", "factuur"),
)
RECEIPTS = (
    *("receipt", "order confirmation", "order confirmed", "your order", "payment received", "payment confirmation"),
    *("thanks for your order", "thank you for your order", "thank you for your purchase", "your purchase"),
    *(
        "Bestellbestätigung",
        "Ihre Bestellung",
        "deine Bestellung",
        "Zahlungsbestätigung",
        "Zahlungseingang",
        "Quittung",
    ),
    *("reçu", "votre commande", "confirmation de commande", "recibo", "su pedido", "tu pedido", "ricevuta"),
    *("il tuo ordine", "je bestelling", "uw bestelling", "betaalbewijs"),
)
SHIPPING = (
    *("shipped", "has shipped", "on its way", "on the way", "out for delivery", "delivered", "tracking number"),
    *("track your package", "your package", "your parcel", "your shipment", "dispatched", "ready for pickup"),
    *("versandt", "Versandbestätigung", "Sendung", "Sendungsverfolgung", "Ihr Paket", "dein Paket", "zugestellt"),
    *("expédié", "expédiée", "votre colis", "livraison", "enviado", "tu paquete", "su paquete", "entregado"),
    *("spedito", "il tuo pacco", "verzonden", "je pakket", "uw pakket", "bezorgd"),
)
TRAVEL = (
    *("booking confirmation", "your booking", "booking confirmed", "reservation confirmed", "your reservation"),
    *("reservation confirmation", "itinerary", "boarding pass", "e ticket", "eticket", "check in", "your flight"),
    *("flight confirmation", "gate change", "your trip", "your stay", "your journey", "travel documents"),
    *(
        "Buchungsbestätigung",
        "Ihre Buchung",
        "deine Buchung",
        "Reservierungsbestätigung",
        "Bordkarte",
        "Reiseunterlagen",
    ),
    *("Ihre Reise", "deine Reise", "Ihr Flug", "confirmation de réservation", "votre réservation", "votre voyage"),
    *("carte d'embarquement", "confirmación de reserva", "tu reserva", "su reserva", "tarjeta de embarque"),
    *("conferma di prenotazione", "la tua prenotazione", "carta d'imbarco", "je boeking", "uw boeking"),
)
# Parts of the addresses and names of programs that write mail.
PROGRAMS = (
    *(
        "noreply",
        "no reply",
        "donotreply",
        "do not reply",
        "notification",
        "notifications",
        "notify",
        "alert",
        "alerts",
    ),
    *("receipt", "receipts", "billing", "invoice", "invoices", "order", "orders", "payments", "auto confirm"),
    *("shipping", "shipment tracking", "tracking", "booking", "bookings", "reservation", "reservations", "mailer"),
    *("service", "automated", "robot", "system", "donotreply", "nepasrepondre", "ne pas repondre", "norispondere"),
)
