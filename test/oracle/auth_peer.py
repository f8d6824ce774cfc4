"""Judges events with Synapse, for comparison. One JSON object per line on stdin and on stdout.

Question: {"version", "cases": [{"event", "state": [event, ...], "cited": [{"pdu", "isRejected"}, ...]}, ...]}, the cited events being
those that the event names in its auth_events.
Answer: {"answers": [{"rules", "citations", "id", "hash", "redacted"}, ...]}, or {"error"}: `rules` and `citations` are null where the
event is allowed, else {"reason", "raised"}; `raised` says that the refusal was an error of another kind. The first line out is
{"peer"}, the release.
"""

import hashlib
import json
import logging
import sys

import synapse
import synapse.storage  # before synapse.event_auth: the other way round, these modules import one another in a circle
from synapse.api.errors import SynapseError
from synapse.api.room_versions import KNOWN_ROOM_VERSIONS
from synapse.crypto.event_signing import compute_content_hash
from synapse.event_auth import (
    check_state_dependent_auth_rules,
    check_state_independent_auth_rules,
    validate_event_for_room_version,
)
from synapse.events import make_event_from_dict
from synapse.events.utils import prune_event
from unpaddedbase64 import encode_base64

logging.disable(logging.CRITICAL)


class Store:
    def __init__(self, events):
        self.events = events

    async def get_events(self, ids, **_):
        return {each: self.events[each] for each in ids if each in self.events}


def run(coroutine):
    """Runs a coroutine that never waits."""
    try:
        coroutine.send(None)
    except StopIteration:
        return
    raise RuntimeError("the rules wait for something")


def refusal_of(rule):
    try:
        rule()
        return None
    except SynapseError as refusal:
        return {"reason": refusal.msg, "raised": False}
    except Exception as error:
        return {"reason": f"{type(error).__name__}: {error}", "raised": True}


def judge(version, case):
    event = make_event_from_dict(case["event"], version)
    state = [make_event_from_dict(each, version) for each in case["state"]]
    known = {each.event_id: each for each in state}
    for each in case["cited"]:
        cited = make_event_from_dict(each["pdu"], version, rejected_reason="rejected" if each["isRejected"] else None)
        known[cited.event_id] = cited
    store = Store(known)

    def rules():
        validate_event_for_room_version(event)
        if event.type == "m.room.create":
            run(check_state_independent_auth_rules(store, event))
        else:
            check_state_dependent_auth_rules(event, state)

    redacted = prune_event(event).get_dict()
    redacted.pop("unsigned", None)
    return {
        "rules": refusal_of(rules),
        "citations": refusal_of(lambda: run(check_state_independent_auth_rules(store, event))),
        "id": event.event_id,
        "hash": encode_base64(compute_content_hash(event.get_pdu_json(), hashlib.sha256)[1]),
        "redacted": redacted,
    }


def say(message):
    print(json.dumps(message), flush=True)


say({"peer": f"Synapse {synapse.__version__}"})
for line in sys.stdin:
    question = json.loads(line)
    try:
        version = KNOWN_ROOM_VERSIONS[question["version"]]
        say({"answers": [judge(version, case) for case in question["cases"]]})
    except Exception as error:
        say({"error": f"{type(error).__name__}: {error}"})
