import { request as httpRequest, type IncomingMessage } from 'node:http'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { MAX_BACKED_UP_KEY_BYTES, MAX_BACKED_UP_KEYS, MAX_KEYS_BODY_BYTES } from '../../src/domain/limits.ts'
import { type Api, type Json, openApi } from '../support/api.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { cpuMsOf } from '../support/slowness.ts'
import { type KeyData, keysPath, newKey, newOwner, OTHER_ROOM, type Owner, ROOM } from './backups.ts'

let server: TestServer
let api: Api
let alice: Owner
let count = 0
const owner = (): Promise<Owner> => newOwner(api, `owner-${++count}`)

beforeAll(async () => {
  server = await startServer()
  api = openApi(server.baseUrl)
  alice = await owner()
})
afterAll(async () => {
  await api.close()
  await server.close()
})

const state = async (by: Owner): Promise<{ etag: string; count: number }> => {
  const { etag, count } = await by.call('GET', '/room_keys/version')
  return { etag, count }
}

describe('keys that were put', () => {
  it('all at once, by room or one by one are there in every reading', async () => {
    const version = await alice.backup()
    const [a, b, c, d] = [newKey(), newKey({ is_verified: true }), newKey({ forwarded_count: 3 }), newKey()]
    const rooms = { [ROOM]: { sessions: { a, 'b/+=': b } }, [OTHER_ROOM]: { sessions: {} } }
    expect(await alice.call('PUT', keysPath(version), { rooms })).toMatchObject({ count: 2 })
    expect(await alice.call('PUT', keysPath(version, OTHER_ROOM), { sessions: { c } })).toMatchObject({ count: 3 })
    expect(await alice.call('PUT', keysPath(version, OTHER_ROOM, 'd'), d)).toMatchObject({ count: 4 })
    const all = { [ROOM]: { sessions: { a, 'b/+=': b } }, [OTHER_ROOM]: { sessions: { c, d } } }
    expect(await alice.call('GET', keysPath(version))).toEqual({ rooms: all })
    expect(await alice.call('GET', keysPath(version, ROOM))).toEqual(all[ROOM])
    expect(await alice.call('GET', keysPath(version, ROOM, 'b/+='))).toEqual(b)
  })

  it('keep what clients encrypt to the letter', async () => {
    const version = await alice.backup()
    const odd = newKey({ session_data: { é: '\u0000\ud83d\udd25', deep: [1.5, -3, null, { __proto__x: 1 }], n: 1e21 } })
    await alice.call('PUT', keysPath(version, ROOM, 'odd'), odd)
    expect(await alice.call('GET', keysPath(version))).toEqual({ rooms: { [ROOM]: { sessions: { odd } } } })
  })

  it('are those of their version', async () => {
    const first = await alice.backup()
    await alice.call('PUT', keysPath(first, ROOM, 's'), newKey())
    const second = await alice.backup()
    expect(await alice.call('GET', keysPath(second))).toEqual({ rooms: {} })
    expect((await alice.ask('GET', keysPath(second, ROOM, 's'))).body.errcode).toBe('M_NOT_FOUND')
    expect((await alice.ask('GET', keysPath(first, ROOM, 's'))).status).toBe(200)
  })
})

describe('readings of nothing', () => {
  it('are empty for a backup or a room without keys, and 404 for a key and for a backup that is not there', async () => {
    const version = await alice.backup()
    expect(await alice.call('GET', keysPath(version))).toEqual({ rooms: {} })
    expect(await alice.call('GET', keysPath(version, ROOM))).toEqual({ sessions: {} })
    for (const path of [
      keysPath(version, ROOM, 's'),
      keysPath('99'),
      keysPath('99', ROOM),
      keysPath('99', ROOM, 's'),
    ]) {
      const { status, body } = await alice.ask('GET', path)
      expect([path, status, body.errcode]).toEqual([path, 404, 'M_NOT_FOUND'])
    }
  })
})

