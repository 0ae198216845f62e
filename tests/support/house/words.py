"""Names and phrases that a reader stumbles over, and providers named where no provider should be known."""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator

from support.house.figures import Section
from support.house.names import AVOIDED, AVOIDED_BEGINNINGS, IRREGULAR, NO_PARTICIPLES, PROVIDERS, TEMPLATES
from support.house.shapes import classes
from support.house.tree import Module, Tree

_PARTICIPLE = re.compile(rf"_(?!(?:{NO_PARTICIPLES})$)(?:{IRREGULAR}|[a-z]+(?:ed|en))")


def names(tree: Tree) -> Section:
    """A participle is guessed by its ending, and bare if it is the whole name: `_shown`, but not `_shown_line`."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    for module, node in classes(tree):
        places[node.name].append(str(module.path))
    repeated = {name: found for name, found in places.items() if len(found) > 1}
    participles = [f"{module.path}: {name}" for module in tree.modules for name in _private_participles(module)]
    beginnings = [
        f"{module.path}: {' '.join(said.split()[:8])} …"
        for module in tree.modules
        for said in module.docstrings
        if re.match(rf"(?:{'|'.join(AVOIDED_BEGINNINGS)})\b", said)
    ]
    numbers = {
        "class names used more than once": len(repeated),
        "classes that have them": sum(map(len, repeated.values())),
        "private functions that are bare participles (guessed)": len(participles),
        f"docstrings that begin with {'/'.join(AVOIDED_BEGINNINGS)}": len(beginnings),
    }
    listed = [f"{name} ×{len(found)}: {', '.join(found)}" for name, found in sorted(repeated.items())]
    return Section("Names", numbers, [*listed, *participles, *beginnings])


def phrases(tree: Tree) -> Section:
    """Those of texts and docstrings in Python, not of comments. Questions that ask what is the case count too."""
    paths = [path for path in sorted(tree.product.rglob("*")) if path.suffix in TEMPLATES]
    places = {
        "texts": {str(module.path): "\n".join(_texts(module)) for module in tree.modules},
        "templates": {str(path.relative_to(tree.product)): path.read_text("utf-8") for path in paths},
        "documents": {str(path): text for path, text in tree.documents.items()},
    }
    numbers: dict[str, int] = {}
    listed: list[str] = []
    for phrase, pattern in AVOIDED.items():
        sought = re.compile(pattern, re.IGNORECASE)
        for place, texts in places.items():
            counted = {name: len(sought.findall(text)) for name, text in texts.items()}
            numbers[f"{phrase}, in {place}"] = sum(counted.values())
            listed += [f"{phrase}: {name} ×{number}" for name, number in counted.items() if number]
    return Section("Phrases", numbers, listed)


def provider_literals(tree: Tree) -> Section:
    """Texts that are a provider's name and nothing else, outside folders and modules of that name."""
    counted: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for module in tree.modules:
        if PROVIDERS & set(module.path.with_suffix("").parts):
            continue
        found = [text for text in _texts(module) if text in PROVIDERS]
        total.update(found)
        if found:
            counted[str(module.path)] = len(found)
    numbers = {f'"{name}"': total[name] for name in sorted(PROVIDERS)} | {"modules": len(counted)}
    listed = [f"{number} {name}" for name, number in counted.most_common()]
    return Section("Providers named outside their packages", numbers, listed, True)


def _texts(module: Module) -> Iterator[str]:
    for node in module.nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _private_participles(module: Module) -> Iterator[str]:
    for node in module.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and is_private_participle(node.name):
            yield node.name


def is_private_participle(name: str) -> bool:
    return _PARTICIPLE.fullmatch(name) is not None
