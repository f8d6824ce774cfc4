"""Resolves states with Synapse, for comparison. One JSON object per line on stdin and on stdout.

Question: {"version", "events": [{"id", "pdu"}], "conflicts": [[[place in events, ...], ...], ...]}, a list of states per conflict.
Answer:   {"answers": [[place in events, ...], ...]}, or {"error"}. The first line out is {"peer"}, the release.
"""

import json
import sys

import synapse
import synapse.storage  # before synapse.state: the other way round, these modules import one another in a circle
from synapse.api.room_versions import KNOWN_ROOM_VERSIONS, StateResolutionVersions
from synapse.events import make_event_from_dict
from synapse.state import v1, v2
from synapse.storage.databases.main.event_federation import StateDifference


class Clock:
    async def sleep(self, _duration):
        pass


class Room:
    """Answers what a resolution asks about a room, by walking sets: slow and plain."""

    def __init__(self, events):
        self.events = events
        self.chains = {}

    async def get_events(self, ids, allow_rejected=False):
        return {each: self.events[each] for each in ids if each in self.events}

    async def get_auth_chain_difference(self, _room_id, state_sets, conflicted, _unstored):
        chains = [set().union(*map(self.chain, state_set)) for state_set in state_sets]
        difference = set.union(*chains) - set.intersection(*chains)
        subgraph = None if conflicted is None else self.between(conflicted)
        return StateDifference(auth_difference=difference, conflicted_subgraph=subgraph)

    def chain(self, event_id):
        """The event and all of its auth chain."""
        if event_id not in self.chains:
            found, pending = set(), [event_id]
            while pending:
                current = pending.pop()
                if current not in found:
                    found.add(current)
                    pending.extend(self.events[current].auth_event_ids())
            self.chains[event_id] = found
        return self.chains[event_id]

    def between(self, ends):
        below = set().union(*map(self.chain, ends))
        return {each for each in below if self.chain(each) & ends}


def run(coroutine):
    """The result of a coroutine that never waits."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise RuntimeError("the resolution waits for something")


def answer(question):
    version = KNOWN_ROOM_VERSIONS[question["version"]]
    events = [make_event_from_dict(each["pdu"], version) for each in question["events"]]
    for event, asked in zip(events, question["events"]):
        if event.event_id != asked["id"]:
            raise ValueError(f"{asked['id']} is {event.event_id} here")
    room = Room({event.event_id: event for event in events})
    places = {event.event_id: place for place, event in enumerate(events)}
    resolved = (resolve(version, room, events, states) for states in question["conflicts"])
    return {"answers": [sorted(places[each] for each in state.values()) for state in resolved]}


def resolve(version, room, events, states):
    maps = [{(events[at].type, events[at].state_key): events[at].event_id for at in state} for state in states]
    room_id = events[0].room_id
    if version.state_res == StateResolutionVersions.V1:
        return run(v1.resolve_events_with_store(room_id, version, maps, None, room.get_events))
    return run(v2.resolve_events_with_store(Clock(), room_id, version, maps, None, room))


def say(message):
    print(json.dumps(message), flush=True)


def main():
    say({"peer": f"Synapse {synapse.__version__}"})
    for line in sys.stdin:
        try:
            say(answer(json.loads(line)))
        except Exception as error:
            say({"error": repr(error)})


main()
