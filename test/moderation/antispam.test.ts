import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { MAX_ANTISPAM_AT_ONCE } from '../../src/domain/limits/moderation.ts'
import { type Office, openOffice } from '../admin/office.ts'
import { type Account, createRoom, type Json, register } from '../support/api.ts'
import { waitUntil } from '../support/wait.ts'

type Behaviour = (question: string, body: Json, reply: ServerResponse) => void

/** An antispam service that does as the test says, and remembers what it was asked. */
async function openService() {
  const asked: { question: string; body: Json; token: string | undefined }[] = []
  let behave: Behaviour = (_question, _body, reply) => void reply.end('{}')
  const server = createServer(async (request: IncomingMessage, reply) => {
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part as Buffer)
    const body = JSON.parse(Buffer.concat(parts).toString())
    const question = request.url!.split('/').at(-1)!
    asked.push({ question, body, token: request.headers.authorization })
    behave(question, body, reply)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    asked,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/antispam/`,
    behaves: (next: Behaviour) => {
      behave = next
    },
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

const refusing =
  (wanted: string, error = 'Not here.'): Behaviour =>
  (question, _body, reply) => {
    if (question === wanted) reply.writeHead(403)
    reply.end(JSON.stringify({ errcode: 'M_ANYTHING', error }))
  }

let service: Awaited<ReturnType<typeof openService>>
let office: Office
let alice: Account
let bob: Account
let room: string
let sent = 0

const enc = encodeURIComponent
const ask = (who: Account, method: string, path: string, body: object = {}) =>
  office.api.request(method, path, { token: who.token, body })
const send = (who: Account) =>
  ask(who, 'PUT', `/rooms/${enc(room)}/send/m.room.message/t${sent++}`, { msgtype: 'm.text', body: 'hello' })

async function openedWith(antispam: object, more: object = {}): Promise<void> {
  const questions = [
    'user_may_join_room',
    'user_may_invite',
    'user_may_send_3pid_invite',
    'user_may_create_room',
    'user_may_create_room_alias',
    'check_event_for_spam',
    'check_registration_for_spam',
  ]
  const moderation = { antispam: { url: service.url, token: 'secret', questions, ...antispam }, ...more }
  office = await openOffice({ moderation } as never)
  alice = await office.person('alice')
  bob = await office.person('bob')
  room = await createRoom(office.api, alice.token, { preset: 'public_chat' })
}

describe('the antispam service', () => {
  beforeAll(async () => {
    service = await openService()
    await openedWith({})
  })
  afterAll(async () => {
    await office.close()
    await service.close()
  })

  test('is asked with its token, and allows', async () => {
    expect((await ask(bob, 'POST', `/join/${enc(room)}`)).status).toBe(200)
    expect(service.asked.at(-1)).toEqual({
      question: 'user_may_join_room',
      body: { user: bob.userId, room, is_invited: false },
      token: 'Bearer secret',
    })
    expect((await send(bob)).status).toBe(200)
    expect(service.asked.at(-1)!.body.event).toMatchObject({ type: 'm.room.message', sender: bob.userId })
  })

  test.each<[string, () => Promise<{ status: number; body: Json }>]>([
    ['check_event_for_spam', () => send(bob)],
    ['user_may_invite', () => ask(alice, 'POST', `/rooms/${enc(room)}/invite`, { user_id: office.boss.userId })],
    ['user_may_create_room', () => ask(bob, 'POST', '/createRoom')],
    [
      'user_may_create_room_alias',
      () => ask(alice, 'PUT', `/directory/room/${enc('#x:localhost')}`, { room_id: room }),
    ],
    ['user_may_join_room', () => ask(alice, 'POST', `/join/${enc('!nowhere:localhost')}`)],
  ])('refuses by %s, in its own words', async (question, attempt) => {
    service.behaves(refusing(question, 'Go away.'))
    const { status, body } = await attempt()
    expect([status, body]).toEqual([403, { errcode: 'M_FORBIDDEN', error: 'Go away.' }])
  })

  test('refuses registrations', async () => {
    service.behaves(refusing('check_registration_for_spam'))
    await expect(register(office.api, 'spammer')).rejects.toThrow('Not here.')
    service.behaves((_question, _body, reply) => void reply.end('{}'))
    expect((await register(office.api, 'friend')).userId).toBe('@friend:localhost')
    expect(service.asked.at(-1)!.body).toEqual({
      user_id: '@friend:localhost',
      username: 'friend',
      email_threepid: null,
      request_info: [[expect.any(String), expect.stringMatching(/127\.0\.0\.1$/)]],
      auth_provider_id: null,
    })
  })

  test('is asked about invitations by address, one by one', async () => {
    service.behaves(refusing('user_may_send_3pid_invite'))
    const to = (address: string) => ({ id_server: '127.0.0.1:1', id_access_token: 'x', medium: 'email', address })
    const invited = await ask(alice, 'POST', `/rooms/${enc(room)}/invite`, to('a@example.org'))
    expect([invited.status, invited.body.error]).toEqual([403, 'Not here.'])
    const fields = { inviter: alice.userId, medium: 'email' }
    expect(service.asked.at(-1)).toMatchObject({
      question: 'user_may_send_3pid_invite',
      body: { ...fields, address: 'a@example.org', room_id: room },
    })
    service.behaves((question, { address }, reply) => {
      if (question === 'user_may_send_3pid_invite' && address === 'b2@example.org') reply.writeHead(403)
      reply.end('{}')
    })
    const before = service.asked.length
    const invite_3pid = ['b1@example.org', 'b2@example.org', 'b3@example.org'].map(to)
    expect((await ask(alice, 'POST', '/createRoom', { invite_3pid })).status).toBe(403)
    expect(service.asked.slice(before).map(({ question, body }) => [question, body.address, body.room_id])).toEqual([
      ['user_may_send_3pid_invite', 'b1@example.org', ''],
      ['user_may_send_3pid_invite', 'b2@example.org', ''],
    ])
    const many = Array.from({ length: 200 }, (_, n) => to(`c${n}@example.org`))
    service.behaves((_question, _body, reply) => void reply.end('{}'))
    expect((await ask(alice, 'POST', '/createRoom', { invite_3pid: many })).body.errcode).toBe('M_INVALID_PARAM')
    expect(service.asked.length - before).toBeLessThan(100)
  })

  test('is not asked about administrators', async () => {
    service.behaves(refusing('user_may_create_room'))
    expect((await ask(office.boss, 'POST', '/createRoom')).status).toBe(200)
    service.behaves((_question, _body, reply) => void reply.end('{}'))
  })

  test.each<[string, Behaviour]>([
    ['answers nonsense', (_question, _body, reply) => void reply.writeHead(500).end('<html>')],
    ['answers with a redirect', (_question, _body, reply) => void reply.writeHead(302, { location: '/x' }).end()],
    ['answers without end', (_question, _body, reply) => void reply.write('x'.repeat(100_000))],
    ['breaks off', (_question, _body, reply) => void reply.destroy()],
  ])('that %s harms nobody', async (_what, behaviour) => {
    await office.server.restart()
    service.behaves(behaviour)
    expect((await send(bob)).status).toBe(200)
    service.behaves((_question, _body, reply) => void reply.end('{}'))
  })

  test('that hangs is waited for once, and left alone then', async () => {
    await office.server.restart({ moderation: { antispam: { timeout_ms: 300 } } } as never)
    service.behaves(() => {})
    const before = service.asked.length
    expect((await send(bob)).status).toBe(200)
    for (let count = 0; count < 20; count++) expect((await send(bob)).status).toBe(200)
    expect(service.asked.slice(before).map(({ question }) => question)).toEqual(['check_event_for_spam', 'ping'])
    service.behaves((_question, _body, reply) => void reply.end('{}'))
  })

  test('that has trouble with one event alone goes on to be asked', async () => {
    await office.server.restart({ moderation: { antispam: { timeout_ms: 300 } } } as never)
    let sent = 0
    service.behaves((question, _body, reply) => {
      if (question === 'check_event_for_spam' && sent++ === 0) return
      if (question === 'check_event_for_spam') reply.writeHead(403)
      reply.end('{}')
    })
    const pinged = service.asked.length
    expect((await send(bob)).status).toBe(200)
    await waitUntil('the ping', () => service.asked.slice(pinged).some(({ question }) => question === 'ping'))
    await waitUntil('a refusal', async () => (await send(bob)).status === 403, { timeoutMs: 2_000 })
    service.behaves((_question, _body, reply) => void reply.end('{}'))
  })

  test('that has trouble with one event lets nobody else through until it has answered the ping', async () => {
    await office.server.restart({ moderation: { antispam: { timeout_ms: 2_000 } } } as never)
    let answerPing = (): void => {}
    service.behaves((question, { event }, reply) => {
      if (event?.content.body === 'bad luck') reply.destroy()
      else if (question === 'ping') answerPing = () => reply.end('{}')
      else reply.writeHead(403).end('{}')
    })
    const path = `/rooms/${enc(room)}/send/m.room.message/bad-luck`
    expect((await ask(bob, 'PUT', path, { msgtype: 'm.text', body: 'bad luck' })).status).toBe(200)
    await waitUntil('the ping', () => service.asked.at(-1)!.question === 'ping')
    const others = Promise.all([send(bob), send(bob), send(alice)])
    answerPing()
    expect((await others).map(({ status }) => status)).toEqual([403, 403, 403])
    service.behaves((_question, _body, reply) => void reply.end('{}'))
  })

  test('is asked about all, however many come at once', async () => {
    await office.server.restart({ moderation: { antispam: { timeout_ms: 10_000 } } } as never)
    service.behaves((question, _body, reply) => {
      if (question === 'check_event_for_spam') reply.writeHead(403)
      setTimeout(() => reply.end('{}'), 50)
    })
    const answers = await Promise.all(Array.from({ length: 3 * MAX_ANTISPAM_AT_ONCE }, () => send(bob)))
    expect(answers.filter(({ status }) => status !== 403)).toEqual([])
    service.behaves((_question, _body, reply) => void reply.end('{}'))
  })

  test('may be needed: then people are told to try again', async () => {
    await office.server.restart({ moderation: { antispam: { timeout_ms: 300, fail_open: false } } } as never)
    service.behaves((_question, _body, reply) => void reply.destroy())
    const { status, body } = await send(bob)
    expect([status, body.errcode]).toEqual([503, 'M_UNKNOWN'])
    service.behaves((_question, _body, reply) => void reply.end('{}'))
  })
})

describe('options', () => {
  beforeAll(async () => {
    service = await openService()
    await openedWith(
      { questions: [] },
      {
        block_invites_from: ['@b?b:*'],
        forbidden_names: ['admin*', 'support'],
      },
    )
  })
  afterAll(async () => {
    await office.close()
    await service.close()
  })

  test('block invitations, and forbid names', async () => {
    const own = await createRoom(office.api, bob.token)
    const invited = await ask(bob, 'POST', `/rooms/${enc(own)}/invite`, { user_id: alice.userId })
    expect([invited.status, invited.body.error]).toEqual([403, `Invitations from ${bob.userId} are not accepted here.`])
    const address = { id_server: '127.0.0.1:1', id_access_token: 'x', medium: 'email', address: 'a@example.org' }
    const byAddress = await ask(bob, 'POST', `/rooms/${enc(own)}/invite`, address)
    expect([byAddress.status, byAddress.body.error]).toEqual([403, invited.body.error])
    const withRoom = await ask(bob, 'POST', '/createRoom', { invite_3pid: [address] })
    expect([withRoom.status, withRoom.body.error]).toEqual([403, invited.body.error])
    expect((await ask(alice, 'POST', `/rooms/${enc(room)}/invite`, { user_id: bob.userId })).status).toBe(200)
    for (const name of ['administrator', 'support']) {
      const free = await office.api.request('GET', `/register/available?username=${name}`)
      expect([free.status, free.body.errcode]).toEqual([400, 'M_EXCLUSIVE'])
      await expect(register(office.api, name)).rejects.toThrow('cannot be registered')
    }
    expect(service.asked).toEqual([])
  })

  test('say who makes rooms, and who gives them addresses', async () => {
    await office.server.restart({
      moderation: { create_rooms: 'administrators', create_aliases: 'administrators' },
    } as never)
    const refused = await ask(alice, 'POST', '/createRoom')
    expect([refused.status, refused.body.error]).toEqual([403, 'Only administrators of this server may make rooms.'])
    const alias = await ask(alice, 'PUT', `/directory/room/${enc('#y:localhost')}`, { room_id: room })
    expect(alias.status).toBe(403)
    const upgraded = await ask(alice, 'POST', `/rooms/${enc(room)}/upgrade`, { new_version: '11' })
    expect([upgraded.status, upgraded.body.error]).toEqual([403, refused.body.error])
    expect((await ask(office.boss, 'POST', '/createRoom', { room_alias_name: 'boss' })).status).toBe(200)
  })
})
