"""Subscribers of a channel are called back until the subscription is closed."""

from postroom.store.engine.listeners import Listeners


def test_each_hears_its_channel_until_it_has_closed() -> None:
    listeners, first, second = Listeners(), list[str](), list[str]()
    subscription = listeners.add("jobs", first.append)
    listeners.add("jobs", second.append)
    listeners.add("pauses", second.append)
    listeners.call("jobs", "1")
    subscription.close()
    subscription.close()
    listeners.call("jobs", "2")
    listeners.call("pauses", "all")
    listeners.call("nobody", "3")
    assert (first, second) == (["1"], ["1", "2", "all"])
    assert listeners.channels() == ["jobs", "pauses"]
