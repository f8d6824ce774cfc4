import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Account, createRoom, type Json, register } from '../support/api.ts'
import { as, makeGhost, openWorld, registration, type World } from './world.ts'

const own = (regex: string, exclusive: boolean) => [{ regex, exclusive }]
const irc = registration('irc')
const shy = registration('shy', {
  namespaces: { users: own('@_shy_.*', true), aliases: own('#shared_.*', false), rooms: [] },
})
const enc = encodeURIComponent

let world: World
let person: Account
let ghost: string
let room: string
beforeAll(async () => {
  world = await openWorld([irc, shy])
  person = await register(world.api, 'person')
  ghost = await makeGhost(world.api, irc, '_irc_ghost')
  room = await createRoom(world.api, person.token, { preset: 'public_chat' })
})
afterAll(() => world.close())

const call = (method: string, path: string, body?: object, token: string = irc.as_token) =>
  world.api.request(method, path, { token, ...(body && { body }) })

describe('B18: an application service', () => {
  const aliasPath = (name: string) => `/directory/room/${enc(`#${name}:localhost`)}`

  test.each([
    ['itself', '_irc_one', (path: string) => path],
    ['a user of its own', '_irc_two', (path: string) => as('@_irc_ghost:localhost', path)],
  ])('B18: names a room that it is not in, as %s', async (_, name, by) => {
    expect((await call('PUT', by(aliasPath(name)), { room_id: room })).status).toBe(200)
    expect((await call('GET', aliasPath(name))).body.room_id).toBe(room)
    expect((await call('DELETE', by(aliasPath(name)))).status).toBe(200)
    expect((await call('GET', aliasPath(name))).status).toBe(404)
  })

  test('B18: names it in a namespace that it shares, too', async () => {
    expect((await call('PUT', aliasPath('shared_x'), { room_id: room }, shy.as_token)).status).toBe(200)
  })

  test('B18: names nothing outside its namespace, and no room that there is not', async () => {
    const outside = await call('PUT', aliasPath('elsewhere'), { room_id: room })
    expect(outside).toMatchObject({ status: 400, body: { errcode: 'M_EXCLUSIVE' } })
    const nowhere = await call('PUT', aliasPath('_irc_none'), { room_id: '!none:localhost' })
    expect(nowhere).toMatchObject({ status: 404, body: { errcode: 'M_NOT_FOUND' } })
  })

  test('B18: people name only rooms that they are in', async () => {
    const stranger = await register(world.api, 'stranger')
    const answer = await call('PUT', aliasPath('mine'), { room_id: room }, stranger.token)
    expect(answer).toMatchObject({ status: 403, body: { errcode: 'M_FORBIDDEN' } })
  })

  test('B18: takes a room out of its directory list by DELETE', async () => {
    const path = `/directory/list/appservice/net/${enc(room)}`
    const listed = async () => {
      const { body } = await call('POST', '/publicRooms', { third_party_instance_id: 'irc|net' })
      return body.chunk.map(({ room_id }: Json) => room_id)
    }
    expect((await call('PUT', path, { visibility: 'public' })).status).toBe(200)
    expect(await listed()).toEqual([room])
    expect(await call('DELETE', path, undefined, person.token)).toMatchObject({
      status: 403,
      body: { errcode: 'M_FORBIDDEN' },
    })
    expect((await call('DELETE', path, undefined, shy.as_token)).status).toBe(200)
    expect(await listed()).toEqual([room])
    for (let round = 0; round < 2; round++) expect(await call('DELETE', path)).toEqual({ status: 200, body: {} })
    expect(await listed()).toEqual([])
  })
})

describe('B18: what a join says that nobody has named', () => {
  const memberOf = async (userId: string) =>
    (await call('GET', `/rooms/${enc(room)}/state/m.room.member/${enc(userId)}`, undefined, person.token)).body

  test.each(['rooms/{}/join', 'join/{}'])('B18: is in the member event, by %s', async (path) => {
    const url = as(ghost, `/${path.replace('{}', enc(room))}`)
    const body = { reason: 'bridged', 'org.bridge.auto': true, nested: { a: [1, 'two', null] } }
    expect((await call('POST', url, body)).status).toBe(200)
    expect(await memberOf(ghost)).toEqual({ membership: 'join', ...body })
    await call('POST', as(ghost, `/rooms/${enc(room)}/leave`), {})
  })

  test('B18: but not what only the server says, or the profile does', async () => {
    const joiner = await register(world.api, 'joiner')
    const body = {
      membership: 'ban',
      join_authorised_via_users_server: '@person:localhost',
      third_party_invite: { signed: {} },
      displayname: 'Another',
      avatar_url: 'mxc://localhost/other',
      is_direct: true,
    }
    expect((await call('POST', `/join/${enc(room)}`, body, joiner.token)).status).toBe(200)
    expect(await memberOf(joiner.userId)).toEqual({ membership: 'join', is_direct: true })
  })

  test('B18: has to be canonical JSON', async () => {
    const other = await register(world.api, 'other')
    const answer = await call('POST', `/join/${enc(room)}`, { half: 0.5 }, other.token)
    expect(answer).toMatchObject({ status: 400, body: { errcode: 'M_BAD_JSON' } })
  })
})

test('B18: an invitation shows the create event and who invites, by name', async () => {
  const invited = await register(world.api, 'invited')
  const token = person.token
  const closed = await createRoom(world.api, token, { preset: 'private_chat', name: 'Kitchen' })
  await call('PUT', `/profile/${enc(person.userId)}/displayname`, { displayname: 'A Person' }, token)
  await call('POST', `/rooms/${enc(closed)}/invite`, { user_id: invited.userId }, token)
  const { body } = await call('GET', '/sync?timeout=0', undefined, invited.token)
  const { events } = body.rooms.invite[closed].invite_state
  const create = { type: 'm.room.create', state_key: '', sender: person.userId }
  expect(events).toContainEqual(expect.objectContaining(create))
  const inviter = { type: 'm.room.member', state_key: person.userId, sender: person.userId }
  const content = expect.objectContaining({ membership: 'join', displayname: 'A Person' })
  expect(events).toContainEqual({ ...inviter, content })
  expect(events.filter(({ state_key }: Json) => state_key === person.userId)).toHaveLength(1)
})
