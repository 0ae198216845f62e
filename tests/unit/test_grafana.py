"""The dashboard and the advised alerts use existing metrics and labels, and the dashboard uses all of them."""

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from postroom.core.metrics import METRICS, Metric

ROOT = Path(__file__).parents[2]
DASHBOARD = json.loads((ROOT / "docs/grafana/postroom.json").read_text("utf-8"))
MONITORING = (ROOT / "docs/how-to/monitoring.md").read_text("utf-8")
PANELS: list[dict[str, Any]] = DASHBOARD["panels"]
GRAPHS = [panel for panel in PANELS if panel["type"] != "row"]
QUERIES: list[str] = [target["expr"] for panel in GRAPHS for target in panel["targets"]]

NAME = re.compile(r"\bbutlers_\w+")
SELECTED = re.compile(r"(butlers_\w+)\{([^}]*)\}")
GROUPED = re.compile(r"by \(([^)]*)\)")
SHOWN = re.compile(r"\{\{(\w+)\}\}")


def series() -> dict[str, Metric]:
    """Every name that Prometheus knows, and whose it is."""
    known: dict[str, Metric] = {}
    for metric in METRICS:
        suffixes = ("_bucket", "_sum", "_count") if metric.kind == "histogram" else ("",)
        known |= {metric.prometheus_name + suffix: metric for suffix in suffixes}
    return known


def metrics_in(query: str) -> set[Metric]:
    return {series()[name] for name in NAME.findall(query)}


def test_every_metric_in_a_query_exists():
    asked = {name for query in QUERIES for name in NAME.findall(query)}
    assert asked - set(series()) == set()


def test_every_metric_is_on_some_panel():
    shown = {metric.name for query in QUERIES for metric in metrics_in(query)}
    assert {metric.name for metric in METRICS} - shown == set()


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_uses_only_labels_that_its_metrics_have(query: str):
    for metric in metrics_in(query):
        grouped = {label.strip() for group in GROUPED.findall(query) for label in group.split(",")}
        assert grouped <= {*metric.attributes, "le"}
    for name, selection in SELECTED.findall(query):
        labels = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", selection))
        assert labels <= set(series()[name].attributes)


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_fits_the_kind_of_its_metric(query: str):
    assert query.count("(") == query.count(")")
    (metric,) = metrics_in(query)
    assert ("rate(" in query) == (metric.kind != "gauge")
    assert ("histogram_quantile(" in query) == (metric.kind == "histogram")


@pytest.mark.parametrize("panel", GRAPHS, ids=lambda panel: panel["title"])
def test_a_panel_says_what_it_shows_and_reads_from_the_chosen_source(panel: dict[str, Any]):
    assert panel["description"]
    assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    for target in panel["targets"]:
        assert target["datasource"] == panel["datasource"]
        assert set(SHOWN.findall(target["legendFormat"])) <= set(
            re.findall(r"\w+", " ".join(GROUPED.findall(target["expr"])))
        )


def test_panels_have_each_their_own_id_and_place():
    assert len({panel["id"] for panel in PANELS}) == len(PANELS)
    for one, other in combinations([panel["gridPos"] for panel in PANELS], 2):
        apart_x = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        apart_y = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert apart_x or apart_y, (one, other)
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in PANELS)


def test_the_source_and_the_queue_can_be_chosen():
    variables = {each["name"]: each for each in DASHBOARD["templating"]["list"]}
    assert (variables["datasource"]["type"], variables["datasource"]["query"]) == ("datasource", "prometheus")
    (queried,) = NAME.findall(variables["queue"]["definition"])
    assert series()[queried].name == "butlers.switchboard.queue_depth"
    assert DASHBOARD["schemaVersion"] >= 39
    assert "id" not in DASHBOARD, "Grafana gives it when the dashboard is imported"


def test_the_alerts_we_advise_ask_for_metrics_and_labels_that_exist():
    assert set(NAME.findall(MONITORING)) - set(series()) - {metric.prometheus_name for metric in METRICS} == set()
    for name, selection in SELECTED.findall(MONITORING):
        assert set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", selection)) <= set(series()[name].attributes)
