"""The named queues: the tier of an event, the queue of a source, and how settings change both."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from postroom.core.errors import BadInput, SettingsError
from postroom.core.queue.envelope import ON_DEMAND, Envelope, parse_envelope
from postroom.core.queue.queues import EMAIL, GATEWAY, ClassRule, QueuePolicy, Queues, Route
from postroom.settings import queues as queue_settings
from postroom.settings.queues import queues_of
from postroom.settings.reading import load_settings


def event(channel: str = "webhook", kind: str | None = None, text: str = "hello", **control: Any) -> Envelope:
    provider = {"email": "gmail", "api": "internal", "mcp": "internal"}.get(channel, channel)
    return parse_envelope(
        {
            "schema_version": "ingest.v1",
            "source": {"channel": channel, "provider": provider, "endpoint_identity": "monitoring-eu"},
            "event": {"external_event_id": "1", "observed_at": "2026-11-15T08:00:00Z", "kind": kind},
            "sender": {"identity": "someone"},
            "payload": {"raw": {}, "normalized_text": text},
            "control": control,
        }
    )


# Class rules.


@pytest.mark.parametrize(
    ("envelope", "tier"),
    [
        (event("telegram"), "P0"),
        (event("slack"), "P0"),
        (event("discord"), "P0"),
        (event("discord", "test.passed"), "P0"),
        (event("slack", text="/status please"), "P0"),
        (event(text="/dev/sda1 is 83% full"), "P2"),
        (event("redis", text="/status please"), "P0"),
        (event("api", text="/"), "P2"),
        (event(kind="callback_query"), "P0"),
        (event(kind="deploy.failed"), "P1"),
        (event(kind="friction-fix"), "P1"),
        (event(kind="vercel.deploy.failed"), "P1"),
        (event(kind="deploy.failed.twice"), "P1"),
        (event(kind="agent/friction-fix.asked"), "P1"),
        (event(kind="test.passed"), "P3"),
        (event(kind="gateway.test.e2e"), "P3"),
        (event(kind="gateway/test.e2e"), "P3"),
        (event(kind="video.media.processed.ok"), "P3"),
        (event(kind="test."), "P3"),
        (event(kind="media.processed"), "P3"),
        (event(), "P2"),
        (event("redis"), "P2"),
        (event("redis", text="/status"), "P0"),
        (event("redis", text="/deploy-now web\nplease"), "P0"),
        (event("redis", text="/usr/bin/env failed"), "P2"),
        (event("redis", text="/Users: 3"), "P2"),
        (event("redis", text="/"), "P2"),
        (event("redis", "test.probe", text="/status"), "P0"),
        (event("webhook", text="/status"), "P2"),
        (event(kind="deploy.done"), "P2"),
        (event(kind="deployXfailed"), "P2"),
        (event(kind="latest.news"), "P2"),
        (event(kind="contest.test"), "P2"),
        (event(kind="test"), "P2"),
        (event(kind="TEST.PASSED"), "P2"),
        (event(text=" /not a command"), "P2"),
        (event(policy_tier="high_priority"), "P2"),
    ],
    ids=lambda value: None if isinstance(value, str) else f"{value.source.channel} {value.event.kind}",
)
def test_the_gateway_tells_what_is_urgent_by_channel_command_and_kind(envelope: Envelope, tier: str) -> None:
    assert GATEWAY.tier_of(envelope) == tier


def test_the_first_rule_that_fits_decides() -> None:
    policy = QueuePolicy("q", {"a": 1, "b": 1}, classes=(ClassRule("b", kinds=("x.*",)), ClassRule("a")), otherwise="b")
    assert policy.tier_of(event(kind="x.1")) == "b"
    assert policy.tier_of(event(kind="y")) == "a"


@pytest.mark.parametrize(("channels", "fitting"), [((), ["slack", "redis"]), (("webhook",), ["webhook"])])
def test_commands_come_from_people_unless_a_rule_names_other_channels(
    channels: tuple[str, ...], fitting: list[str]
) -> None:
    rule = ClassRule("a", channels=channels, commands=True)
    assert [each for each in ("slack", "webhook", "api", "redis") if rule.fits(event(each, text="/go"))] == fitting


def test_all_that_a_rule_says_must_fit() -> None:
    rule = ClassRule("a", channels=("slack",), kinds=("x.*", "y"), commands=True)
    assert rule.fits(event("slack", "x.1", "/go"))
    assert rule.fits(event("slack", "y", "/go"))
    assert not rule.fits(event("api", "y", "/go"))
    assert not rule.fits(event("slack", "z", "/go"))
    assert not rule.fits(event("slack", None, "/go"))
    assert not rule.fits(event("slack", "y", "go"))


@pytest.mark.parametrize("tier", ["high_priority", "interactive", "default"])
def test_mail_waits_in_the_tier_it_asks_for(tier: str) -> None:
    assert EMAIL.tier_of(event("email", policy_tier=tier)) == tier


def test_backfilled_mail_waits_in_history_whatever_it_asks_for() -> None:
    assert EMAIL.tier_of(event("email", backfill_job_id="b1", policy_tier="high_priority")) == "history"
    assert GATEWAY.tier_of(event(backfill_job_id="b1")) == "P2"


def test_mail_on_demand_waits_in_the_lowest_tier_of_live_mail_whatever_it_asks_for() -> None:
    assert EMAIL.tier_of(event("email", ON_DEMAND, policy_tier="high_priority")) == "default"
    assert EMAIL.tier_of(event("email", ON_DEMAND, backfill_job_id="b1")) == "history"
    assert GATEWAY.tier_of(event(kind=ON_DEMAND)) == "P2"


# Policies as they come.


def test_the_queues_that_come_with_postroom_are_those_of_the_design() -> None:
    assert dict(EMAIL.guards) == {"high_priority": 10, "interactive": 10, "default": 10, "history": 10}
    assert (EMAIL.age_after, EMAIL.coalesce_within, EMAIL.auto_ack_after, EMAIL.same_text_within) == ({}, {}, {}, None)
    assert dict(GATEWAY.guards) == {"P0": 3, "P1": 10, "P2": 10, "P3": 10}
    five_minutes, one = timedelta(minutes=5), timedelta(minutes=1)
    assert (GATEWAY.age_after, GATEWAY.coalesce_within) == ({"P2": five_minutes, "P3": five_minutes}, {"P3": one})
    assert (GATEWAY.auto_ack_after, GATEWAY.same_text_within) == ({"P3": one}, timedelta(seconds=30))


def test_a_message_is_handed_out_five_times_unless_its_queue_says_otherwise() -> None:
    queues = settings_queues({"alerts": {"tiers": ["a"], "otherwise": "a"}})
    assert {name: queues[name].most_deliveries for name in queues.names} == {"email": 25, "gateway": 5, "alerts": 5}


def test_agents_consume_every_queue_but_the_one_that_postroom_consumes_itself() -> None:
    queues = settings_queues({"alerts": {"tiers": ["a"], "otherwise": "a"}})
    assert [name for name in queues.names if queues[name].for_agents] == ["gateway", "alerts"]
    assert not settings_queues({"email": {"lease_s": 5}})["email"].for_agents


# Routing.


@pytest.mark.parametrize("channel", ["api", "mcp", "telegram", "slack", "discord", "webhook", "redis"])
def test_everything_but_mail_goes_to_the_gateway(channel: str) -> None:
    assert Queues().of(event(channel)) is GATEWAY


def test_mail_goes_to_the_queue_for_mail() -> None:
    assert Queues().of(event("email")) is EMAIL


def test_the_first_route_that_fits_decides() -> None:
    one, two = QueuePolicy("one", {"a": 1}, otherwise="a"), QueuePolicy("two", {"a": 1}, otherwise="a")
    routes = [Route("one", "webhook", "monitoring-us"), Route("two", None, "monitoring-*"), Route("one", "webhook")]
    queues = Queues([EMAIL, GATEWAY, one, two], routes)
    assert queues.of(event("webhook")) is two
    assert queues.of(event("email")) is two
    assert Queues([EMAIL, GATEWAY, one], [Route("one", "webhook")]).of(event("redis")) is GATEWAY
    assert Queues([EMAIL, GATEWAY, one], [Route("one", "webhook", "Monitoring-*")]).of(event("webhook")) is GATEWAY


def test_a_queue_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(BadInput, match="no queue 'gatway'; use one of email, gateway") as refused:
        Queues()["gatway"]
    assert refused.value.field == "queue"


# Settings.


def settings_queues(queues: dict[str, Any], routes: list[dict[str, Any]] | None = None) -> Queues:
    """By the road that users' words take, from the environment."""
    environ = {"POSTROOM_QUEUES": json.dumps(queues), "POSTROOM_ROUTES": json.dumps(routes or [])}
    settings = load_settings({"data_dir": "/nonexistent"}, environ=environ)
    return queues_of(settings.queues, settings.routes)