describe('etag and count', () => {
  it('change exactly when keys do', async () => {
    const by = await owner()
    const version = await by.backup()
    const key = newKey()
    const seen: string[] = [(await state(by)).etag]
    const step = async (method: string, path: string, body: unknown, isChange: boolean, keys: number) => {
      const answer = await by.call(method, path, body)
      expect(await state(by)).toEqual({ etag: answer.etag, count: keys })
      expect(answer.count).toBe(keys)
      expect(seen.includes(answer.etag)).toBe(!isChange)
      seen.push(answer.etag)
    }
    await step('PUT', keysPath(version, ROOM, 's'), key, true, 1)
    await step('PUT', keysPath(version, ROOM, 's'), key, false, 1)
    await step('PUT', keysPath(version, ROOM, 's'), { ...newKey(), first_message_index: 2 }, false, 1)
    await step('PUT', keysPath(version, ROOM, 's'), { ...newKey(), is_verified: true }, true, 1)
    await step('PUT', keysPath(version), { rooms: {} }, false, 1)
    await step('PUT', keysPath(version), { rooms: { [ROOM]: { sessions: { s: key, t: key } } } }, true, 2)
    await step('DELETE', keysPath(version, OTHER_ROOM), undefined, false, 2)
    await step('DELETE', keysPath(version, ROOM, 'nothing'), undefined, false, 2)
    await step('DELETE', keysPath(version, ROOM, 's'), undefined, true, 1)
    await step('DELETE', keysPath(version, ROOM), undefined, true, 0)
    await step('DELETE', keysPath(version), undefined, false, 0)
  })

  it('are right after parallel uploads and deletions', async () => {
    const by = await owner()
    const version = await by.backup()
    const sessions = (offset: number) =>
      Object.fromEntries(
        Array.from({ length: 20 }, (_, i) => [`s${i + offset}`, newKey({ first_message_index: 40 - offset })]),
      )
    const answers = await Promise.all([
      ...Array.from({ length: 12 }, (_, i) => by.call('PUT', keysPath(version, ROOM), { sessions: sessions(i * 3) })),
      ...Array.from({ length: 6 }, (_, i) => by.call('DELETE', keysPath(version, ROOM, `s${i * 7}`))),
    ])
    const stored = await by.call('GET', keysPath(version, ROOM))
    const { etag, count } = await state(by)
    expect(Object.keys(stored.sessions).length).toBe(count)
    expect(Math.max(...answers.map((answer) => Number(answer.etag)))).toBe(Number(etag))
  })
})

