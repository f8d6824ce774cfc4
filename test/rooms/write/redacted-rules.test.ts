import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Json } from '../../support/api.ts'
import { type House, inRoom, openHouse, type Person } from '../people.ts'

let house: House
let alice: Person
let bob: Person
let carol: Person

beforeAll(async () => {
  house = await openHouse()
  alice = await house.person('alice')
  bob = await house.person('bob')
  carol = await house.person('carol')
})
afterAll(() => house.close())

it('a redacted event is shown without its content and judges as before, also after a restart', async () => {
  const room = await alice.createRoom({
    preset: 'public_chat',
    room_version: '10',
    power_level_content_override: { invite: 70, 'x.note': 'secret' },
  })
  await bob.join(room)
  const state: Json[] = (await alice.call('GET', inRoom(room, '/state'))) as never
  const levels = state.find(({ type }) => type === 'm.room.power_levels')!
  expect(levels.content).toMatchObject({ invite: 70, 'x.note': 'secret' })
  await alice.call('PUT', inRoom(room, `/redact/${encodeURIComponent(levels.event_id)}/1`), {})
  for (let restarts = 0; restarts < 2; restarts++) {
    const shown = await alice.call('GET', inRoom(room, '/state/m.room.power_levels'))
    expect(shown).not.toHaveProperty('invite')
    expect(shown).not.toHaveProperty('x.note')
    const refused = await bob.ask('POST', inRoom(room, '/invite'), { user_id: carol.userId })
    expect(refused.status).toBe(403)
    expect(refused.body.error).toContain('70')
    await house.restart()
  }
})