def test_without_a_word_in_the_settings_the_queues_are_as_they_come() -> None:
    queues = settings_queues({})
    assert queues.names == ("email", "gateway")
    assert (queues["email"], queues["gateway"]) == (EMAIL, GATEWAY)


def test_what_the_settings_leave_out_stays_as_it_comes() -> None:
    gateway = settings_queues({"gateway": {"auto_ack_after_s": {}, "guards": {"P1": 4}, "most_deliveries": 2}})[
        "gateway"
    ]
    assert gateway.auto_ack_after == {}
    assert dict(gateway.guards) == {"P0": 3, "P1": 4, "P2": 10, "P3": 10}
    assert gateway.most_deliveries == 2
    assert (gateway.classes, gateway.otherwise, gateway.lease) == (GATEWAY.classes, "P2", GATEWAY.lease)
    assert gateway.same_text_within == GATEWAY.same_text_within


def test_one_number_is_the_guard_of_all_tiers_that_have_none_of_their_own() -> None:
    email = settings_queues({"email": {"max_consecutive_same_tier": 5, "guards": {"default": 2}}})["email"]
    assert dict(email.guards) == {"high_priority": 5, "interactive": 5, "default": 2, "history": 5}
    assert set(settings_queues({"gateway": {"max_consecutive_same_tier": 5}})["gateway"].guards.values()) == {5}


