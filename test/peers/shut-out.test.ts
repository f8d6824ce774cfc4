import { afterAll, beforeAll, describe, expect, it, test } from 'vitest'
import { compileServerPolicy } from '../../src/core/server-policy.ts'
import { type Account, sendText, syncPath } from '../support/api.ts'
import { type Neighbour, type Neighbourhood, openNeighbourhood } from '../support/neighbours.ts'
import { cpuMs } from '../support/slowness.ts'
import { openStranger, type Stranger } from '../support/stranger.ts'
import { waitUntil } from '../support/wait.ts'

const enc = encodeURIComponent

describe('with whom a server deals', () => {
  const policy = (allow: string[], deny: string[] = [], enabled = true) =>
    compileServerPolicy({ enabled, allow, deny }, 'own.example:1')

  it.each<[string, ReturnType<typeof policy>, string | undefined]>([
    ['any.example', policy([]), undefined],
    ['any.example', policy([], ['other.example']), undefined],
    ['ANY.example:8448', policy([], ['any.EXAMPLE']), 'federation.deny'],
    ['a.b.example', policy([], ['*.b.example']), 'federation.deny'],
    ['b.example', policy([], ['*.b.example']), undefined],
    ['any.example', policy(['other.example']), 'federation.allow'],
    ['x1.example:5', policy(['x?.example']), undefined],
    ['x1.example', policy(['*.example', 'x?.example'], ['x1.*']), 'federation.deny'],
    ['10.0.0.1', policy([], ['10.*']), 'federation.deny'],
    ['[::1]:8448', policy(['[::1]']), undefined],
    ['no server!', policy([], ['x.example']), 'federation.deny'],
    ['any.example', policy([], [], false), 'federation.enabled'],
    ['own.example:1', policy(['other'], ['*'], false), undefined],
    ['own.example', policy([], ['own.example']), 'federation.deny'],
  ])('%s', (server, { refusalOf }, option) => {
    const refusal = refusalOf(server)
    if (option === undefined) expect(refusal).toBeUndefined()
    else expect(refusal).toContain(option)
  })

  test('is told in a time that grows with the length of the name alone', () => {
    const { refusalOf } = policy([], [`${'*a'.repeat(120)}b`])
    const took = cpuMs(() => expect(refusalOf(`${'a'.repeat(220)}`)).toBeUndefined())
    expect(took).toBeLessThan(10)
  })
})

