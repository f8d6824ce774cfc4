import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Json } from '../../support/api.ts'
import { type House, inRoom, openHouse, type Person } from '../people.ts'

let house: House
let alice: Person

beforeAll(async () => {
  house = await openHouse()
  alice = await house.person('alice')
})
afterAll(() => house.close())

describe('state beyond a checkpoint', () => {
  it('is the same after a restart, key by key, odd ones too', async () => {
    const room = await alice.createRoom()
    const keys = [
      '',
      '__proto__',
      'constructor',
      'toString',
      ' ',
      '%',
      '\\',
      "'",
      '"',
      'ключ',
      '🔑',
      '\u2028',
      '/a/b',
      '{1,2}',
    ]
    for (let round = 0; round < 90; round++) {
      await Promise.all(keys.map((key) => alice.setState(room, 'm.test', { round, key }, key)))
    }
    const state = async (): Promise<Json[]> =>
      (await alice.call('GET', inRoom(room, '/state')))
        .map(({ unsigned: _, ...event }: Json) => event)
        .toSorted((a: Json, b: Json) => (a.event_id < b.event_id ? -1 : 1))
    const before = await state()
    const [checkpoint] = await house.server.database.db.query<{ seq: number }>(
      'SELECT max(seq) AS seq FROM state_checkpoint JOIN room USING (room_nid) WHERE room_id = $1',
      [room],
    )
    expect(checkpoint!.seq).toBeGreaterThanOrEqual(1000)
    await house.restart()
    expect(await state()).toEqual(before)
    for (const key of keys) {
      const path = inRoom(room, `/state/m.test/${encodeURIComponent(key)}`)
      expect(await alice.call('GET', path)).toEqual({ round: 89, key })
    }
  })
})
