"""Prints what is wrong with FollowTheMoney entities on standard input, one a line. Prints nothing if nothing is.

`schema.validate` forgives absent required properties, and `from_dict` drops bad values: both are checked here.
"""

import json
import sys

from followthemoney import model
from followthemoney.exc import InvalidData


def faults(data):
    schema = model.get(data.get("schema"))
    if schema is None or schema.abstract:
        return [f"no schema {data.get('schema')}"]
    found = []
    try:
        schema.validate(data)
    except InvalidData as error:
        found.append(f"{error}: {error.errors}")
    properties = data.get("properties", {})
    found += [f"{name} is required" for name in schema.required if not properties.get(name)]
    for name, values in properties.items():
        prop = schema.get(name)
        if prop is None:
            found.append(f"{schema.name} has no property {name}")
            continue
        for value in values:
            clean = prop.type.clean(value)
            if clean is None:
                found.append(f"{name}: {value!r} is no {prop.type.name}")
            elif clean != value:
                found.append(f"{name}: {value!r} is written {clean!r}")
    return found


entities = [json.loads(line) for line in sys.stdin]
ids = {entity["id"] for entity in entities}
for entity in entities:
    for fault in faults(entity):
        print(entity["id"], fault)
    for name in ("director", "organization", "owner", "asset"):
        for value in entity["properties"].get(name, []):
            if value not in ids:
                print(entity["id"], name, "points nowhere")
