"""The picture of a simulation: complete as a file, and safe whatever its title and groups are called."""

from xml.etree import ElementTree

from postroom_simulator.disciplines import DISCIPLINES
from postroom_simulator.picture import simulation_file, simulation_picture
from postroom_simulator.scenario import Destination, Scenario, TenantGroup
from postroom_simulator.simulator import Result, ScenarioWorkload, compare


def results() -> list[Result]:
    groups = (TenantGroup(name="big", burst=300), TenantGroup(name="small", tenants=5, burst=2))
    scenario = Scenario(tenants=groups, destinations={"default": Destination(median=1)})
    return list(compare(ScenarioWorkload(scenario), DISCIPLINES))


def test_the_file_is_an_svg_with_labelled_axes_its_own_style_and_no_script() -> None:
    text = simulation_file('<script>alert("1")</script> & more', results())
    root = ElementTree.fromstring(text)
    names = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert names == {"svg", "style", "rect", "text", "path"}
    said = [element.text or "" for element in root.iter() if element.tag.endswith("text")]
    assert said.count("wait, in seconds (logarithmic)") == 2
    assert {"big", "small", *DISCIPLINES, "alone", "100 %"} <= set(said)
    (style,) = [element.text or "" for element in root.iter() if element.tag.endswith("style")]
    assert "color-scheme: light dark" in style
    colours = {element.attrib["class"] for element in root.iter() if element.tag.endswith("rect")}
    assert {f".{colour} {{ fill" in style for colour in colours} == {True}


def test_on_a_page_the_picture_has_the_pages_style() -> None:
    assert "<style" not in simulation_picture("flood", results())
