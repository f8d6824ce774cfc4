import { afterAll, beforeAll, describe, expect, it, test } from 'vitest'
import { type House, openHouse } from '../rooms/people.ts'
import { type Account, type Json, login, PASSWORD } from '../support/api.ts'
import { deviceMaker } from './key-maker.ts'
import { idsOfPeople, type KeyedPerson, keyedPerson, listsOf } from './people-with-keys.ts'

let house: House
let alice: KeyedPerson
let bob: KeyedPerson
let carol: KeyedPerson

beforeAll(async () => {
  house = await openHouse()
  alice = await keyedPerson(house, 'alice')
  bob = await keyedPerson(house, 'bob')
  carol = await keyedPerson(house, 'carol')
})
afterAll(() => house.close())

const NOTHING = { changed: [], left: [] }

/** What a sync says after something was done, and `keys/changes` between the same tokens. */
async function tellsAfter(
  person: KeyedPerson,
  act: () => Promise<unknown>,
): Promise<{ changed: string[]; left: string[] }> {
  const { next_batch: since } = await person.sync()
  await act()
  const answer = await person.sync(`&since=${since}`)
  const between = `?from=${since}&to=${answer.next_batch}`
  expect(listsOf(await person.call('GET', `/keys/changes${between}`))).toEqual(listsOf(answer))
  return listsOf(answer)
}

async function roomOf(...[first, ...others]: KeyedPerson[]): Promise<string> {
  const room = await first!.createRoom({ preset: 'public_chat' })
  for (const other of others) await other.join(room)
  return room
}

describe('device_lists.changed', () => {
  it('names who shares a room and changed keys, the user too, and nobody else', async () => {
    const dan = await keyedPerson(house, 'dan')
    await roomOf(alice, bob)
    expect(
      await tellsAfter(alice, async () => {
        await bob.rekey()
        await dan.rekey()
      }),
    ).toEqual({ changed: idsOfPeople(bob), left: [] })
    expect(await tellsAfter(alice, () => alice.rekey())).toEqual({ changed: idsOfPeople(alice), left: [] })
  })

  it('is empty in a first sync, and when the same keys come again', async () => {
    expect(listsOf(await alice.sync())).toEqual(NOTHING)
    await alice.rekey()
    const { device_keys } = await alice.call('POST', '/keys/query', { device_keys: { [alice.userId]: [] } })
    const { unsigned: _, ...same } = device_keys[alice.userId][alice.deviceId]
    expect(await tellsAfter(alice, () => alice.call('POST', '/keys/upload', { device_keys: same }))).toEqual(NOTHING)
  })

  it('B19: names who logs in, renames a device and logs out, with keys and without', async () => {
    const room = await roomOf(alice, bob)
    const shown = { changed: idsOfPeople(bob), left: [] }
    let second!: Account
    const logIn = async () => {
      second = await login(house.api, bob.userId)
    }
    expect(await tellsAfter(alice, logIn)).toEqual(shown)
    const asSecond = (method: string, path: string, body: object) =>
      house.api.call(method, path, { token: second.token, body })
    expect(
      await tellsAfter(alice, () => asSecond('PUT', `/devices/${second.deviceId}`, { display_name: 'x' })),
    ).toEqual(shown)
    const keys = deviceMaker(second).identity()
    expect(await tellsAfter(alice, () => asSecond('POST', '/keys/upload', { device_keys: keys }))).toEqual(shown)
    expect(
      await tellsAfter(alice, () => asSecond('PUT', `/devices/${second.deviceId}`, { display_name: 'y' })),
    ).toEqual(shown)
    expect(await tellsAfter(alice, () => asSecond('POST', '/logout', {}))).toEqual(shown)
    const third = await login(house.api, bob.userId)
    expect(await tellsAfter(alice, () => house.api.call('POST', '/logout', { token: third.token, body: {} }))).toEqual(
      shown,
    )
    // A device that was there is no news when it logs in again.
    const device = { type: 'm.login.password', user: bob.userId, password: PASSWORD, device_id: 'FOURTH' }
    const again = () => house.api.call('POST', '/login', { body: device })
    await again()
    expect(await tellsAfter(alice, again)).toEqual(NOTHING)
    await bob.leave(room)
  })

  it('names who joins, and for who joins all who are there', async () => {
    const [erin, fay, gus] = await Promise.all(['erin', 'fay', 'gus'].map((name) => keyedPerson(house, name)))
    const room = await roomOf(erin!, fay!)
    const { next_batch: since } = await erin!.sync()
    expect(await tellsAfter(gus!, () => gus!.join(room))).toEqual({ changed: idsOfPeople(erin!, fay!), left: [] })
    expect(listsOf(await erin!.sync(`&since=${since}`))).toEqual({ changed: idsOfPeople(gus!), left: [] })
  })

  it('does not name who joins a second room, nor who changes a name', async () => {
    const room = await roomOf(alice, carol)
    const other = await roomOf(alice)
    expect(await tellsAfter(alice, () => carol.join(other))).toEqual(NOTHING)
    expect(
      await tellsAfter(alice, () =>
        carol.call('PUT', `/profile/${encodeURIComponent(carol.userId)}/displayname`, { displayname: 'C' }),
      ),
    ).toEqual(NOTHING)
    await carol.leave(room)
    await carol.leave(other)
  })

  it('names who is invited, and not for the invited', async () => {
    const [hal, ivy] = await Promise.all(['hal', 'ivy'].map((name) => keyedPerson(house, name)))
    const room = await roomOf(hal!)
    const { next_batch: since } = await ivy!.sync()
    expect(await tellsAfter(hal!, () => hal!.invite(room, ivy!))).toEqual({ changed: idsOfPeople(ivy!), left: [] })
    expect(listsOf(await ivy!.sync(`&since=${since}`))).toEqual(NOTHING)
    expect(await tellsAfter(hal!, () => ivy!.leave(room))).toEqual(NOTHING)
  })

  it('survives a limited timeline and a filter that wants no rooms', async () => {
    const [jan, kim] = await Promise.all(['jan', 'kim'].map((name) => keyedPerson(house, name)))
    const room = await roomOf(jan!)
    const { next_batch: since } = await jan!.sync()
    await kim!.join(room)
    for (let count = 0; count < 25; count++) await jan!.say(room, `${count}`)
    await kim!.rekey()
    const expected = { changed: idsOfPeople(kim!), left: [] }
    const limited = await jan!.sync(`&since=${since}`)
    expect(limited.rooms.join[room].timeline.limited).toBe(true)
    expect(listsOf(limited)).toEqual(expected)
    const filter = encodeURIComponent(JSON.stringify({ room: { rooms: [] } }))
    const filtered = await jan!.sync(`&since=${since}&filter=${filter}`)
    expect(filtered.rooms?.join ?? {}).toEqual({})
    expect(listsOf(filtered)).toEqual(expected)
  })
})

