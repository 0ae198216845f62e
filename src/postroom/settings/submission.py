"""Settings of the submission server, by which senders hand in mail. `docs/reference/submission.md` explains them."""

from pydantic import Field

from postroom.settings.checks import both_or_neither, form
from postroom.settings.sections import Seconds, Section, Whole

_HOST = r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?"


class SubmissionSettings(Section):
    enabled: bool = Field(False, description="Accept mail of senders over SMTP in `postroom serve`.")
    host: str = Field("127.0.0.1", min_length=1, description="Address to listen on; beyond loopback only with TLS.")
    port: Whole = Field(2587, ge=0, le=65_535, description="Port for STARTTLS; 0 for any free one.")
    tls_port: Whole = Field(
        2465, ge=0, le=65_535, description="Port that is encrypted from the first byte; used if there is a certificate."
    )
    hostname: str | None = Field(
        None,
        description="The name of this server in its greeting, in `Received` and in `Message-ID`; without it "
        "`delivery.hostname`, or the name of the machine.",
    )
    certificate_file: str | None = Field(
        None, min_length=1, description="The certificate of the server with those of its authority, in PEM."
    )
    key_file: str | None = Field(None, min_length=1, description="The private key of the certificate, in PEM.")
    allow_plain_login: bool = Field(
        False, description="Let programs on this machine log in without TLS. Other clients never may."
    )
    local_sender: str | None = Field(
        None,
        min_length=1,
        description="The sender on whose behalf every program on this machine may submit mail without logging in.",
    )
    show_clients: bool = Field(
        False, description="Write the name and the address of the submitting client into `Received`."
    )
    max_size_mib: Whole = Field(25, ge=1, le=1024, description="MiB that a message may have.")
    max_recipients: Whole = Field(100, ge=1, le=10_000, description="Recipients that a mail may have.")
    max_per_minute: Whole = Field(600, ge=1, le=1_000_000, description="Mails of one sender in a minute.")
    max_connections: Whole = Field(512, ge=1, le=100_000, description="Connections at the same time.")
    max_connections_per_address: Whole = Field(
        128, ge=1, le=100_000, description="Connections at the same time from one address (IPv6: one /64 network)."
    )
    max_memory_mib: Whole = Field(
        256, ge=1, le=65_536, description="MiB of all messages together that are being received."
    )
    login_s: Seconds = Field(60.0, gt=0, le=3600, description="Seconds until a client must have logged in.")
    command_s: Seconds = Field(300.0, gt=0, le=3600, description="Seconds until the next command must have arrived.")
    message_s: Seconds = Field(600.0, gt=0, le=7200, description="Seconds for a whole message to arrive.")
    session_s: Seconds = Field(3600.0, gt=0, le=86_400, description="Seconds that a connection lasts at most.")
    failed_logins_per_address: Whole = Field(
        20, ge=1, le=100_000, description="Failed logins from one address after which no more are tried."
    )
    failed_logins_per_user: Whole = Field(
        10,
        ge=1,
        le=100_000,
        description="Failed logins of one user after which no more are tried, except from the user's own addresses.",
    )
    failed_logins_s: Seconds = Field(
        600.0, gt=0, le=86_400, description="Seconds without a failed login after which logins are tried again."
    )

    _host = form("hostname", pattern=_HOST, allowed="the name of a host, such as mail.example.com")

    _certificate = both_or_neither("submission", "certificate_file", "key_file")