def test_a_queue_of_ones_own_has_all_that_is_told_of_it_and_the_routes_that_lead_there() -> None:
    alerts = {
        "tiers": ["page", "mail"],
        "guards": {"page": 5},
        "age_after_s": {"mail": 90},
        "coalesce_within_s": {"mail": 0.5},
        "auto_ack_after_s": {"mail": 3600},
        "same_text_within_s": 10,
        "classes": [{"tier": "page", "kinds": ["*.critical"], "channels": ["webhook"], "commands": True}],
        "otherwise": "mail",
        "lease_s": 30,
        "most_deliveries": 3,
    }
    queues = settings_queues({"alerts": alerts}, [{"queue": "alerts", "endpoint_identity": "monitoring-*"}])
    assert queues["alerts"] == QueuePolicy(
        "alerts",
        {"page": 5, "mail": 10},
        {"mail": timedelta(seconds=90)},
        {"mail": timedelta(seconds=0.5)},
        {"mail": timedelta(hours=1)},
        timedelta(seconds=10),
        (ClassRule("page", ("webhook",), ("*.critical",), True),),
        "mail",
        timedelta(seconds=30),
        3,
    )
    assert queues["alerts"].tiers == ("page", "mail")
    assert queues.of(event("redis")).queue == "alerts"


def test_no_time_at_all_means_that_the_same_text_is_never_a_duplicate() -> None:
    assert settings_queues({"gateway": {"same_text_within_s": 0}})["gateway"].same_text_within is None


