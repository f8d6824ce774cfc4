"""Encodes JSON with canonicaljson, for comparison. On stdin a list of trees per line, on stdout a list of their texts per line."""

import importlib.metadata
import json
import sys

from canonicaljson import encode_canonical_json


def say(message):
    print(json.dumps(message), flush=True)


say({"peer": f"canonicaljson {importlib.metadata.version('canonicaljson')}"})
for line in sys.stdin:
    say({"answers": [encode_canonical_json(tree).decode() for tree in json.loads(line)["trees"]]})
