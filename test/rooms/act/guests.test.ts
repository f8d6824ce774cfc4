import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Account, Api, Json } from '../../support/api.ts'
import { join } from '../../support/api.ts'
import { type Neighbour, type Neighbourhood, openNeighbourhood } from '../../support/neighbours.ts'
import { waitUntil } from '../../support/wait.ts'
import { type House, inRoom, openHouse, type Person } from '../people.ts'

let house: House
let host: Person
let guest: Account
let room: string

async function newGuest(api: Api): Promise<Account> {
  const body = await api.call('POST', '/register?kind=guest', { body: {} })
  return { userId: body.user_id, deviceId: body.device_id, token: body.access_token } as Account
}

const memberPath = (id: string, { userId }: Account) =>
  inRoom(id, `/state/m.room.member/${encodeURIComponent(userId)}?format=event`)
const memberOf = (who: Account): Promise<Json> => host.call('GET', memberPath(room, who))
const isOut = (who: Account) =>
  waitUntil('the guest to be out', async () => (await memberOf(who)).content.membership === 'leave')

beforeAll(async () => {
  house = await openHouse()
  host = await house.person('host')
})

afterAll(() => house.close())

beforeEach(async () => {
  guest = await newGuest(house.api)
  room = await host.createRoom({ preset: 'public_chat' })
  await host.setState(room, 'm.room.guest_access', { guest_access: 'can_join' })
  await join(house.api, guest.token, room)
})

describe('B9: guests are put out', () => {
  test.each([
    ['says forbidden', { guest_access: 'forbidden' }],
    ['says nothing that is known', { guest_access: 'perhaps' }],
  ])('B9: when guest_access %s', async (_, content) => {
    const member = await house.person(`member${Math.random().toString(36).slice(2)}`)
    await member.join(room)
    await host.setState(room, 'm.room.guest_access', content)
    await isOut(guest)
    // They leave by themselves, as the interface has it, and hear of it.
    expect((await memberOf(guest)).sender).toBe(guest.userId)
    const { rooms } = await house.api.call('GET', '/sync?timeout=0', { token: guest.token })
    expect(rooms?.join?.[room]).toBe(undefined)
    expect((await memberOf(member)).content.membership).toBe('join')
  })

  test('B9: when the event that let them in is redacted', async () => {
    const open = await host.call('GET', inRoom(room, '/state/m.room.guest_access/?format=event'))
    await host.call('PUT', inRoom(room, `/redact/${encodeURIComponent(open.event_id)}/r1`), {})
    await isOut(guest)
  })

  test('B9: all of them, also where they are many', async () => {
    const others = await Promise.all(Array.from({ length: 60 }, () => newGuest(house.api)))
    for (const one of others) await join(house.api, one.token, room)
    await host.setState(room, 'm.room.guest_access', { guest_access: 'forbidden' })
    await waitUntil('all to be out', async () => {
      const { joined } = await host.call('GET', inRoom(room, '/joined_members'))
      return Object.keys(joined).length === 1
    })
  })

  test('B9: at the next start, when the process ended before they were', async () => {
    const sleeper = await house.person('sleeper')
    await host.setState(room, 'm.room.guest_access', { guest_access: 'forbidden' })
    await isOut(guest)
    await sleeper.join(room)
    await house.server.database.db.query(
      'UPDATE account SET is_guest = true WHERE user_nid = (SELECT user_nid FROM matrix_user WHERE user_id = $1)',
      [sleeper.userId],
    )
    await house.restart()
    await isOut(sleeper)
  })

  test('B9: not while the room stays open to them, whatever else changes', async () => {
    const other = await host.createRoom({ preset: 'public_chat' })
    await host.setState(other, 'm.room.guest_access', { guest_access: 'can_join' })
    await join(house.api, guest.token, other)
    await host.setState(other, 'm.room.topic', { topic: 'tea' })
    await host.setState(other, 'm.room.guest_access', { guest_access: 'can_join', more: 1 })
    await host.setState(room, 'm.room.guest_access', { guest_access: 'forbidden' })
    await isOut(guest)
    expect((await host.call('GET', memberPath(other, guest))).content.membership).toBe('join')
  })
})

describe('B9: guests may', () => {
  const asGuest = (method: string, path: string, body?: object) =>
    house.api.request(method, path, { token: guest.token, ...(body && { body }) })
  const profile = () => `/profile/${encodeURIComponent(guest.userId)}`

  test.each([
    ['displayname', 'Visitor'],
    ['avatar_url', 'mxc://localhost/face'],
  ])('B9: set and remove their own %s, which their rooms show', async (field, value) => {
    expect((await asGuest('PUT', `${profile()}/${field}`, { [field]: value })).status).toBe(200)
    expect((await asGuest('GET', profile())).body[field]).toBe(value)
    expect((await memberOf(guest)).content[field]).toBe(value)
    expect((await asGuest('DELETE', `${profile()}/${field}`)).status).toBe(200)
    expect((await memberOf(guest)).content[field]).toBe(undefined)
  })

  test('B9: set nothing else of themselves, and nothing of others', async () => {
    const refused = { status: 403, body: { errcode: 'M_GUEST_ACCESS_FORBIDDEN' } }
    expect(await asGuest('PUT', `${profile()}/m.tz`, { 'm.tz': 'Europe/Rome' })).toMatchObject(refused)
    expect(await asGuest('DELETE', `${profile()}/m.tz`)).toMatchObject(refused)
    const others = `/profile/${encodeURIComponent(host.userId)}/displayname`
    expect((await asGuest('PUT', others, { displayname: 'x' })).body.errcode).toBe('M_FORBIDDEN')
  })

  test('B9: list their devices, look at one and name it', async () => {
    const { body } = await asGuest('GET', '/devices')
    expect(body.devices).toHaveLength(1)
    const path = `/devices/${encodeURIComponent(body.devices[0].device_id)}`
    expect((await asGuest('PUT', path, { display_name: 'borrowed' })).status).toBe(200)
    expect((await asGuest('GET', path)).body.display_name).toBe('borrowed')
    expect((await asGuest('DELETE', path, {})).body.errcode).toBe('M_GUEST_ACCESS_FORBIDDEN')
  })
})

describe('B9: in a room of another server', () => {
  let street: Neighbourhood
  let here: Neighbour
  let there: Neighbour
  beforeAll(async () => {
    street = openNeighbourhood()
    ;[here, there] = await Promise.all([street.open(), street.open()])
  })
  afterAll(() => street.close())

  test('B9: guests are put out when somebody there closes it to them', async () => {
    const owner = await there.person('owner')
    const local = await here.person('local')
    const token = owner.token
    const body = { preset: 'public_chat' }
    const shared: string = (await there.api.call('POST', '/createRoom', { token, body })).room_id
    const access = inRoom(shared, '/state/m.room.guest_access/')
    await there.api.call('PUT', access, { token, body: { guest_access: 'can_join' } })
    const via = `/join/${encodeURIComponent(shared)}?server_name=${owner.userId.split(':').slice(1).join(':')}`
    await here.api.call('POST', via, { token: local.token, body: {} })
    const visitor = await newGuest(here.api)
    await join(here.api, visitor.token, shared)
    await there.api.call('PUT', access, { token, body: { guest_access: 'forbidden' } })
    for (const [api, reader] of [
      [here.api, local],
      [there.api, owner],
    ] as const) {
      await waitUntil('the visitor to be out', async () => {
        const { status, body: member } = await api.request('GET', memberPath(shared, visitor), { token: reader.token })
        return status === 200 && member.content.membership === 'leave'
      })
    }
  })
})
