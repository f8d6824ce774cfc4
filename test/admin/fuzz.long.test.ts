import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { adminEndpoints } from '../../src/routes/admin/index.ts'
import { consoleDataEndpoints } from '../../src/routes/console/index.ts'
import { createRoom } from '../support/api.ts'
import { type Office, openOffice } from './office.ts'

let office: Office
const values: Record<string, readonly string[]> = {}
beforeAll(async () => {
  office = await openOffice({ server_notices: { localpart: 'notices' } })
  const user = await office.person('user')
  const room = await createRoom(office.api, user.token, { name: 'A room', room_alias_name: 'room' })
  const state = await office.api.call('GET', `/rooms/${encodeURIComponent(room)}/state`, { token: user.token })
  values.userId = [user.userId, '@nobody:localhost', '@x:other.example', `@${'a'.repeat(300)}:localhost`]
  values.roomId = [room, '!nothing:localhost', '!x']
  values.roomIdOrAlias = [room, '#room:localhost', '#no:localhost']
  values.eventId = [state[0].event_id, '$nothing']
})
afterAll(() => office.close())

const ODD_TEXTS = ['', 'x', '%00', '%F0%9F%94%A5', '..%2F..', "'%3B--", 'y'.repeat(600), '-1', '1e400', 'null']
const ODD_BODIES: readonly unknown[] = [
  {},
  [],
  null,
  'text',
  7,
  { user_id: 7, content: [], password: {}, admin: 'yes', devices: 'x', threepids: [7], external_ids: [{}] },
  { user_id: '@user:localhost', content: { n: 1.5, s: '\ud800' }, type: '', state_key: '\0' },
  { user_id: '@user:localhost', content: {}, type: 'm.room.member', state_key: '@user:localhost' },
  { user_id: '@user:localhost', content: {}, type: 'm.room.create', state_key: '' },
  { token: '\0', length: 1e9, uses_allowed: 1.5, expiry_time: -1, block: 1, purge: 'no' },
  { new_password: '\0', display_name: '\0'.repeat(9), displayname: '\0', avatar_url: '\0', devices: ['\0'] },
  { new_password: 'p'.repeat(100_000), displayname: 'd'.repeat(100_000), message: 'm'.repeat(100_000) },
  { messages_per_second: -1, burst_count: 2 ** 60, valid_until_ms: 2 ** 60, new_room_user_id: '@\0:localhost' },
  { nonce: '\0', username: '\0', password: '\0', mac: '\0', admin: null },
]
const ODD_QUERIES = ['', ...ODD_TEXTS.map((text) => `from=${text}&limit=${text}`)].flatMap((page) => [
  page,
  ...['name', 'user_id', 'search_term', 'type', 'username', 'actor', 'target', 'before', 'order_by', 'valid'].map(
    (name, index) => `${page}&${name}=${ODD_TEXTS[index]}`,
  ),
])

/** What never ends well for the rest of the test. */
const NEVER = new Set(['POST /_synapse/admin/v1/deactivate/{userId}', 'DELETE /_synapse/admin/v2/rooms/{roomId}'])

function* urlsOf(path: string): Generator<string> {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!)
  const choices = Math.max(1, ...names.map((name) => (values[name] ?? ODD_TEXTS).length))
  for (let n = 0; n < choices; n++) {
    yield path.replace(/^C1/, '/_matrix/client/v1').replace(/\{(\w+)\}/g, (_, name: string) => {
      const known = values[name]
      return known ? encodeURIComponent(known[n % known.length]!) : ODD_TEXTS[n % ODD_TEXTS.length]!
    })
  }
}

describe('asked badly by an administrator', () => {
  const lines = [...adminEndpoints, ...consoleDataEndpoints].map(
    (endpoint) => [`${endpoint.method} ${endpoint.path}`, endpoint] as const,
  )
  test.each(lines.filter(([line]) => !NEVER.has(line)))('%s answers in words', async (_, { method, path, options }) => {
    const faults: string[] = []
    const ask = async (url: string, body?: unknown) => {
      const answer = await office.ask(method, url, body)
      const isInWords = answer.status < 400 || typeof answer.body?.errcode === 'string'
      if (answer.status >= 500 || !isInWords)
        faults.push(`${url} ${JSON.stringify(body)?.slice(0, 200)}: ${answer.status}`)
    }
    for (const url of urlsOf(path)) {
      if (options.body) for (const body of ODD_BODIES) await ask(url, body)
      else await ask(url)
    }
    if (options.query) for (const query of ODD_QUERIES) await ask(`${[...urlsOf(path)][0]}?${query}`)
    expect(faults).toEqual([])
  })
})