def test_tiers_of_the_gateway_can_be_replaced_together_with_all_that_names_them() -> None:
    changes = {"tiers": ["now", "later"], "classes": [], "otherwise": "later"}
    none = {key: dict[str, float]() for key in ("age_after_s", "coalesce_within_s", "auto_ack_after_s")}
    gateway = settings_queues({"gateway": {**changes, **none}})["gateway"]
    assert (gateway.tiers, gateway.tier_of(event("telegram"))) == (("now", "later"), "later")


def test_mail_may_be_routed_elsewhere_and_other_mail_to_the_queue_for_mail() -> None:
    routes = [
        {"queue": "gateway", "channel": "email", "endpoint_identity": "list-*"},
        {"queue": "email", "channel": "email"},
    ]
    assert settings_queues({}, routes).of(event("email")).queue == "email"


NEW = {"tiers": ["a", "b"], "otherwise": "b"}


@pytest.mark.parametrize(
    ("queues", "routes", "field", "remedy"),
    [
        ({"Alerts": NEW}, [], "queues.Alerts", "use lower-case letters, digits, - and _"),
        ({"1st": NEW}, [], "queues.1st", "use lower-case letters"),
        ({"a" * 64: NEW}, [], "queues.a", "use lower-case letters"),
        ({"alerts": {"otherwise": "b"}}, [], "queues.alerts.tiers", "needs its tiers"),
        ({"alerts": {"tiers": ["a"]}}, [], "queues.alerts.otherwise", "and `otherwise`"),
        ({"alerts": {"tiers": [], "otherwise": "a"}}, [], "queues.alerts.tiers", "at least 1"),
        ({"alerts": {"tiers": ["a b"], "otherwise": "a"}}, [], "queues.alerts.tiers.0", "pattern"),
        ({"alerts": {"tiers": ["a", "a"], "otherwise": "a"}}, [], "queues.alerts.tiers", "name each once"),
        ({"gatway": {"lease_s": 900}}, [], "queues.gatway", "did you mean gateway?"),
        ({"emial": {"guards": {"default": 5}}}, [], "queues.emial", "did you mean email?"),
        ({"email": {"tiers": ["a"]}}, [], "queues.email", "its guards can"),
        ({"email": {"otherwise": "default"}}, [], "queues.email", "its guards can"),
        ({"email": {"classes": []}}, [], "queues.email", "its guards can"),
        ({"email": {"coalesce_within_s": {"default": 1}}}, [], "queues.email", "leave out coalescing"),
        ({"email": {"auto_ack_after_s": {"default": 1}}}, [], "queues.email", "auto-ack"),
        ({"email": {"same_text_within_s": 1}}, [], "queues.email", "same_text"),
        ({"gateway": {"guards": {"P4": 1}}}, [], "queues.gateway.guards", "use one of P0, P1, P2, P3"),
        ({"gateway": {"age_after_s": {"P4": 1}}}, [], "queues.gateway.age_after_s", "use one of P0, P1, P2, P3"),
        ({"gateway": {"coalesce_within_s": {"p3": 1}}}, [], "queues.gateway.coalesce_within_s", "use one of P0"),
        ({"gateway": {"auto_ack_after_s": {"x": 1}}}, [], "queues.gateway.auto_ack_after_s", "use one of P0"),
        ({"gateway": {"classes": [{"tier": "x"}]}}, [], "queues.gateway.classes", "use one of P0, P1, P2, P3"),
        ({"gateway": {"otherwise": "x"}}, [], "queues.gateway.otherwise", "use one of P0, P1, P2, P3"),
        ({"gateway": {"tiers": ["a"], "otherwise": "a"}}, [], "queues.gateway.", "use one of a"),
        ({"gateway": {"guards": {"P0": 0}}}, [], "queues.gateway.guards.P0", "greater than or equal to 1"),
        ({"gateway": {"guards": {"P0": True}}}, [], "queues.gateway.guards.P0", "not true or false"),
        (
            {"gateway": {"max_consecutive_same_tier": 0}},
            [],
            "queues.gateway.max_consecutive_same_tier",
            "or equal to 1",
        ),
        ({"gateway": {"age_after_s": {"P2": 0}}}, [], "queues.gateway.age_after_s.P2", "greater than 0"),
        ({"gateway": {"auto_ack_after_s": {"P3": -1}}}, [], "queues.gateway.auto_ack_after_s.P3", "greater than 0"),
        ({"gateway": {"coalesce_within_s": {"P3": "x"}}}, [], "queues.gateway.coalesce_within_s.P3", "valid number"),
        ({"gateway": {"same_text_within_s": -1}}, [], "queues.gateway.same_text_within_s", "or equal to 0"),
        ({"gateway": {"lease_s": 0.5}}, [], "queues.gateway.lease_s", "or equal to 1"),
        ({"gateway": {"lease_s": 86_401}}, [], "queues.gateway.lease_s", "or equal to 86400"),
        ({"gateway": {"most_deliveries": 0}}, [], "queues.gateway.most_deliveries", "or equal to 1"),
        ({"gateway": {"gaurds": {}}}, [], "queues.gateway.gaurds", "no such setting"),
        ({"gateway": {"classes": [{"tier": "P0", "channels": ["fax"]}]}}, [], "queues.gateway.classes.0", "telegram"),
        ({"gateway": {"classes": [{"kinds": ["x"]}]}}, [], "queues.gateway.classes.0.tier", "required"),
        ({"gateway": {"classes": [{"tier": "P0", "kind": "x"}]}}, [], "queues.gateway.classes.0.kind", "no such"),
        ({"gateway": 5}, [], "queues.gateway", "queues"),
        ({}, [{"queue": "alerts"}], "routes[0].queue", "use one of email, gateway"),
        ({}, [{"queue": "gateway"}, {"queue": "email"}], "routes[1].channel", 'write "email"'),
        ({}, [{"queue": "email", "channel": "slack"}], "routes[0].channel", 'write "email"'),
        ({}, [{"queue": "gateway", "channel": "fax"}], "routes", "telegram"),
        ({}, [{"channel": "slack"}], "routes.0.queue", "required"),
        ({}, [{"queue": "gateway", "chanel": "slack"}], "routes.0.chanel", "no such"),
    ],
    ids=str,
)
def test_what_contradicts_itself_is_refused_with_its_place_and_the_remedy(
    queues: dict[str, Any], routes: list[dict[str, Any]], field: str, remedy: str
) -> None:
    with pytest.raises(SettingsError) as refused:
        settings_queues(queues, routes)
    assert str(refused.value).startswith(field)
    assert remedy in str(refused.value).removeprefix(field)


def test_a_queue_with_tiers_of_its_own_may_have_a_name_near_to_another() -> None:
    assert settings_queues({"gateway2": NEW}, [])["gateway2"].tiers == ("a", "b")


@pytest.mark.parametrize("name", ["POSTROOM_QUEUES", "POSTROOM_ROUTES"])
def test_a_table_in_the_environment_that_is_not_json_is_refused(name: str) -> None:
    with pytest.raises(SettingsError, match=f"{name}.*JSON"):
        load_settings({"data_dir": "/nonexistent"}, environ={name: "[queues]"})


def test_queues_are_read_from_the_file_as_the_example_writes_them(tmp_path: Path) -> None:
    assert queue_settings.__doc__ is not None
    (tmp_path / "postroom.toml").write_text(queue_settings.__doc__.split("\n", 2)[2])
    settings = load_settings({"data_dir": tmp_path}, environ={})
    queues = queues_of(settings.queues, settings.routes)
    assert queues["gateway"].auto_ack_after == {}
    assert dict(queues["alerts"].guards) == {"page": 5, "mail": 10}
    assert queues.of(event("webhook")).queue == "alerts"
    assert queues["alerts"].tier_of(event("webhook", "disk.critical")) == "page"
