import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Json } from '../../support/api.ts'
import { cpuMsOf } from '../../support/slowness.ts'
import { type Answer, type House, inRoom, openHouse, type Person } from '../people.ts'

let house: House
let alice: Person
let room: string

beforeAll(async () => {
  house = await openHouse()
  alice = await house.person('alice')
  room = await alice.createRoom()
})

afterAll(() => house.close())

/** A body as it stands, which need not be what JSON.stringify would write. */
async function raw(method: string, path: string, body: string): Promise<Answer> {
  const answer = await fetch(`${house.server.baseUrl}/_matrix/client/v3${path}`, {
    method,
    headers: { authorization: `Bearer ${alice.token}`, 'content-type': 'application/json' },
    body,
  })
  return { status: answer.status, body: await answer.json() }
}

let transactions = 0
const send = (type: string, body: string, where = room) =>
  raw('PUT', inRoom(where, `/send/${encodeURIComponent(type)}/limit-${++transactions}`), body)

async function storedEvents(): Promise<number> {
  const [row] = await house.server.database.db.query<{ count: number }>('SELECT count(*) AS count FROM event')
  return row!.count
}

/** Runs what must fail, and holds it to storing nothing. */
async function refusal(attempt: () => Promise<Answer>): Promise<[number, string]> {
  const before = await storedEvents()
  const { status, body } = await attempt()
  expect(await storedEvents()).toBe(before)
  return [status, body.errcode]
}

describe('an event', () => {
  it('may have 65535 bytes as federated, and not one more', async () => {
    for (let number = 0; number < 12; number++) await alice.say(room, 'deeper')
    const probe = await send('m.room.message', '{"body":""}')
    const bytes = async (eventId: string): Promise<number> => {
      const [row] = await house.server.database.db.query<{ size: number }>(
        'SELECT octet_length(json) AS size FROM event WHERE event_id = $1',
        [eventId],
      )
      return row!.size
    }
    const room_for = 65_535 - (await bytes(probe.body.event_id))
    const full = await send('m.room.message', JSON.stringify({ body: 'x'.repeat(room_for) }))
    expect(full.status).toBe(200)
    expect(await bytes(full.body.event_id)).toBe(65_535)
    const more = JSON.stringify({ body: 'x'.repeat(room_for + 1) })
    expect(await refusal(() => send('m.room.message', more))).toEqual([413, 'M_TOO_LARGE'])
    // Bytes count, not characters.
    const wide = JSON.stringify({ body: 'ü'.repeat(room_for / 2 + 1) })
    expect(await refusal(() => send('m.room.message', wide))).toEqual([413, 'M_TOO_LARGE'])
  })

  it.each([
    ['255 bytes', 'x'.repeat(255), 200],
    ['255 bytes of wide characters', `x${'ü'.repeat(127)}`, 200],
    ['256 bytes', 'x'.repeat(256), 413],
    ['128 characters of 256 bytes', 'ü'.repeat(128), 413],
  ])('may have a type and a state key of 255 bytes: %s', async (_, name, status) => {
    const encoded = encodeURIComponent(name)
    const attempts: (() => Promise<Answer>)[] = [
      () => send(name, '{}'),
      () => raw('PUT', inRoom(room, `/state/${encoded}`), '{"a":1}'),
      () => raw('PUT', inRoom(room, `/state/org.example.key/${encoded}`), '{"a":1}'),
    ]
    for (const attempt of attempts) {
      if (status === 200) expect((await attempt()).status).toBe(200)
      else expect(await refusal(attempt)).toEqual([413, 'M_TOO_LARGE'])
    }
  })

  it('names room, users and events by ids of 255 bytes at most', async () => {
    const long = 'x'.repeat(256)
    const paths = [
      inRoom(`!${long}:localhost`, '/send/m.room.message/1'),
      inRoom(room, `/redact/${encodeURIComponent(`$${long}`)}/1`),
      inRoom(room, `/typing/${encodeURIComponent(`@${long}:localhost`)}`),
    ]
    for (const path of paths) {
      expect(await refusal(() => raw('PUT', path, '{}'))).toEqual([400, 'M_INVALID_PARAM'])
    }
    const invite = JSON.stringify({ user_id: `@${long}:localhost` })
    expect(await refusal(() => raw('POST', inRoom(room, '/invite'), invite))).toEqual([400, 'M_INVALID_PARAM'])
  })
})

describe('content that canonical JSON does not have', () => {
  const OFFENCES = {
    'a fraction': '{"n":1.5}',
    'an exponent': '{"n":1e3}',
    'an integer written as a fraction': '{"n":[1.0]}',
    'minus zero': '{"n":-0}',
    'an integer too large': '{"n":9007199254740992}',
    'an integer too small': '{"deep":{"n":-9007199254740992}}',
  }
  const SURROGATES = { 'half a character': '{"s":"\\ud83d"}', 'half a character in a key': '{"\\udc00":1}' }

  it.each(Object.entries({ ...OFFENCES, ...SURROGATES }))('%s is refused wherever content goes', async (_, content) => {
    const attempts = [
      () => send('m.room.message', content),
      () => raw('PUT', inRoom(room, '/state/org.example.offence'), content),
      () => raw('POST', '/createRoom', `{"creation_content":${content}}`),
      () => raw('POST', '/createRoom', `{"initial_state":[{"type":"org.example","content":${content}}]}`),
    ]
    for (const attempt of attempts) expect(await refusal(attempt)).toEqual([400, 'M_BAD_JSON'])
  })

  it('is let be in rooms of versions that had no such rule, but for half characters', async () => {
    const old = await alice.createRoom({ room_version: '5' })
    for (const content of Object.values(OFFENCES)) expect((await send('org.example', content, old)).status).toBe(200)
    for (const content of Object.values(SURROGATES)) {
      expect(await refusal(() => send('org.example', content, old))).toEqual([400, 'M_BAD_JSON'])
    }
    const { chunk } = await alice.call('GET', inRoom(old, '/messages?dir=f&limit=100'))
    const numbers = chunk.filter(({ type }: Json) => type === 'org.example').map(({ content }: Json) => content.n)
    expect(numbers.slice(0, 2)).toEqual([1.5, 1000])
  })

  it('does not mean that odd keys are lost', async () => {
    const content = '{"__proto__":{"polluted":true},"constructor":1,"9":"nine","10":"ten","":"empty","é":"é"}'
    const { body } = await send('org.example', content)
    const path = `/_matrix/client/v3${inRoom(room, `/event/${encodeURIComponent(body.event_id)}`)}`
    const answer = await fetch(house.server.baseUrl + path, { headers: { authorization: `Bearer ${alice.token}` } })
    const text = await answer.text()
    for (const part of ['"__proto__":{"polluted":true}', '"constructor":1', '"":"empty"', '"é":"é"']) {
      expect(text).toContain(part)
    }
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined()
  })

  it.each([
    ['no JSON', '{', 400, 'M_NOT_JSON'],
    ['no object', '[]', 400, 'M_BAD_JSON'],
    ['nested without end', `{"a":${'['.repeat(200_000)}${']'.repeat(200_000)}}`, 400, 'M_BAD_JSON'],
    ['nested without end and never closed', '['.repeat(200_000), 400, undefined],
  ])('nor %s', async (_, content, status, errcode) => {
    const took = await cpuMsOf(async () => {
      const [was, code] = await refusal(() => send('m.room.message', content))
      expect(was).toBe(status)
      if (errcode !== undefined) expect(code).toBe(errcode)
    })
    expect(took).toBeLessThan(1_000)
  })
})
