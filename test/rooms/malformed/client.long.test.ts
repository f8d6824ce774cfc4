import { request } from 'undici'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { RoomId } from '../../../src/core/ids.ts'
import { isObject, type JsonObject, type JsonValue } from '../../../src/core/json.ts'
import { ROOM_VERSIONS } from '../../../src/core/room-version.ts'
import { signingKeyFromSeed } from '../../../src/core/signing/key.ts'
import { auditRoom } from '../../../src/domain/room-audit/room-audit.ts'
import { versionsIn } from '../../core/auth/vector-room.ts'
import { type Account, mapConcurrently, openApi, register } from '../../support/api.ts'
import { MalformedRoom } from '../../support/malformed-room.ts'
import { startServer, type TestServer } from '../../support/server.ts'
import { CASES, forge } from './forgery.ts'

const signingKey = signingKeyFromSeed('ed25519:test', Buffer.alloc(32, 77))
const FIXTURES = new Map(ROOM_VERSIONS.map((version) => [version, new MalformedRoom(version).fixture]))

let server: TestServer
let alice: Account
beforeAll(async () => {
  server = await startServer({}, { signingKey })
  const api = openApi(server.baseUrl)
  alice = await register(api, 'alice')
  await api.close()
})
afterAll(() => server.close())

interface Answer {
  readonly status: number
  readonly body: JsonObject
}

/** A body as it is, which need not be JSON. */
async function send(method: 'PUT' | 'POST', path: string, body: string): Promise<Answer> {
  const answer = await request(`${server.baseUrl}/_matrix/client/v3${path}`, {
    method,
    body,
    headers: { authorization: `Bearer ${alice.token}`, 'content-type': 'application/json' },
  })
  return { status: answer.statusCode, body: (await answer.body.json()) as JsonObject }
}

/** The text of the content of an event: what a client can bring of it. All of it where no content can be found. */
function contentText(text: string): string {
  const start = text.indexOf('"content":') + '"content":'.length
  if (start < '"content":'.length) return text
  let depth = 0
  for (let at = start; at < text.length; at++) {
    const char = text[at]!
    if (char === '"') {
      do at = text.indexOf('"', at + 1)
      while (at > 0 && isEscaped(text, at))
      if (at < 0) return text
    } else if ('[{'.includes(char)) depth++
    else if (']}'.includes(char)) depth--
    if (depth === 0 && ',]}"'.includes(char)) return text.slice(start, char === ',' ? at : at + 1)
    if (depth < 0) return text.slice(start, at)
  }
  return text
}

function isEscaped(text: string, at: number): boolean {
  let run = at
  while (text[run - 1] === '\\') run--
  return (at - run) % 2 === 1
}

const text = (value: JsonValue | undefined, otherwise: string) => encodeURIComponent(wellFormed(value, otherwise))

function wellFormed(value: JsonValue | undefined, otherwise: string): string {
  return typeof value === 'string' && value.length < 2000 ? Buffer.from(value).toString() : otherwise
}

it('what clients send of malformed events is refused or makes events that are right', async () => {
  const answers: Record<string, number> = {}
  const failures: string[] = []
  const note = (what: string, { status, body }: Answer): Answer => {
    answers[`${what} ${status}`] = (answers[`${what} ${status}`] ?? 0) + 1
    // 502: an invitation of a user whose server is not there to sign it.
    if ((status >= 500 && status !== 502) || (status >= 400 && typeof body.errcode !== 'string'))
      failures.push(`${what}: ${status} ${JSON.stringify(body)}`)
    return { status, body }
  }
  await mapConcurrently(CASES, 8, async (malformed, index) => {
    const versions = versionsIn(malformed.versions)
    const version = versions[index % versions.length]!
    const forgery = forge(malformed, FIXTURES.get(version)!)
    const event = forgery.json && isObject(forgery.json.value) ? forgery.json.value : {}
    const content = contentText(forgery.text)
    const name = `${malformed.kind}: ${malformed.name} in version ${version.id}`
    const made = note(`createRoom`, await send('POST', '/createRoom', JSON.stringify({ room_version: version.id })))
    const room = encodeURIComponent(made.body.room_id as string)
    note(`send`, await send('PUT', `/rooms/${room}/send/${text(event.type, 'm.room.message')}/${index}`, content))
    note(
      `state`,
      await send('PUT', `/rooms/${room}/state/${text(event.type, 'x.open')}/${text(event.state_key, '')}`, content),
    )
    const type = JSON.stringify(wellFormed(event.type, 'x.open'))
    const state = `[{"type":${type},"state_key":${JSON.stringify(wellFormed(event.state_key, ''))},"content":${content}}]`
    note(
      `initial_state`,
      await send('POST', '/createRoom', `{"room_version":"${version.id}","initial_state":${state}}`),
    )
    note(
      `creation_content`,
      await send('POST', '/createRoom', `{"room_version":"${version.id}","creation_content":${content}}`),
    )
    note(
      `levels`,
      await send('POST', '/createRoom', `{"room_version":"${version.id}","power_level_content_override":${content}}`),
    )
    if (failures.length > 0) failures.push(name)
  })
  expect(failures).toEqual([])
  for (const way of ['send', 'state', 'initial_state', 'creation_content', 'levels'])
    expect(answers[`${way} 200`], way).toBeGreaterThan(CASES.length / 2)
  const { db } = server.database
  const rooms = await db.query<{ room_nid: number; room_id: RoomId }>('SELECT room_nid, room_id FROM room')
  const findings: string[] = []
  let events = 0
  for (const { room_nid: roomNid } of rooms) {
    const tally = await auditRoom({
      db,
      roomNid,
      knownKeys: () => [
        { keyId: signingKey.keyId, publicKey: signingKey.publicKey, validUntilTs: Number.MAX_SAFE_INTEGER },
      ],
      found: ({ eventId, what }) => findings.push(`${eventId}: ${what}`),
      progress: () => undefined,
    })
    expect(tally.uncheckedSignatures).toBe(0)
    events += tally.events
  }
  expect(findings).toEqual([])
  const [stood] = await db.query<{ count: number }>(
    'SELECT count(*)::int AS count FROM event WHERE standing IS NOT NULL',
  )
  expect(stood!.count).toBe(0)
  expect(rooms.length).toBeGreaterThan(CASES.length)
  expect(events).toBeGreaterThan(5 * rooms.length)
})