describe('PUT keys', () => {
  it('of an older version is 403 M_WRONG_ROOM_KEYS_VERSION with current_version', async () => {
    const by = await owner()
    await by.backup()
    await by.backup()
    const bodies: [string, unknown][] = [
      [keysPath('1'), { rooms: { [ROOM]: { sessions: { s: newKey() } } } }],
      [keysPath('1', ROOM), { sessions: { s: newKey() } }],
      [keysPath('1', ROOM, 's'), newKey()],
    ]
    for (const [path, body] of bodies) {
      const answer = await by.ask('PUT', path, body)
      expect(answer.status).toBe(403)
      expect(answer.body).toMatchObject({ errcode: 'M_WRONG_ROOM_KEYS_VERSION', current_version: '2' })
    }
    expect(await by.call('GET', keysPath('1'))).toEqual({ rooms: {} })
    // An older version may be read, and emptied.
    expect((await by.ask('DELETE', keysPath('1'))).status).toBe(200)
  })

  it('of a version that does not exist, or without any backup, is 404 M_NOT_FOUND', async () => {
    const by = await owner()
    const put = async (version: string) => (await by.ask('PUT', keysPath(version, ROOM, 's'), newKey())).body.errcode
    expect(await put('1')).toBe('M_NOT_FOUND')
    await by.backup()
    expect(await put('2')).toBe('M_NOT_FOUND')
    await by.call('DELETE', '/room_keys/version/1')
    expect(await put('1')).toBe('M_NOT_FOUND')
  })

  const wrong: [string, Json, string][] = [
    ['no rooms', {}, 'M_MISSING_PARAM'],
    ['a room without sessions', { rooms: { [ROOM]: {} } }, 'M_MISSING_PARAM'],
    ['a room id that is none', { rooms: { room: { sessions: { s: newKey() } } } }, 'M_INVALID_PARAM'],
    [
      'no session_data',
      { rooms: { [ROOM]: { sessions: { s: { ...newKey(), session_data: undefined } } } } },
      'M_MISSING_PARAM',
    ],
    [
      'session_data that is a list',
      { rooms: { [ROOM]: { sessions: { s: newKey({ session_data: ['x'] }) } } } },
      'M_BAD_JSON',
    ],
    [
      'an index below zero',
      { rooms: { [ROOM]: { sessions: { s: newKey({ first_message_index: -1 }) } } } },
      'M_INVALID_PARAM',
    ],
    ['half an index', { rooms: { [ROOM]: { sessions: { s: newKey({ forwarded_count: 0.5 }) } } } }, 'M_BAD_JSON'],
    [
      'is_verified as text',
      { rooms: { [ROOM]: { sessions: { s: { ...newKey(), is_verified: 'true' } } } } },
      'M_BAD_JSON',
    ],
    ['a session id with NUL', { rooms: { [ROOM]: { sessions: { 's\0': newKey() } } } }, 'M_INVALID_PARAM'],
    [
      'session ids of broken Unicode',
      { rooms: { [ROOM]: { sessions: { '\ud800': newKey(), '\udc00': newKey() } } } },
      'M_INVALID_PARAM',
    ],
    [
      'large session_data',
      { rooms: { [ROOM]: { sessions: { s: newKey({ session_data: { x: 'x'.repeat(16_384) } }) } } } },
      'M_TOO_LARGE',
    ],
  ]
  it.each(wrong)('refuses %s, with all that came beside it', async (_, body, errcode) => {
    const by = await owner()
    const version = await by.backup()
    const beside = { [OTHER_ROOM]: { sessions: { good: newKey() } } }
    const whole = body.rooms ? { rooms: { ...beside, ...body.rooms } } : body
    expect((await by.ask('PUT', keysPath(version), whole)).body.errcode).toBe(errcode)
    expect(await state(by)).toEqual({ etag: '0', count: 0 })
  })

  it('without `version` is refused', async () => {
    expect((await alice.ask('PUT', '/room_keys/keys', { rooms: {} })).body.errcode).toBe('M_MISSING_PARAM')
  })

  it('above the cap of a user is refused, whichever version it is in', async () => {
    const by = await owner()
    await by.backup()
    const { db } = server.database
    await db.tx((tx) =>
      tx.query(
        'UPDATE key_backup SET key_count = $2 WHERE user_nid = (SELECT user_nid FROM matrix_user WHERE user_id = $1)',
        [by.userId, MAX_BACKED_UP_KEYS - 1],
      ),
    )
    const version = await by.backup()
    const put = (sessions: Record<string, KeyData>) => by.ask('PUT', keysPath(version, ROOM), { sessions })
    expect((await put({ a: newKey(), b: newKey() })).body.errcode).toBe('M_TOO_LARGE')
    expect((await put({ a: newKey() })).status).toBe(200)
    expect((await put({ b: newKey() })).body.errcode).toBe('M_TOO_LARGE')
    expect((await put({ a: newKey({ is_verified: true }) })).body.count).toBe(1)
  })
})

