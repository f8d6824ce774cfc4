import { readFile } from 'node:fs/promises'
import { join as joinPath } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest'
import { parse } from 'yaml'
import { type Account, createRoom, type Json, register, sendText } from '../support/api.ts'
import { PROJECT_ROOT } from '../support/project.ts'
import { waitUntil } from '../support/wait.ts'
import { openWorld, type TestRegistration, type World } from './world.ts'

const EXAMPLE = joinPath(PROJECT_ROOT, 'examples/echo')
const ROOTS = ['/_matrix/app/v1', '/_proto/app/v1'] as const
let world: World
let person: Account
let echo: TestRegistration
beforeAll(async () => {
  echo = {
    ...parse(await readFile(joinPath(EXAMPLE, 'registration.yaml'), 'utf8')),
    hosted: joinPath(EXAMPLE, 'echo.js'),
  }
  world = await openWorld([echo], { server_notices: { localpart: 'notices' } })
  person = await register(world.api, 'person')
})
afterAll(() => world.close())

const room = encodeURIComponent
const call = (method: string, path: string, body?: unknown, token = person.token) =>
  world.api.request(method, path, { token, ...(body !== undefined && { body }) })

async function said(roomId: string): Promise<string[]> {
  const { body } = await call('GET', `/rooms/${room(roomId)}/messages?dir=b&limit=100`)
  return body.chunk
    .filter((e: Json) => e.type === 'm.room.message')
    .map((e: Json) => e.content.body)
    .reverse()
}

describe('the example', () => {
  it('joins where it is invited and repeats what is said, once', async () => {
    const roomId = await createRoom(world.api, person.token, { invite: ['@echo:localhost'] })
    await waitUntil('echo to join', async () => {
      const { body } = await call('GET', `/rooms/${room(roomId)}/joined_members`)
      return body.joined['@echo:localhost']
    })
    await sendText(world.api, person.token, roomId, '1', 'hello')
    await waitUntil('the echo', async () => (await said(roomId)).includes('echo: hello'))
    await world.server.restart()
    await sendText(world.api, person.token, roomId, '2', 'again')
    await waitUntil('the echo', async () => (await said(roomId)).includes('echo: again'))
    expect(await said(roomId)).toEqual(['hello', 'echo: hello', 'again', 'echo: again'])
  })

  it('makes users and rooms that somebody asks for', async () => {
    const roomId = await createRoom(world.api, person.token)
    expect((await call('POST', `/rooms/${room(roomId)}/invite`, { user_id: '@echo_new:localhost' })).status).toBe(200)
    expect((await call('GET', '/profile/@echo_other:localhost')).status).toBe(200)
    expect((await call('GET', `/directory/room/${room('#echo_room:localhost')}`)).status).toBe(200)
    expect((await call('GET', '/thirdparty/protocols')).body.echo.instances).toEqual([
      { desc: 'Echo', network_id: 'echo', fields: {}, instance_id: 'echo|echo' },
    ])
  })
})

describe.each(ROOTS)('what a hosted service answers to who has its hs_token, at %s', (root) => {
  const ask = (method: string, path: string, body?: unknown, token = echo.hs_token) =>
    call(method, root + path, body, token)
  const name = root.includes('_proto') ? 'p' : 'm'

  test('PUT A/transactions/{txnId}: repeats are no-ops, also after a restart; other events under its id are refused', async () => {
    const roomId = await createRoom(world.api, person.token, { preset: 'public_chat' })
    await world.api.call('POST', `/rooms/${room(roomId)}/invite`, {
      token: person.token,
      body: { user_id: '@echo:localhost' },
    })
    await waitUntil('echo to join', async () => {
      const { body } = await call('GET', `/rooms/${room(roomId)}/joined_members`)
      return body.joined['@echo:localhost']
    })
    const event = (body: string) => ({
      ...{ type: 'm.room.message', room_id: roomId, sender: '@far:away', event_id: `$${body}` },
      content: { msgtype: 'm.text', body },
    })
    const put = (...events: object[]) => ask('PUT', `/transactions/${name}1`, { events })
    expect(await put(event('first'))).toEqual({ status: 200, body: {} })
    expect((await put(event('first'))).status).toBe(200)
    // Written anew: what says how old it is differs.
    expect((await put({ ...event('first'), unsigned: { age: 7 } })).status).toBe(200)
    const refused = { status: 400, body: { errcode: 'M_INVALID_PARAM', error: expect.stringContaining(`${name}1`) } }
    expect(await put(event('other'))).toMatchObject(refused)
    await world.server.restart()
    expect((await put(event('first'))).status).toBe(200)
    expect(await put(event('first'), event('more'))).toMatchObject(refused)
    expect(await said(roomId)).toEqual(['echo: first'])
    // They are not lost: under an id of their own they are worked through.
    expect((await ask('PUT', `/transactions/${name}3`, { events: [event('other'), event('more')] })).status).toBe(200)
    expect(await said(roomId)).toEqual(['echo: first', 'echo: other', 'echo: more'])
    expect((await ask('PUT', `/transactions/${name}2`, { events: 'none' })).body.errcode).toBe('M_BAD_JSON')
  })

  test.each([
    ['GET', `/users/@echo_q${name}:localhost`, 200],
    ['GET', '/users/@nobody:localhost', 404],
    ['GET', `/rooms/%23echo_q${name}:localhost`, 200],
    ['GET', '/thirdparty/protocol/echo', 200],
    ['GET', '/thirdparty/protocol/other', 404],
    ['GET', '/thirdparty/user/echo?name=x', 200],
    ['GET', '/thirdparty/location/echo', 200],
    ['GET', '/thirdparty/location?alias=%23a:b', 200],
    ['GET', '/thirdparty/user?userid=%40a:b', 200],
    ['POST', '/ping', 200],
  ] as const)('%s A%s: %i with the hs_token, 401 without, 403 with another', async (method, path, status) => {
    const body = method === 'POST' ? {} : undefined
    expect((await ask(method, path, body)).status).toBe(status)
    expect(await ask(method, path, body, echo.as_token)).toMatchObject({
      status: 403,
      body: { errcode: 'M_FORBIDDEN' },
    })
    const without = await world.api.request(method, root + path, { ...(body && { body }) })
    expect(without).toMatchObject({ status: 401, body: { errcode: 'M_MISSING_TOKEN' } })
  })
})

describe('the sender of server notices', () => {
  it('is a hosted service with a user of its own', async () => {
    const rows = await world.server.database.db.query(
      "SELECT a.appservice_id FROM account a JOIN matrix_user u USING (user_nid) WHERE u.user_id = '@notices:localhost'",
    )
    expect(rows).toEqual([{ appservice_id: 'hearth.server_notices' }])
    const body = { username: 'notices', password: 'correct horse battery', auth: { type: 'm.login.dummy' } }
    expect((await world.api.request('POST', '/register', { body })).body.errcode).toBe('M_EXCLUSIVE')
  })
})
