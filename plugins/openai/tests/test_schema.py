"""JSON Schemas as the protocol's response_format: asked for strictly where servers can keep to them."""

import pytest
from pydantic import BaseModel

from modelgauge_openai.schema import response_format


def closed(**properties):
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


TEXT = {"type": "string"}
NESTED = closed(
    items={"type": "array", "items": closed(name=TEXT, kind={"enum": ["a", "b"]})}, on={"type": "boolean"}
)


@pytest.mark.parametrize(
    "schema",
    [
        closed(),
        closed(name=TEXT),
        NESTED,
        closed(either={"anyOf": [TEXT, {"type": "null"}]}),
        {**closed(one={"$ref": "#/$defs/one"}), "$defs": {"one": closed(name=TEXT)}},
    ],
)
def test_what_is_asked_for_strictly(schema):
    asked = response_format(schema)
    assert asked["type"] == "json_schema"
    assert asked["json_schema"] == {"name": "response", "strict": True, "schema": schema}


class Open(BaseModel):
    """A schema as pydantic writes it: other properties are allowed, and `age` may be missing."""

    name: str
    age: int = 0


@pytest.mark.parametrize(
    "schema",
    [
        Open.model_json_schema(),
        {**closed(name=TEXT), "required": []},
        {**closed(name=TEXT), "additionalProperties": True},
        closed(name={"type": "string", "minLength": 1}),
        closed(items={"type": "array", "items": Open.model_json_schema()}),
        closed(either={"anyOf": [TEXT, {"type": "object"}]}),
        {**closed(one={"$ref": "#/$defs/one"}), "$defs": {"one": {"not": TEXT}}},
        {"type": "array", "items": TEXT},
        {"anyOf": [closed(name=TEXT)]},
        {},
        closed(anything={}),
        closed(anything={"title": "Anything"}),
        closed(items={"type": "array"}),
        closed(maybe={"type": ["object", "null"]}),
        {
            **closed(one={"$ref": "#/$defs/one", "description": "the one"}),
            "$defs": {"one": closed(name=TEXT)},
        },
    ],
)
def test_what_is_not(schema):
    asked = response_format(schema)
    assert asked["json_schema"]["strict"] is False
    assert asked["json_schema"]["schema"] == schema


@pytest.mark.parametrize(
    "broken",
    [
        {"properties": []},
        {"properties": None},
        {"required": None},
        {"required": [["name"]]},
        {"$defs": []},
        {"anyOf": 3},
        {"items": "text"},
    ],
)
def test_a_schema_that_is_none_is_for_the_server_to_refuse(broken):
    asked = response_format({**closed(name=TEXT), **broken})
    assert asked["json_schema"]["strict"] is False


@pytest.mark.parametrize(
    ("title", "name"),
    [("Verdicts", "Verdicts"), ("two words", "response"), ("x" * 65, "response"), ("", "response")],
)
def test_the_title_is_the_name_where_it_can_be(title, name):
    assert response_format({**closed(name=TEXT), "title": title})["json_schema"]["name"] == name