describe('device_lists.left', () => {
  it('names who leaves the last shared room, by going, a kick or a ban', async () => {
    const lee = await keyedPerson(house, 'lee')
    for (const go of ['leave', 'kick', 'ban']) {
      const [first, second] = [await roomOf(lee, bob), await roomOf(lee, bob)]
      const leave = (room: string) =>
        go === 'leave'
          ? bob.leave(room)
          : lee.call('POST', `/rooms/${encodeURIComponent(room)}/${go}`, { user_id: bob.userId })
      expect(await tellsAfter(lee, () => leave(first))).toEqual(NOTHING)
      expect(await tellsAfter(lee, () => leave(second))).toEqual({ changed: [], left: idsOfPeople(bob) })
    }
  })

  it('names all who are left behind, and none who came later', async () => {
    const [max, ned, oda] = await Promise.all(['max', 'ned', 'oda'].map((name) => keyedPerson(house, name)))
    const room = await roomOf(max!, ned!)
    const shown = await tellsAfter(max!, async () => {
      await ned!.call('PUT', `/profile/${encodeURIComponent(ned!.userId)}/displayname`, { displayname: 'N' })
      await max!.leave(room)
      await oda!.join(room)
    })
    expect(shown).toEqual({ changed: [], left: idsOfPeople(ned!) })
  })

  it('names nobody whom a user still shares a room with, and a rejoin is news again', async () => {
    const [pat, quy] = await Promise.all(['pat', 'quy'].map((name) => keyedPerson(house, name)))
    const [room, other] = [await roomOf(pat!, quy!), await roomOf(pat!, quy!)]
    expect(await tellsAfter(pat!, () => pat!.leave(room))).toEqual(NOTHING)
    expect(await tellsAfter(pat!, () => pat!.leave(other))).toEqual({ changed: [], left: idsOfPeople(quy!) })
    expect(await tellsAfter(pat!, () => quy!.rekey())).toEqual(NOTHING)
    expect(await tellsAfter(pat!, () => pat!.join(room))).toEqual({ changed: idsOfPeople(quy!), left: [] })
  })

  it('survives that the room is forgotten', async () => {
    const [ray, sue] = await Promise.all(['ray', 'sue'].map((name) => keyedPerson(house, name)))
    const room = await roomOf(ray!, sue!)
    const shown = await tellsAfter(ray!, async () => {
      await ray!.leave(room)
      await ray!.call('POST', `/rooms/${encodeURIComponent(room)}/forget`, {})
    })
    expect(shown).toEqual({ changed: [], left: idsOfPeople(sue!) })
  })

  it('names nobody when somebody leaves and comes back between two syncs', async () => {
    const [tom, uma] = await Promise.all(['tom', 'uma'].map((name) => keyedPerson(house, name)))
    const room = await roomOf(tom!, uma!)
    const shown = await tellsAfter(tom!, async () => {
      await uma!.leave(room)
      await uma!.join(room)
    })
    expect(shown.left).toEqual([])
  })
})

