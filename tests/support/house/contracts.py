"""Import contracts that have exemptions."""

import tomllib

from support.house.figures import Section
from support.house.tree import Tree


def exemptions(tree: Tree) -> Section:
    settings = tomllib.loads((tree.root / "pyproject.toml").read_text("utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    exempt = {each["name"]: each["ignore_imports"] for each in contracts if each.get("ignore_imports")}
    numbers = {
        "contracts": len(contracts),
        "with exemptions": len(exempt),
        "exemptions": sum(map(len, exempt.values())),
    }
    listed = [f"{name}: {', '.join(ignored)}" for name, ignored in exempt.items()]
    return Section("Import contracts with exemptions", numbers, listed, True)
