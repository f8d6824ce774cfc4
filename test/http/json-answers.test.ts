import { request } from 'node:http'
import { connect } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type House, inRoom, openHouse, type Person } from '../rooms/people.ts'
import type { Json } from '../support/api.ts'

let house: House
let alice: Person

beforeAll(async () => {
  house = await openHouse()
  alice = await house.person('alice')
})
afterAll(() => house.close())

function typeOf(method: string, path: string, token?: string, body?: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = { ...(token && { authorization: `Bearer ${token}` }) }
    const asked = request(house.server.baseUrl + path, { method, headers }, (answer) => {
      answer.resume()
      resolve(`${answer.statusCode} ${answer.headers['content-type']}`)
    })
    asked.on('error', reject).end(body)
  })
}

const C = '/_matrix/client/v3'

test('C3: JSON answers of all roles carry exactly application/json', async () => {
  const room = await alice.createRoom()
  const rows: [status: number, method: string, path: string, token?: string | undefined, body?: string][] = [
    [200, 'GET', '/_matrix/client/versions'],
    [200, 'GET', `${C}/account/whoami`, alice.token],
    [200, 'GET', `${C}/sync?timeout=0`, alice.token],
    [200, 'GET', `${C}${inRoom(room, '/state')}`, alice.token],
    [200, 'GET', `/_proto/client/r0/pushrules/`, alice.token],
    [200, 'GET', '/_matrix/key/v2/server'],
    [200, 'GET', '/_matrix/federation/v1/version'],
    [200, 'GET', '/_matrix/identity/v2'],
    [200, 'GET', '/health/live'],
    [401, 'POST', `${C}/register`, undefined, '{"username":"x","password":"correct horse battery staple"}'],
    [401, 'GET', `${C}/account/whoami`],
    [401, 'PUT', '/_matrix/federation/v1/send/1', undefined, '{}'],
    [401, 'GET', '/_matrix/identity/v2/account'],
    [400, 'POST', `${C}/login`, undefined, '{'],
    [403, 'GET', '/_synapse/admin/v1/rooms', alice.token],
    [404, 'GET', '/.well-known/matrix/support'],
    [404, 'GET', '/.well-known/matrix/policy_server'],
    [404, 'GET', '/nowhere'],
    [405, 'DELETE', `${C}/sync`],
    [400, 'GET', `${C}/rooms/%zz/state`],
  ]
  const answers = await Promise.all(rows.map(([, ...asked]) => typeOf(...asked)))
  expect(answers).toEqual(rows.map(([status]) => `${status} application/json`))
})

test('C3: what is no HTTP at all is answered with application/json too', async () => {
  const { port } = new URL(house.server.baseUrl)
  const answer = await new Promise<string>((resolve, reject) => {
    const socket = connect(Number(port), '127.0.0.1', () => socket.write('nonsense\r\n\r\n'))
    let text = ''
    socket.on('data', (bytes) => {
      text += bytes.toString('latin1')
    })
    socket.on('end', () => resolve(text)).on('error', reject)
  })
  expect(answer).toMatch(/\r\ncontent-type: application\/json\r\n/i)
})

test('C3: POST send without a transaction id sends each time, in both dialects', async () => {
  const room = await alice.createRoom()
  const path = inRoom(room, '/send/m.room.message')
  const body = { msgtype: 'm.text', body: 'once more' }
  const ids: Json[] = []
  for (const prefix of ['', '', '/_proto/client/r0']) ids.push(await alice.call('POST', `${prefix}${path}`, body))
  expect(new Set(ids.map(({ event_id }) => event_id)).size).toBe(3)
  const event = await alice.call('GET', inRoom(room, `/event/${encodeURIComponent(ids[0]!.event_id)}`))
  expect(event).toMatchObject({ type: 'm.room.message', content: body })
  expect(event.unsigned?.transaction_id).toBeUndefined()
})

test('C3: POST redact without a transaction id redacts, in both dialects', async () => {
  const room = await alice.createRoom()
  for (const prefix of ['', '/_proto/client/r0']) {
    const sent = encodeURIComponent(await alice.say(room, 'to go'))
    const path = inRoom(room, `/redact/${sent}`)
    expect(await alice.call('POST', `${prefix}${path}`, { reason: 'gone' })).toEqual({
      event_id: expect.stringMatching(/^\$/),
    })
    expect((await alice.call('GET', inRoom(room, `/event/${sent}`))).content).toEqual({})
  }
})

test('C3: GET pushrules answers alike with and without the final slash', async () => {
  for (const prefix of [C, '/_matrix/client/r0', '/_proto/client/r0']) {
    const [plain, slashed] = await Promise.all(['', '/'].map((end) => alice.ask('GET', `${prefix}/pushrules${end}`)))
    expect(plain).toMatchObject({ status: 200, body: { global: { override: expect.any(Array) } } })
    expect(slashed).toEqual(plain)
  }
})
