import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { EventId } from '../../../src/core/ids.ts'
import type { ReadJson } from '../../../src/core/json.ts'
import { ROOM_VERSIONS } from '../../../src/core/room-version.ts'
import type { Received } from '../../../src/domain/rooms/receive/received.ts'
import { viewRoom } from '../../federation/room-view.ts'
import { mapConcurrently } from '../../support/api.ts'
import type { ForgedRoom } from '../forge.ts'
import { isCitable } from './citable.ts'
import { casesByTurns, type Forgery, forge } from './forgery.ts'
import { auditAll, mustSpeak } from './inspection.ts'
import { startWatchedServer, type WatchedServer } from './server.ts'
import { ALPHA, jsonOf, WatchedRoom } from './watched-room.ts'

let server: WatchedServer
beforeAll(async () => {
  server = await startWatchedServer()
})
afterAll(() => server.close())

/** What a resident server tells, with a malformed event in it. */
type Lie = (
  room: WatchedRoom,
  forgery: Forgery & { readonly json: ReadJson },
) => ForgedRoom & { readonly join?: ReadJson }

const lies: Record<string, Lie> = {
  'beside the state'(room, { json, companions }) {
    const shown = room.shown()
    return { state: [...shown.state, json], authChain: [...shown.authChain, ...companions] }
  },
  'in place of a part of the state'(room, { json, read, companions }) {
    const key = read && room.underKeyOf(read.pdu)
    const state = [...room.stateBeforeJoin().values()].filter(({ eventId }) => eventId !== key)
    return { state: [json, ...state.map(jsonOf)], authChain: [...companions, ...room.base.events.values()].map(asJson) }
  },
  'in the auth chain'(room, { json, companions }) {
    const shown = room.shown()
    return { state: shown.state, authChain: [json, ...companions, ...shown.authChain] }
  },
  'as the join'(room, { json, companions }) {
    const shown = room.shown()
    return { state: shown.state, authChain: [...companions, ...shown.authChain], join: json }
  },
}

function asJson(event: ReadJson | Parameters<typeof jsonOf>[0]): ReadJson {
  return 'json' in event ? jsonOf(event) : event
}

/** Whatever was made of the room, the malformed event is no part of it, unless as a state that is right by what it cites. */
async function mustBeUnharmed(room: WatchedRoom, forgery: Forgery, received: Received, isJoin: boolean): Promise<void> {
  const { malformed, eventId } = forgery
  const view = await viewRoom(server.db, room.id)
  const what = `version ${room.version.id}: ${malformed.kind}: ${malformed.name}`
  const standing = view?.events.get(eventId)
  const isRedactedCopy = isJoin && malformed.expected === 'redacted'
  const allowed = isCitable(room, forgery) ? ['outlier', 'none'] : ['rejected', 'none']
  const is = standing === undefined ? 'none' : (standing.standing ?? 'accepted')
  const isOther = room.base.events.has(eventId)
  if (!isOther && !isRedactedCopy && !allowed.includes(is) && !(isJoin && is === 'rejected'))
    throw new Error(`${what} stands as ${is}`)
  const accepted = [...(view?.events.values() ?? [])].filter((event) => event.standing === null).map(({ id }) => id)
  const joined: EventId[] = received.kind === 'accepted' ? [isJoin ? eventId : room.join.eventId] : []
  expect(accepted, what).toEqual(joined)
  expect(view?.extremities ?? [], what).toEqual(joined)
  if (received.kind !== 'accepted') {
    expect(await server.engine.resident.events(room.id, [eventId]), what).toHaveLength(is === 'outlier' ? 1 : 0)
    return
  }
  if (isJoin) return
  const honest = new Map(
    [...room.base.states.get(room.join.eventId)!].map(([key, event]) => [key.replace('|', ' '), event.eventId]),
  )
  for (const [key, id] of view!.state) {
    if (id !== honest.get(key)) expect([id, is], `${what}: ${key}`).toEqual([eventId, 'outlier'])
  }
}

describe.each(Object.keys(lies))('%s', (name) => {
  it.each(ROOM_VERSIONS)('a malformed event comes to nothing when a room of version $id is joined', async (version) => {
    const cases = casesByTurns(version)
    const fates = await mapConcurrently(cases, 8, async (malformed, index) => {
      const room = new WatchedRoom(version, `${Object.keys(lies).indexOf(name)}-${version.id}-${index}`)
      const forgery = forge(malformed, room.fixtureAtJoin())
      const { json } = forgery
      if (!json) return 'no JSON'
      const { join = jsonOf(room.join), ...shown } = lies[name]!(room, { ...forgery, json })
      const received = await server.engine.processJoin(ALPHA, version, room.id, join, shown)
      await mustBeUnharmed(room, forgery, received, name === 'as the join')
      if (received.kind === 'accepted' && name !== 'as the join' && index % 4 === 0) {
        await mustSpeak(server, room.id)
        await auditAll(server, room)
      }
      return received.kind
    })
    expect(server.errors).toEqual([])
    if (name !== 'as the join')
      expect(fates.filter((fate) => fate === 'accepted').length).toBeGreaterThan(cases.length / 3)
  })
})
