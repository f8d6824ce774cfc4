import { expect, it } from 'vitest'
import { ByteBudget } from '../../../src/core/byte-budget.ts'
import type { EventId } from '../../../src/core/ids.ts'
import { createEventCache } from '../../../src/domain/rooms/room/event-cache.ts'
import { outlierRow, RoomEvent } from '../../../src/domain/rooms/room/room-event.ts'
import type { EventRow } from '../../../src/store/events/events.ts'

const db = { query: () => Promise.reject(new Error('nothing is read here')) }

function rowOf(nid: number): EventRow {
  const place = { event_nid: nid, room_nid: 1, sender_nid: 1, event_id: `$e${nid}` as EventId, origin_server_ts: 1 }
  return outlierRow({ ...place, type: 'x', json: '{}', key_id: null, standing: null, reason: null, auth_nids: null })
}
const eventOf = (nid: number) => new RoomEvent(rowOf(nid))

it('of events that got relations before they were read, it remembers as many as it is to, and not many more', () => {
  const recentTargets = 8
  const cache = createEventCache({ db, budget: new ByteBudget(1_000_000), recentTargets })
  const events = Array.from({ length: 10 * recentTargets }, (_, nid) => eventOf(nid + 1))
  cache.related(events.map(({ id }) => id))
  for (const event of events) cache.put(event)
  const known = events.map(({ hasRelations }) => hasRelations)
  expect(known.slice(-recentTargets)).not.toContain(false)
  expect(known.slice(0, -2 * recentTargets)).not.toContain(true)
})

it('does not take in again what was forgotten while somebody read it', () => {
  const recentForgotten = 8
  const cache = createEventCache({ db, budget: new ByteBudget(1_000_000), recentForgotten })
  const rows = Array.from({ length: 10 * recentForgotten }, (_, nid) => rowOf(nid + 1))
  for (const row of rows) cache.adopt(row)
  cache.forget(rows.map(({ event_nid }) => event_nid))
  cache.forgetAll()
  for (const row of rows) expect(cache.adopt(row).id).toBe(row.event_id)
  const known = rows.map(({ event_nid }) => cache.get(event_nid) !== undefined)
  expect(known.slice(-recentForgotten)).not.toContain(true)
  // What is long ago needs no memory.
  expect(known.slice(0, -2 * recentForgotten)).not.toContain(false)
})