describe('two servers of which one shuts the other out', () => {
  let street: Neighbourhood
  let open: Neighbour
  let closed: Neighbour
  let stranger: Stranger
  let alice: Account
  let bob: Account
  let shared: string
  let other: string

  const at = (room: string, rest: string) => `/rooms/${enc(room)}/${rest}`
  const ofBob = (method: string, path: string, body?: object) =>
    closed.api.request(method, path, { token: bob.token, body })
  const publicRoom = (name: string) => ({ preset: 'public_chat', room_alias_name: name })
  const lastOfAlice = async () => {
    const { chunk } = await open.api.call('GET', at(shared, 'messages?dir=b&limit=1'), { token: alice.token })
    return chunk[0].content.body as string
  }

  beforeAll(async () => {
    street = openNeighbourhood()
    ;[open, closed] = await Promise.all([street.open(), street.open()])
    stranger = await openStranger(street.authority)
    alice = await open.person('alice')
    bob = await closed.person('bob')
    const { room_id } = await closed.api.call('POST', '/createRoom', { token: bob.token, body: publicRoom('shared') })
    shared = room_id
    await open.api.call('POST', `/join/${enc(`#shared:${closed.name}`)}`, { token: alice.token, body: {} })
    const made = await open.api.call('POST', '/createRoom', { token: alice.token, body: publicRoom('other') })
    other = made.room_id
    await waitUntil('everything sent', async () => {
      const [row] = await closed.server.database.db.query('SELECT 1 FROM federation_destination')
      return row === undefined
    })
    await closed.server.restart({ federation: { deny: ['localhost'] } })
    open.front.requests.length = 0
  })
  afterAll(async () => {
    await stranger.close()
    await street.close()
  })

  it('does not let its users go there, and says why', async () => {
    const tries: [string, string, object?][] = [
      ['POST', `/join/${enc(`#other:${open.name}`)}`, {}],
      ['POST', `/join/${enc(other)}?server_name=${enc(open.name)}`, {}],
      ['POST', at(shared, 'invite'), { user_id: `@carol:${open.name}` }],
      ['GET', `/publicRooms?server=${enc(open.name)}`],
      ['GET', `/directory/room/${enc(`#other:${open.name}`)}`],
      ['GET', `/profile/${enc(alice.userId)}`],
    ]
    for (const [method, path, body] of tries) {
      const { status, body: answer } = await ofBob(method, path, body)
      expect([path, status, answer.errcode]).toEqual([path, 403, 'M_FORBIDDEN'])
      expect(answer.error).toBe(`This server has nothing to do with ${open.name}: federation.deny names it.`)
    }
    const { failures } = (await ofBob('POST', '/keys/query', { device_keys: { [alice.userId]: [] } })).body
    expect(Object.keys(failures)).toEqual([open.name])
    expect(open.front.requests).toEqual([])
  })

  it('does not listen to it, not even to learn its keys', async () => {
    const to = { name: closed.name, url: closed.server.baseUrl }
    const asked = await stranger.ask(to, 'GET', `/_matrix/federation/v1/query/profile?user_id=${enc(bob.userId)}`)
    expect([asked.status, asked.body.errcode]).toEqual([403, 'M_FORBIDDEN'])
    expect(stranger.front.requests).toEqual([])
    const answer = await open.api.request('GET', `/profile/${enc(bob.userId)}`, { token: alice.token })
    expect([answer.status, answer.body.errcode]).toEqual([403, 'M_FORBIDDEN'])
  })

  it('sends it nothing, leaves nothing lying for it, and does again once it is let in', async () => {
    await sendText(closed.api, bob.token, shared, 'unheard', 'unheard')
    const message = { messages: { [alice.userId]: { '*': { secret: 1 } } } }
    expect((await ofBob('PUT', '/sendToDevice/m.test/1', message)).status).toBe(200)
    await closed.server.restart()
    const rows = await closed.server.database.db.query(
      'SELECT server FROM federation_destination UNION ALL SELECT server FROM federation_edu',
    )
    expect(rows).toEqual([])
    expect(open.front.requests.filter(({ url }) => url.includes('/send/'))).toEqual([])
    await closed.server.restart({ federation: { deny: [] } })
    await sendText(closed.api, bob.token, shared, 'heard', 'heard')
    await waitUntil('the message', async () => (await lastOfAlice()) === 'heard')
  })

  it('has no federation at all when that is switched off', async () => {
    await closed.server.restart({ federation: { enabled: false } })
    const requests: [string, string][] = [
      ['GET', '/_matrix/key/v2/server'],
      ['GET', '/_matrix/federation/v1/version'],
      ['PUT', '/_matrix/federation/v1/send/1'],
      ['POST', '/_proto/key/v2/query'],
    ]
    for (const [method, path] of requests) {
      const { status, body } = await closed.api.request(method, path)
      expect([path, status, body.errcode]).toEqual([path, 404, 'M_UNRECOGNIZED'])
    }
    const { status, body } = await ofBob('POST', `/join/${enc(`#other:${open.name}`)}`, {})
    expect([status, body.errcode]).toEqual([403, 'M_FORBIDDEN'])
    expect(body.error).toContain('federation.enabled is false')
    expect((await ofBob('GET', syncPath({}))).status).toBe(200)
    await sendText(closed.api, bob.token, shared, 'alone', 'alone')
  })

  it('heeds rules that are read again while it runs', async () => {
    await closed.server.restart({ federation: { enabled: true } })
    const join = () => ofBob('POST', `/join/${enc(`#other:${open.name}`)}`, {})
    closed.server.policy().use({ enabled: true, allow: ['elsewhere'], deny: [] })
    expect((await join()).body.error).toContain('federation.allow does not name it')
    await sendText(closed.api, bob.token, shared, 'unheard again', 'unheard again')
    closed.server.policy().use({ enabled: true, allow: [], deny: ['elsewhere'] })
    expect((await join()).status).toBe(200)
    await sendText(closed.api, bob.token, shared, 'heard again', 'heard again')
    await waitUntil('the message', async () => (await lastOfAlice()) === 'heard again')
  })
})
