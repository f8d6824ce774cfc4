import { expect, it } from 'vitest'
import { ByteBudget } from '../../../src/core/byte-budget.ts'
import type { EventId } from '../../../src/core/ids.ts'
import { createEventCache } from '../../../src/domain/rooms/room/event-cache.ts'
import { outlierRow, RoomEvent } from '../../../src/domain/rooms/room/room-event.ts'

const db = { query: () => Promise.reject(new Error('nothing is read here')) }

function eventOf(nid: number): RoomEvent {
  const place = { event_nid: nid, room_nid: 1, sender_nid: 1, event_id: `$e${nid}` as EventId, origin_server_ts: 1 }
  return new RoomEvent(
    outlierRow({ ...place, type: 'x', json: '{}', key_id: null, standing: null, reason: null, auth_nids: null }),
  )
}

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
