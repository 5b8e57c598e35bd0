"""Prints what is wrong with BODS 0.4 statements on standard input. Prints nothing if nothing is.

The schema is part of the package libcovebods. Only its data is read: the package itself is not imported.
"""

import importlib.util
import json
import pathlib
import sys

from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry, Resource

package = importlib.util.find_spec("libcovebods")
folder = pathlib.Path(package.submodule_search_locations[0]) / "data" / "schema-0-4-0"
schemas = [json.loads(file.read_text()) for file in folder.glob("*.json")]
registry = Registry().with_resources((each["$id"], Resource.from_contents(each)) for each in schemas if "$id" in each)
validator = Draft202012Validator({"$ref": "urn:statement"}, registry=registry, format_checker=FormatChecker())
statements = json.load(sys.stdin)
for error in validator.iter_errors(statements):
    print(error.json_path, error.message[:200])
records = [each.get("recordId") for each in statements]
for each in statements:
    details = each.get("recordDetails", {})
    for end in ("subject", "interestedParty"):
        value = details.get(end)
        if isinstance(value, str) and value not in records[: records.index(each["recordId"])]:
            print(each["recordId"], end, "points nowhere, or to a later statement")
