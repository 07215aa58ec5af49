# SPDX-License-Identifier: GPL-2.0
"""JSON Schema, as far as our schemas go: a keyword that is not known here is an
error."""
import re

from .. import schemas

KINDS = {"object": (dict, "an object"), "array": (list, "a list"),
         "string": (str, "text"), "boolean": (bool, "true or false"),
         "null": (type(None), "null"), "integer": (int, "an integer"),
         "number": ((int, float), "a number")}
COMMENTS = {"$comment", "$schema", "$defs", "title", "description"}


def is_a(value, kind):
    """JSON's true is not 1."""
    return isinstance(value, KINDS[kind][0]) and (
        kind == "boolean" or not isinstance(value, bool))


def listed(value):
    """type may be one name or several."""
    return value if isinstance(value, list) else [value]


def same(one, other):
    return one == other and isinstance(one, bool) == isinstance(other, bool)


# keyword: does a value have it?  Of another kind than it is about, it does.
KEYWORDS = {
    "type": lambda want, value: any(is_a(value, kind)
                                    for kind in listed(want)),
    "enum": lambda want, value: any(same(one, value) for one in want),
    "const": same,
    "minimum": lambda want, value: not is_a(value, "number") or value >= want,
    "maximum": lambda want, value: not is_a(value, "number") or value <= want,
    "pattern": lambda want, value: not isinstance(value, str) or
    re.search(want, value) is not None,
    "required": lambda want, value: not isinstance(value, dict) or
    set(want) <= value.keys()}


class Schema:
    """That of a program of ours."""

    def __init__(self, program):
        self.whole = getattr(schemas, program.upper())

    def part(self, name):
        return self.whole["$defs"][name.rpartition("/")[2]]

    def parts(self, schema, value):
        """(schema, value) of what a value has to match, or its members."""
        if "$ref" in schema:
            yield self.part(schema["$ref"]), value
        if isinstance(value, list):
            yield from ((schema.get("items", True), one) for one in value)
        if isinstance(value, dict):
            known = schema.get("properties", {})
            more = schema.get("additionalProperties", True)
            yield from ((known.get(name, more), one)
                        for name, one in value.items())

    def valid(self, value, schema=None):
        """Does a value match it, or one of its parts?"""
        schema = self.whole if schema is None else schema
        if isinstance(schema, bool):
            return schema
        return all(KEYWORDS[word](want, value) for word, want in schema.items()
                   if word not in COMMENTS | {
                       "$ref", "items", "properties", "additionalProperties",
                       "anyOf"}) and any(
            self.valid(value, one) for one in schema.get("anyOf", [True])
        ) and all(self.valid(one, form)
                  for form, one in self.parts(schema, value))

    def accepted(self, schema):
        if "title" in schema:
            return schema["title"]
        if "$ref" in schema:
            return self.accepted(self.part(schema["$ref"]))
        if "enum" in schema:
            return "one of " + ", ".join(schema["enum"])
        return " or ".join(KINDS[kind][1] for kind in listed(schema["type"]))
