"""Host names as requests spell them: with or without a port, in brackets, with a trailing dot, in any case."""


def hostname(host: str) -> str:
    """A Host header without its port: `localhost:8025` and `[::1]:8025` both lose theirs."""
    name, colon, port = host.rpartition(":")
    return bare_name(name if colon and port.isascii() and port.isdigit() else host)


def bare_name(name: str) -> str:
    """The spelling in which host names are compared."""
    return name.strip().lower().removesuffix(".").removeprefix("[").removesuffix("]")
