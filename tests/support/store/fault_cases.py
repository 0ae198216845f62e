"""Every verb that writes, with a database in which it runs all its statements: the cases of all nouns."""

import importlib
from pathlib import Path

from support.store.fault_cases_jobs import Case

SUBJECTS = sorted(each.stem for each in Path(__file__).parent.glob("fault_cases_*.py"))
CASES: dict[str, Case] = {
    case.__name__: case for name in SUBJECTS for case in importlib.import_module(f"support.store.{name}").CASES
}