describe('bytes of keys', () => {
  const bytesOf = async (by: { readonly userId: string }): Promise<number> => {
    const [row] = await server.database.db.query<{ bytes: number }>(
      'SELECT sum(bytes)::bigint AS bytes FROM key_backup JOIN matrix_user USING (user_nid) WHERE user_id = $1',
      [by.userId],
    )
    return row!.bytes
  }
  const dataOf = (letters: number) => ({ session_data: { ciphertext: 'x'.repeat(letters) } })
  const EMPTY = JSON.stringify(dataOf(0).session_data).length

  it('are counted as keys come, are replaced, stay, and go', async () => {
    const by = await owner()
    const version = await by.backup()
    const put = (sessions: Record<string, KeyData>) => by.ask('PUT', keysPath(version, ROOM), { sessions })
    await put({ a: newKey(dataOf(100)), b: newKey(dataOf(50)) })
    expect(await bytesOf(by)).toBe(2 * EMPTY + 150)
    await put({ a: newKey({ ...dataOf(30), is_verified: true }), b: newKey(dataOf(900)), c: newKey(dataOf(7)) })
    expect(await bytesOf(by)).toBe(3 * EMPTY + 30 + 50 + 7)
    await by.ask('DELETE', keysPath(version, ROOM, 'a'))
    expect(await bytesOf(by)).toBe(2 * EMPTY + 50 + 7)
    await by.ask('DELETE', keysPath(version))
    expect(await bytesOf(by)).toBe(0)
  })

  it('above the cap of a user are refused, whichever version they are in, and smaller ones may replace larger ones', async () => {
    const by = await owner()
    const version = await by.backup()
    const put = (sessions: Record<string, KeyData>, into = version) => by.ask('PUT', keysPath(into, ROOM), { sessions })
    await put({ a: newKey(dataOf(500)) })
    await server.database.db.tx((tx) =>
      tx.query(
        'UPDATE key_backup SET bytes = $2 WHERE user_nid = (SELECT user_nid FROM matrix_user WHERE user_id = $1)',
        [by.userId, MAX_BACKED_UP_KEY_BYTES - EMPTY - 10],
      ),
    )
    expect((await put({ b: newKey(dataOf(11)) })).body).toMatchObject({ errcode: 'M_TOO_LARGE' })
    expect((await put({ a: newKey({ ...dataOf(400), is_verified: true }) })).status).toBe(200)
    expect((await put({ b: newKey(dataOf(110)) })).status).toBe(200)
    const next = await by.backup()
    expect((await put({ c: newKey(dataOf(1)) }, next)).body.errcode).toBe('M_TOO_LARGE')
  })
})

describe('10,000 keys', () => {
  it('are put, put again, read and removed in one call each, quickly', async () => {
    const by = await owner()
    const version = await by.backup()
    const rooms = Object.fromEntries(
      Array.from({ length: 20 }, (_, room) => {
        const sessions = Array.from({ length: 500 }, (_, i) => [
          `session-${i}-${'x'.repeat(30)}`,
          newKey({
            session_data: { ephemeral: 'e'.repeat(43), ciphertext: `${i} ${'c'.repeat(600)}`, mac: 'm'.repeat(11) },
          }),
        ])
        return [`!room${room}:localhost`, { sessions: Object.fromEntries(sessions) }]
      }),
    )
    const took: Record<string, number> = {}
    const timed = async (name: string, method: string, path: string, body?: unknown): Promise<Json> => {
      let answer: Json
      took[name] = await cpuMsOf(async () => {
        answer = await by.call(method, path, body)
      })
      return answer!
    }
    expect((await timed('put', 'PUT', keysPath(version), { rooms })).count).toBe(10_000)
    const first = await state(by)
    await timed('put again', 'PUT', keysPath(version), { rooms })
    expect(await state(by)).toEqual(first)
    expect(await timed('get', 'GET', keysPath(version))).toEqual({ rooms })
    expect(await timed('get a room', 'GET', keysPath(version, '!room7:localhost'))).toEqual(rooms['!room7:localhost'])
    await timed('get one', 'GET', keysPath(version, '!room7:localhost', `session-7-${'x'.repeat(30)}`))
    expect((await timed('delete', 'DELETE', keysPath(version))).count).toBe(0)
    // About six times what they take.
    const limits = { put: 1_500, 'put again': 1_500, get: 700, 'get a room': 250, 'get one': 250, delete: 250 }
    for (const [name, limit] of Object.entries(limits)) expect(took[name], name).toBeLessThan(limit)
  })

  it('come only from users: a large body of others is refused before it is read', async () => {
    const request = httpRequest(`${server.baseUrl}/_matrix/client/v3${keysPath('1')}`, {
      method: 'PUT',
      headers: { authorization: 'Bearer nobody', 'content-length': MAX_KEYS_BODY_BYTES },
    })
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      request.once('response', resolve).once('error', reject).flushHeaders()
    })
    request.on('error', () => undefined).destroy()
    expect(answer.statusCode).toBe(401)
  })
})

it('keys survive a restart', async () => {
  const by = await owner()
  const version = await by.backup()
  const key = newKey()
  await by.call('PUT', keysPath(version, ROOM, 's'), key)
  const before = await by.call('GET', '/room_keys/version')
  await server.restart()
  expect(await by.call('GET', '/room_keys/version')).toEqual(before)
  expect(await by.call('GET', keysPath(version, ROOM, 's'))).toEqual(key)
})
