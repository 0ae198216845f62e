"""Secrets that people type: never an argument, which every user of the machine can read."""

import sys

import typer

from postroom.core.errors import BadInput


def typed_secret(prompt: str, *, once_more: str | None = None) -> str:
    """Ask without echo, if `once_more` says so twice; from standard input, if that is no terminal, read a line."""
    if sys.stdin.isatty():
        return str(typer.prompt(prompt, hide_input=True, err=True, confirmation_prompt=once_more or False))
    line = sys.stdin.readline()
    if not line.strip():
        raise BadInput("standard input", "has no line left for a password", "give one, or use a terminal")
    return line.rstrip("\r\n")
