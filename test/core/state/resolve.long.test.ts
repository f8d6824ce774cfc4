import { describe, expect, it } from 'vitest'
import { referencedId } from '../../../src/core/event/format.ts'
import type { EventId } from '../../../src/core/ids.ts'
import { ROOM_VERSIONS, roomVersion } from '../../../src/core/room-version.ts'
import { EMPTY_STATE, type StateMap, setState } from '../../../src/core/state/trie.ts'
import { HeldEvents, nidsOf } from './held-events.ts'
import { SeededRandom } from './random.ts'
import { conflictsIn, randomRoom } from './random-room.ts'
import type { SimulatedRoom } from './simulated-room.ts'

const ROOMS_PER_VERSION = 9
const ARRIVALS = 10

/** An order in which each event comes after those that it refers to, as another server may have received them. */
function arrival(room: SimulatedRoom, random: SeededRandom): number[] {
  const waiting = new Map(room.places.map(({ nid, prev, auth }) => [nid, new Set([...prev, ...auth])]))
  const order: number[] = []
  while (waiting.size > 0) {
    const ready = [...waiting].filter(([, references]) => references.size === 0).map(([nid]) => nid)
    const next = random.pick(ready)
    order.push(next)
    waiting.delete(next)
    for (const references of waiting.values()) references.delete(next)
  }
  return order
}

/** The state after each event, worked out by a server that received them in this order. */
async function statesOnArrival(room: SimulatedRoom, order: readonly number[], random: SeededRandom) {
  const held = new HeldEvents(room.version)
  const own = new Map<number, number>()
  const after = new Map<EventId, StateMap>()
  for (const nid of order) {
    const { id, pdu } = room.at(nid)
    const states = pdu.prev_events.map((reference) => after.get(referencedId(reference))!)
    const before = await held.resolve(random.shuffled(states))
    const event = held.hold(
      id,
      pdu,
      room.placeOf(nid).auth.map((auth) => own.get(auth)!),
    )
    own.set(nid, event.nid)
    after.set(id, event.keyId === undefined ? before : setState(before, event.keyId, event.nid))
  }
  const final = await held.resolve(random.shuffled([...after.values()]))
  return { held, after, final }
}

describe('the resolution of states', () => {
  it.each(ROOM_VERSIONS)(
    'is the same whatever order events arrive and states are given in: version $id',
    async (version) => {
      let mixtures = 0
      for (let seed = 0; seed < ROOMS_PER_VERSION; seed++) {
        const random = new SeededRandom(seed)
        const room = await randomRoom(version, random, { attempts: 60 })
        const all = await room.resolve(room.places.map((place) => place.after))
        for (let round = 0; round < ARRIVALS; round++) {
          const { held, after, final } = await statesOnArrival(room, arrival(room, random), random)
          for (const place of room.places) {
            const state = after.get(room.at(place.nid).id)!
            expect(held.idsOf(state), `seed ${seed}`).toEqual(room.idsOf(place.after))
          }
          expect(held.idsOf(final), `seed ${seed}`).toEqual(room.idsOf(all))
        }
        mixtures += room.merges.filter(({ states, resolved }) => !states.includes(resolved)).length
      }
      expect(mixtures).toBeGreaterThan(20)
    },
  )

  it('asks for nothing where there is no conflict', async () => {
    const random = new SeededRandom(3)
    const room = await randomRoom(roomVersion('12')!, random, { attempts: 60 })
    const state = room.places.at(-1)!.after
    const loads = room.loads
    expect(await room.resolve([])).toBe(EMPTY_STATE)
    expect(await room.resolve([state])).toBe(state)
    expect(await room.resolve([state, state])).toBe(state)
    expect(await room.resolve([state, room.stateOf(nidsOf(state))])).toBe(state)
    expect(room.loads).toBe(loads)
  })

  it.each(['1', '10', '12'])('is one of the states, and not a copy, where that has won: version %s', async (id) => {
    let winners = 0
    for (let seed = 0; seed < 10; seed++) {
      const random = new SeededRandom(seed)
      const room = await randomRoom(roomVersion(id)!, random, { attempts: 60 })
      for (const { states, resolved } of await conflictsIn(room, random)) {
        const same = states.find((each) => room.idsOf(each).join() === room.idsOf(resolved).join())
        if (same === undefined) continue
        winners++
        expect(states).toContain(resolved)
      }
    }
    expect(winners).toBeGreaterThan(10)
  })
})
