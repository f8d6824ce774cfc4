import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { EventId } from '../../../src/core/ids.ts'
import { ROOM_VERSIONS } from '../../../src/core/room-version.ts'
import { CASES, casesOf, type Forgery, forge } from './forgery.ts'
import { inspect, inspectLoaded } from './inspection.ts'
import { startWatchedServer, type WatchedServer } from './server.ts'
import { BETA, WatchedRoom } from './watched-room.ts'

let server: WatchedServer
beforeAll(async () => {
  server = await startWatchedServer()
})
afterAll(() => server.close())

/** Has the server receive it alone. */
async function receive(room: WatchedRoom, forgery: Forgery): Promise<void> {
  if (!forgery.json) return
  const [received] = await server.engine.receiver.receive(BETA, room.id, [forgery.json])
  room.mustBeExpected(forgery, received!)
}

describe.each(ROOM_VERSIONS)('version $id', (version) => {
  it('malformed events that a server sends come to nothing', async () => {
    const room = new WatchedRoom(version, `direct-${version.id}`)
    await room.open(server)
    await new WatchedRoom(version, 'other', room.base.other).open(server)
    const refused: EventId[] = []
    const cases = casesOf(version)
    for (const malformed of cases) {
      const forgery = forge(malformed, room.fixture)
      await receive(room, forgery)
      await room.mend(server)
      refused.push(forgery.eventId)
    }
    expect(cases.length).toBeGreaterThan(CASES.length * 0.7)
    await inspect(server, room, refused)
    await server.restart()
    await inspectLoaded(server, room)
  })
})

it('every malformed event is sent in some version', () => {
  expect(new Set(ROOM_VERSIONS.flatMap(casesOf)).size).toBe(CASES.length)
})
