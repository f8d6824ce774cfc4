import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { waitUntil } from '../../support/wait.ts'
import { type House, inRoom, openHouse, type Person } from '../people.ts'

let house: House
let alice: Person

beforeAll(async () => {
  house = await openHouse()
  alice = await house.person('alice')
})
afterAll(() => house.close())

describe('a profile', () => {
  it('whose name and picture are set at once reaches rooms with both', async () => {
    const room = await alice.createRoom({ preset: 'public_chat' })
    const set = (field: string, value: string) =>
      alice.call('PUT', `/profile/${encodeURIComponent(alice.userId)}/${field}`, { [field]: value })
    for (let round = 0; round < 5; round++) {
      await Promise.all([set('displayname', `Alice ${round}`), set('avatar_url', `mxc://test/${round}`)])
      const member = await alice.call('GET', inRoom(room, `/state/m.room.member/${encodeURIComponent(alice.userId)}`))
      expect(member).toMatchObject({ displayname: `Alice ${round}`, avatar_url: `mxc://test/${round}` })
    }
  })

  it('is set whole, or changed in some fields, which reach rooms with one event', async () => {
    const bea = await house.person('bea')
    const room = await bea.createRoom({ preset: 'public_chat' })
    const path = `/profile/${encodeURIComponent(bea.userId)}`
    const whole = { displayname: 'Bea', avatar_url: 'mxc://test/1', 'org.example.a': [1], 'org.example.b': { x: null } }
    expect(await bea.ask('PUT', path, whole)).toEqual({ status: 200, body: {} })
    expect(await bea.call('GET', path)).toEqual(whole)
    const changed = { displayname: 'B.', avatar_url: 'mxc://test/1', 'org.example.b': { x: null }, 'org.example.c': 3 }
    const change = { displayname: 'B.', 'org.example.a': null, 'org.example.c': 3 }
    expect(await bea.ask('PATCH', path, change)).toEqual({ status: 200, body: changed })
    expect(await bea.call('GET', path)).toEqual(changed)
    const { chunk } = await bea.call('GET', inRoom(room, '/messages?dir=b&limit=100'))
    const names = chunk
      .filter(
        ({ type, state_key }: { type: string; state_key?: string }) =>
          type === 'm.room.member' && state_key === bea.userId,
      )
      .map(({ content }: { content: object }) => content)
    expect(names).toMatchObject([
      { displayname: 'B.', avatar_url: 'mxc://test/1' },
      { displayname: 'Bea', avatar_url: 'mxc://test/1' },
      { membership: 'join' },
    ])
    expect(await bea.ask('PUT', path, { 'org.example.c': 4 })).toEqual({ status: 200, body: {} })
    expect(await bea.call('GET', path)).toEqual({ 'org.example.c': 4 })
  })

  it('that changes while its user comes into a room is the new one there', async () => {
    const dan = await house.person('dan')
    const room = await alice.createRoom({ preset: 'public_chat' })
    const holder = new pg.Client(house.server.database.connection)
    await holder.connect()
    try {
      // Nothing is written to rooms meanwhile; the join has read the old name.
      await holder.query('BEGIN')
      await holder.query('LOCK TABLE event IN SHARE MODE')
      const joining = dan.join(room)
      await waitUntil('the join to be written', async () => {
        const waiting = `SELECT 1 AS one FROM pg_locks WHERE relation = 'event'::regclass AND NOT granted`
        return (await house.server.database.db.query(waiting)).length > 0
      })
      await dan.call('PUT', `/profile/${encodeURIComponent(dan.userId)}/displayname`, { displayname: 'Daniel' })
      await holder.query('COMMIT')
      await joining
    } finally {
      await holder.end()
    }
    const member = await alice.call('GET', inRoom(room, `/state/m.room.member/${encodeURIComponent(dan.userId)}`))
    expect(member).toMatchObject({ membership: 'join', displayname: 'Daniel' })
  })

  it('is not changed in part if one of its fields is refused, nor by others', async () => {
    const cem = await house.person('cem')
    const path = `/profile/${encodeURIComponent(cem.userId)}`
    await cem.call('PUT', path, { displayname: 'Cem' })
    const refused: [object, number, string][] = [
      [{ displayname: 'x', avatar_url: 1 }, 400, 'M_BAD_JSON'],
      [{ displayname: 'x', 'NO NAME': 1 }, 400, 'M_INVALID_PARAM'],
      [{ displayname: 'x', ['a'.repeat(256)]: 1 }, 400, 'M_KEY_TOO_LARGE'],
      [{ displayname: 'x', 'org.example.a': 'y'.repeat(65_536) }, 400, 'M_PROFILE_TOO_LARGE'],
    ]
    for (const method of ['PUT', 'PATCH'] as const) {
      for (const [body, status, errcode] of refused) {
        expect(await cem.ask(method, path, body)).toMatchObject({ status, body: { errcode } })
      }
      expect(await alice.ask(method, path, { displayname: 'x' })).toMatchObject({ status: 403 })
    }
    expect(await cem.call('GET', path)).toEqual({ displayname: 'Cem' })
  })

  it('is changed also where one of the rooms refuses to hear of it', async () => {
    const room = await alice.createRoom({ preset: 'public_chat' })
    const broken = await alice.createRoom({ preset: 'public_chat' })
    await alice.setState(broken, 'm.room.join_rules', { join_rule: 'a rule of the future' })
    const path = `/profile/${encodeURIComponent(alice.userId)}/displayname`
    expect(await alice.ask('PUT', path, { displayname: 'Alix' })).toEqual({ status: 200, body: {} })
    const nameIn = async (id: string) =>
      (await alice.call('GET', inRoom(id, `/state/m.room.member/${encodeURIComponent(alice.userId)}`))).displayname
    expect(await nameIn(room)).toBe('Alix')
    expect(await nameIn(broken)).not.toBe('Alix')
  })
})