describe('device lists over a restart', () => {
  it('tell what happened before it to who had not asked by then', async () => {
    const [vic, wes, xia, yan] = await Promise.all(['vic', 'wes', 'xia', 'yan'].map((name) => keyedPerson(house, name)))
    await roomOf(vic!, wes!)
    const room = await roomOf(vic!, xia!)
    const other = await roomOf(vic!)
    const { next_batch: since } = await vic!.sync()
    await wes!.rekey()
    await xia!.leave(room)
    await yan!.join(other)
    await house.restart()
    const answer = await vic!.sync(`&since=${since}`)
    expect(listsOf(answer)).toEqual({ changed: idsOfPeople(wes!, yan!), left: idsOfPeople(xia!) })
    expect(listsOf(await vic!.sync(`&since=${answer.next_batch}`))).toEqual(NOTHING)
  })
})

describe('long polls', () => {
  const waiting = async (person: KeyedPerson): Promise<{ next: Promise<Json>; since: string }> => {
    const { next_batch: since } = await person.sync()
    return { since, next: person.call('GET', `/sync?timeout=30000&since=${since}`) }
  }

  it('wake when a neighbour changes keys', async () => {
    await roomOf(alice, bob)
    const { next } = await waiting(alice)
    await bob.rekey()
    expect(listsOf(await next)).toEqual({ changed: idsOfPeople(bob), left: [] })
  })
})

it.each(['from=x&to=s1_1_a.1', 'from=s1_1_a.1&to=x', 'from=s1_1_a.1', 'to=s1_1_a.1', ''])(
  'keys/changes?%s is refused',
  async (query) => {
    expect((await alice.ask('GET', `/keys/changes?${query}`)).status).toBe(400)
  },
)

test('B3: who leaves, gets other keys and joins again within one span is in device_lists.changed', async () => {
  const dan = await keyedPerson(house, 'leaver')
  const eve = await keyedPerson(house, 'stays')
  const room = await roomOf(dan, eve)
  const shown = await tellsAfter(eve, async () => {
    await dan.leave(room)
    await dan.rekey()
    await dan.join(room)
  })
  expect(shown).toEqual({ changed: idsOfPeople(dan), left: [] })
})

test('B3: who leaves, gets a new device and joins again within one span is in device_lists.changed', async () => {
  const dan = await keyedPerson(house, 'device-leaver')
  const eve = await keyedPerson(house, 'device-stays')
  const room = await roomOf(dan, eve)
  const shown = await tellsAfter(eve, async () => {
    await dan.leave(room)
    const second = await login(house.api, dan.userId)
    const body = { device_keys: deviceMaker(second).identity() }
    await house.api.call('POST', '/keys/upload', { token: second.token, body })
    await dan.join(room)
  })
  expect(shown).toEqual({ changed: idsOfPeople(dan), left: [] })
})

test('B3: who leaves and joins again is told of those who got other keys meanwhile', async () => {
  const dan = await keyedPerson(house, 'away')
  const eve = await keyedPerson(house, 'rekeys')
  const room = await roomOf(dan, eve)
  const shown = await tellsAfter(dan, async () => {
    await dan.leave(room)
    await eve.rekey()
    await dan.join(room)
  })
  expect(shown).toEqual({ changed: idsOfPeople(eve), left: [] })
})

test('B3: changes of a profile are no coming and going', async () => {
  const dan = await keyedPerson(house, 'named')
  const eve = await keyedPerson(house, 'sees-names')
  await roomOf(dan, eve)
  const rename = (person: KeyedPerson, displayname: string) =>
    person.call('PUT', `/profile/${encodeURIComponent(person.userId)}/displayname`, { displayname })
  const shown = await tellsAfter(eve, async () => {
    for (const name of ['One', 'Two', 'Three']) await rename(dan, name)
    await rename(eve, 'Eve')
  })
  expect(shown).toEqual(NOTHING)
})
