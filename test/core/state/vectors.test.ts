import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { type Pdu, referencedId } from '../../../src/core/event/format.ts'
import type { EventId } from '../../../src/core/ids.ts'
import { roomVersion } from '../../../src/core/room-version.ts'
import { eventIdOf } from '../../../src/core/signing/event-hash.ts'
import { HeldEvents, nidsOf } from './held-events.ts'

interface Vector {
  readonly clause: string
  readonly version: string
  /** In an order in which auth events come first. */
  readonly events: readonly Pdu[]
  /** Each state as the places of its events. */
  readonly states: readonly (readonly number[])[]
  readonly resolved: readonly number[]
}

const VECTORS: readonly Vector[] = JSON.parse(
  readFileSync(new URL('../../vectors/state-resolution.json', import.meta.url), 'utf8'),
)

function hold({ version: id, events }: Vector): HeldEvents {
  const version = roomVersion(id)!
  const held = new HeldEvents(version)
  const nids = new Map<EventId, number>()
  for (const pdu of events) {
    const auth = pdu.auth_events.map((reference) => nids.get(referencedId(reference))!)
    const event = held.hold(eventIdOf(version, pdu), pdu, auth)
    nids.set(event.id, event.nid)
  }
  return held
}

test.each(VECTORS)('$clause', async (vector) => {
  const held = hold(vector)
  const states = vector.states.map((places) => held.stateOf(places.map((place) => place + 1)))
  for (const order of [states, states.toReversed()]) {
    const resolved = await held.resolve(order)
    expect(nidsOf(resolved).map((nid) => nid - 1)).toEqual(vector.resolved)
  }
})
