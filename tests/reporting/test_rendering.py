"""Templates compile, escape and refuse unknown names; the plotting script is the one recorded."""

import ast
import hashlib
import re
from importlib.resources import files
from pathlib import Path

import pytest
from jinja2 import UndefinedError
from plotly import graph_objects, offline
from plotly.basedatatypes import BaseTraceType

import countermove
from countermove.reporting.page import SECTIONS
from countermove.reporting.rendering import (
    PLOTLY,
    PLOTLY_DIGEST,
    TRACES,
    breakable,
    environment,
    figure_data,
    plotting_script,
    render,
)

SOURCE = Path(countermove.__file__).parent
ASSETS = Path(str(files("countermove.reporting"))) / "assets"
SLY = "<script>alert(1)</script>"


def experiment(**more):
    page = {"title": "T", "lead": "", "figures": [], "tables": [], "note": ""}
    return render("experiment.html", **page | more)


def macro(name):
    return getattr(environment().get_template("macros.html").module, name)


def test_the_plotting_script_is_the_recorded_one_with_its_licence():
    content = (ASSETS / PLOTLY).read_bytes()
    assert hashlib.sha256(content).hexdigest() == PLOTLY_DIGEST
    assert (ASSETS / "plotly-LICENSE.txt").read_text().startswith("MIT License")
    assert "</script" not in plotting_script()


def test_the_plotting_script_is_the_version_that_plotly_draws_for():
    theirs = re.search(r"plotly\.js v([\d.]+)", offline.get_plotlyjs()[:200])
    ours = re.search(r"plotly\.js \(cartesian - minified\) v([\d.]+)", plotting_script()[:200])
    assert ours[1] == theirs[1]


def test_the_bundle_has_every_trace_that_it_is_said_to_have():
    found = re.findall(r'moduleType:"trace",name:"(\w+)"', plotting_script())
    assert set(found) == TRACES


def test_every_trace_type_that_we_draw_is_in_the_bundle():
    drawn = set()
    for file in SOURCE.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module == "plotly.graph_objects":
                kinds = [getattr(graph_objects, name.name) for name in node.names]
                drawn |= {k.__name__.lower() for k in kinds if issubclass(k, BaseTraceType)}
        if file.is_relative_to(SOURCE / "reporting"):
            drawn |= set(re.findall(r'"type": "(\w+)",\s*"mode"', text))
    drawn |= set(re.findall(r'type: "(\w+)"', (ASSETS / "page.js").read_text()))
    assert {"scatter", "bar", "heatmap"} <= drawn
    assert drawn <= TRACES


@pytest.mark.parametrize("name", environment().list_templates())
def test_every_template_compiles(name):
    assert environment().get_template(name).name == name


PAGES = [
    name for name in environment().list_templates() if name not in ("base.html", "macros.html")
]


def source(name):
    return environment().loader.get_source(environment(), name)[0]


def test_every_block_of_the_frame_is_filled_by_some_page():
    blocks = set(environment().get_template("base.html").blocks)
    assert blocks == {"title", "lead", "contents", "sections", "foot", "scripts"}
    filled = {block for name in PAGES for block in environment().get_template(name).blocks}
    assert filled == blocks


def test_every_template_is_rendered_by_some_module():
    python = "".join(file.read_text(encoding="utf-8") for file in SOURCE.rglob("*.py"))
    sections = {f"report/{section.anchor}.html" for section in SECTIONS}
    assert {name for name in PAGES if f'"{name}"' not in python} == sections


def test_every_macro_is_used():
    macros = set(re.findall(r"{% macro (\w+)", source("macros.html")))
    used = "".join(source(name) for name in (*PAGES, "macros.html"))
    python = "".join(file.read_text() for file in (SOURCE / "reporting").glob("*.py"))
    called = set(re.findall(r"(?:call |{{-? ?)(\w+)\(", used))
    assert macros <= called | set(re.findall(r'macro\("(\w+)"\)', python))


@pytest.mark.parametrize("name", PAGES)
def test_a_name_that_nobody_gave_is_an_error(name):
    with pytest.raises(UndefinedError):
        render(name)


def test_texts_of_an_experiment_are_escaped():
    tables = [{"title": SLY, "head": [SLY, SLY], "rows": [[SLY, SLY]]}]
    figures = [{"content": {"data": [], "layout": {"title": SLY}}, "description": SLY}]
    page = experiment(title=SLY, lead=SLY, tables=tables, figures=figures, note=SLY)
    assert "<script>alert" not in page
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 8


def test_a_page_asks_nothing_of_the_network_and_names_its_maker():
    page = experiment()
    assert "default-src 'none'" in page
    assert not re.search(r"<(script|img|link|iframe)[^>]+(src|href)=", page)
    assert f"Made by Countermove {countermove.__version__}." in page


def test_a_stored_figure_is_embedded_whole():
    figure = graph_objects.Figure([graph_objects.Bar(x=["a"], y=[0.5])])
    content = figure_data(figure)
    assert content["data"][0]["y"] == [0.5]
    page = macro("stored_figure")(content, "one bar")
    assert 'aria-label="one bar"' in page
    assert '"type":"bar"' in page


def test_cells_are_escaped_unless_they_are_markup():
    table = macro("table")(["<h>", "b"], [["<r>", "<em>1</em>"]])
    for text in ("&lt;h&gt;", "&lt;r&gt;", "&lt;em&gt;1&lt;/em&gt;"):
        assert text in table


def test_headings_have_a_scope():
    table = macro("table")(["a", "b"], [["r", "1"]])
    assert '<th scope="col">a</th>' in table
    assert '<th scope="row">r</th>' in table
    assert '<td class="number">1</td>' in table


def test_a_captioned_table_is_a_region_the_keyboard_reaches():
    table = macro("table")(["a"], [["r"]], 'Who "pays"')
    assert "<caption><span>Who &#34;pays&#34;</span></caption>" in table
    assert 'role="region" tabindex="0" aria-label="Who &#34;pays&#34;"' in table
    assert "tabindex" not in macro("table")(["a"], [["r"]])


def test_long_names_may_break_between_their_words():
    assert breakable("MaxBillAmount_6") == "Max<wbr>Bill<wbr>Amount_<wbr>6"
    assert breakable("<b>") == "&lt;b&gt;"


def test_a_missing_stage_names_its_command():
    sentence = macro("absent")("Nothing.", "kedro run --pipeline=x")
    assert sentence.startswith('<p class="absent">Nothing. Make it with <code>')
    assert macro("command")("a <b>").count("&lt;b&gt;") == 1


def test_a_long_command_may_break_after_a_comma_and_reads_as_it_is_typed():
    line = "kedro run --params a=1,b=2"
    written = macro("command")(line)
    assert "a=1,<wbr>b=2" in written
    assert re.sub(r"<[^>]*>", "", written) == line
