"""The words by which mail about the safety of an account is known: sign-ins, passwords, codes, recovery and fraud.

Phrases are separated by commas. They are compared word by word, without accents and marks; German ones also with `ae`
for `ä` and the like. Stems match every word that begins with them, since German joins words.
"""

ENGLISH = """
    new sign in, new signin, new login, new log in, sign in attempt, signin attempt, login attempt, log in attempt,
    sign in from, login from, log in from, logged in from, signed in from, signed in on, signed in to your,
    from a new device, on a new device, new device signed, new device added, new device linked, new device has been,
    unrecognized device, unrecognised device, unknown device, unfamiliar device, unusual sign in, unusual login,
    unusual activity, suspicious activity, suspicious sign in, suspicious login, blocked sign in, blocked login,
    security alert, security notice, security notification, security warning, security event, security incident,
    account alert, account activity alert, was this you, was it you, if this wasn t you, if it wasn t you,
    if this was not you, if it was not you, if you did not request, if you didn t request, if you did not make this,
    if you didn t make this, did you just sign in, did you sign in, don t recognize this, do not recognize this,
    don t recognise this, do not recognise this,
    password reset, reset your password, reset password, password was reset, password has been reset,
    password was changed, password has been changed, password changed, password change, change your password,
    changed your password, forgot your password, forgotten password, forgot password, set a new password,
    password expires, password will expire, password has expired, temporary password, new passkey, passkey was,
    passkey added, passphrase was, app password,
    verification code, security code, authentication code, login code, sign in code, log in code, signin code,
    one time code, one time password, one time passcode, one time pin, one time link, single use code, passcode,
    your otp, otp is, otp code, 2fa, mfa, two factor, two step verification, 2 step verification,
    two step authentication, multi factor, authenticator app, magic link, sign in link, login link,
    verify your identity, confirm your identity, verify your account, verify it s you, verify that it s you,
    backup codes, recovery codes, recovery code, recovery key, recovery email, recovery phone, account recovery,
    recover your account, account locked, account is locked, account was locked, account has been locked,
    account suspended, account was suspended, account has been suspended, account has been disabled,
    unlock your account, email address was changed, email address has been changed, phone number was changed,
    phone number has been changed, security settings, security info, new api key, api key was, access token was,
    personal access token, ssh key was, new ssh key, access to your account, access your account was,
    fraud alert, fraud warning, fraud department, fraud prevention, suspected fraud, possible fraud, fraudulent,
    unauthorized transaction, unauthorised transaction, unauthorized charge, unauthorised charge,
    unauthorized access, unauthorised access, unauthorized login, unusual transaction, suspicious transaction,
    suspicious charge, identity theft, data breach, security breach, has been compromised, was compromised,
    card has been blocked, card was blocked, card is blocked, card has been locked, did you make this purchase,
    did you make this payment, did you authorize, did you authorise, phishing
"""

GERMAN = """
    neue anmeldung, neuer login, neues login, neue einloggung, anmeldung von einem, anmeldung auf einem,
    anmeldung an einem, anmeldung bei ihrem, anmeldung in ihrem, anmeldung in deinem, login versuch,
    versuch sich anzumelden, ungewöhnliche anmeldung, ungewöhnliche aktivität, ungewöhnliche aktivitäten,
    verdächtige anmeldung, verdächtige aktivität, verdächtige aktivitäten, unbekanntes gerät, unbekannten gerät,
    neues gerät, neuen gerät, waren sie das, warst du das, das nicht waren, das nicht warst, nicht sie waren,
    nicht von ihnen stammt, nicht von ihnen veranlasst, nicht selbst veranlasst, nicht angefordert haben,
    nicht angefordert hast,
    passwort zurücksetzen, passwort zurückzusetzen, passwort zurückgesetzt, passwort wurde, passwort geändert,
    passwort ändern, passwort vergessen, neues passwort, kennwort zurücksetzen, kennwort zurückzusetzen,
    kennwort zurückgesetzt, kennwort wurde, kennwort geändert, kennwort ändern, kennwort vergessen, neues kennwort,
    zwei faktor, 2 faktor, bestätigung in zwei schritten, zweistufige, identität bestätigen, identität zu bestätigen,
    sms tan, mobile tan, push tan, ihre tan, ihr code lautet, dein code lautet, code lautet, ihr code, dein code,
    konto gesperrt, konto wurde gesperrt, konto ist gesperrt, konto vorübergehend gesperrt, konto entsperren,
    konto wiederherstellen, zugang gesperrt, zugang wurde gesperrt, karte gesperrt, karte wurde gesperrt,
    karte ist gesperrt, e mail adresse wurde geändert, telefonnummer wurde geändert, verdacht auf betrug,
    verdächtige transaktion, verdächtige abbuchung, verdächtige zahlung, ungewöhnliche abbuchung,
    ungewöhnliche zahlung, ungewöhnliche transaktion, nicht autorisierte, unbefugter zugriff, unbefugten zugriff,
    unberechtigter zugriff, unberechtigten zugriff, kompromittiert
"""

OTHERS = """
    code de vérification, code de sécurité, code de connexion, nouvelle connexion, tentative de connexion,
    activité inhabituelle, alerte de sécurité, mot de passe oublié, mot de passe a été,
    réinitialiser votre mot de passe, réinitialisation du mot de passe, usage unique, accès non autorisé,
    código de verificación, código de seguridad, código de acceso, nuevo inicio de sesión, inicio de sesión nuevo,
    intento de inicio de sesión, actividad inusual, actividad sospechosa, alerta de seguridad,
    restablecer tu contraseña, restablecer su contraseña, restablecer la contraseña, cambio de contraseña,
    codice di verifica, codice di sicurezza, nuovo accesso, tentativo di accesso, attività sospetta,
    avviso di sicurezza, reimposta la password, reimpostare la password, password è stata,
    verificatiecode, beveiligingscode, inlogcode, nieuwe aanmelding, inlogpoging, verdachte activiteit,
    beveiligingswaarschuwing, wachtwoord opnieuw instellen, wachtwoord gewijzigd, wachtwoord is gewijzigd
"""

# Words that begin like this, anywhere in the mail.
STEMS = """
    sicherheitscode, sicherheitswarn, sicherheitshinweis, sicherheitsmeldung, sicherheitsmitteilung,
    sicherheitsbenachrichtig, sicherheitsalarm, sicherheitsvorfall, bestätigungscode, verifizierungscode,
    verifikationscode, authentifizierungscode, anmeldecode, anmeldeversuch, anmeldelink, einmalcode, einmalpasswort,
    einmalkennwort, zugangscode, freischaltcode, freigabecode, aktivierungscode, zweifaktor, passwortänder,
    passwortzurück, kennwortänder, kennwortzurück, kontosperr, kontowiederherstell, wiederherstellungscode,
    wiederherstellungsschlüssel, betrugsversuch, betrugswarn, betrugsverdacht, betrugsmasche, identitätsdiebstahl,
    datenleck, datenpanne, phishing
"""

# Words that begin like this, in a subject: nothing else is sent under them.
SUBJECT_STEMS = """
    password, passwort, kennwort, passcode, passkey, signin, contraseña, wachtwoord, verif, otp, sicherheits, betrug,
    fraud, phish, unauthori, suspicious, verdächtig, breach, zugangsdaten
"""

# A code with one of these words before it does not prove an identity.
OTHER_CODES = """
    zip, post, postal, promo, promotion, promotional, discount, coupon, voucher, gift, source, area, dress, qr, rabatt,
    gutschein
"""
