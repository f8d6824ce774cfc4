import { afterAll, beforeAll, expect, test } from 'vitest'
import { residentHandler } from '../../bench/federation/resident-stub.ts'
import { buildStubRoom, type StubRoom, userOf, VERSION } from '../../bench/federation/stub-room.ts'
import type { StubHandler, StubServer } from '../../bench/federation/stub-servers.ts'
import { buildEvent } from '../../src/core/event/build.ts'
import { eventIdIn } from '../../src/core/event/read.ts'
import type { EventId } from '../../src/core/ids.ts'
import { type Account, type Json, register, sendText, syncPath } from '../support/api.ts'
import { type Authority, createAuthority } from '../support/certificate.ts'
import { type House, openHouse } from '../support/house.ts'
import { runProgramHere } from '../support/run-hearth.ts'
import { openStranger, type Stranger } from '../support/stranger.ts'
import type { TlsHandler } from '../support/tls-server.ts'
import { waitUntil } from '../support/wait.ts'

/** `RESYNC_MEMBERS=50000 RESYNC_KILLS=5` for a room as large as they come. */
const MEMBERS = Number(process.env.RESYNC_MEMBERS ?? 2_000)
const KILLS = Number(process.env.RESYNC_KILLS ?? 1)
/** At which parts of the members, counted in the database, the process is killed. */
const KILLED_AT = Array.from({ length: KILLS }, (_, n) => (n + 1) / (KILLS + 1))
const enc = encodeURIComponent

let authority: Authority
let house: House
let strangers: Stranger[] = []
let servers: StubServer[]
let room: StubRoom
/** Somebody who is not in the room. */
let stray: Account

beforeAll(async () => {
  authority = createAuthority()
  house = await openHouse(authority)
  strangers = [await openStranger(authority), await openStranger(authority)]
  servers = strangers.map(({ name, key }) => ({ name, key }))
  room = buildStubRoom(servers, MEMBERS)
  const handle = residentHandler(room, servers)
  for (const [n, { front }] of strangers.entries()) front.handler = answering(servers[n]!, handle, front.handler)
})

afterAll(async () => {
  await house?.close()
  for (const stranger of strangers) await stranger.close()
  authority.remove()
})

/** A stub behind a stranger's name: keys are the stranger's. */
function answering(at: StubServer, handle: StubHandler, keys: TlsHandler): TlsHandler {
  return (request, response) => {
    if (request.url.startsWith('/_matrix/key/')) return keys(request, response)
    const { pathname: path, searchParams: query } = new URL(request.url, 'https://stub')
    const said = handle({ at, method: request.method, path, query, body: request.body })
    response.writeHead(said ? 200 : 404, { 'content-type': 'application/json' })
    response.end(said ? Buffer.concat(said.map((piece) => Buffer.from(piece))) : '{"errcode":"M_UNRECOGNIZED"}')
  }
}

const count = async (sql: string): Promise<number> => {
  const [row] = await house.database.db.query<{ count: number }>(`SELECT count(*)::int AS count FROM ${sql}`)
  return row!.count
}

const isFilled = async () => (await count('room_filling WHERE filled_at IS NOT NULL')) === 1

/** Kills the process once so much of the members is written, and starts it again. */
async function killAt(part: number): Promise<void> {
  const wanted = part * MEMBERS
  await waitUntil(`${part} of the members`, async () => (await count('event')) >= wanted, {
    timeoutMs: 60_000,
    everyMs: 2,
  })
  await house.child.kill('SIGKILL')
  expect(await isFilled()).toBe(false)
  await leaveHalfWritten()
  await house.child.start()
}

/**
 * Writes what a process leaves that ends between two commits of members: the beginning of the log behind our join, and memberships.
 * One of these nobody will tell again.
 */
async function leaveHalfWritten(): Promise<void> {
  await house.database.db.tx(async (tx) => {
    await tx.query(
      `INSERT INTO state_change (room_nid, chain, seq, key_id, event_nid)
       SELECT room_nid, parent_chain, parent_seq + row_number() OVER (ORDER BY event_nid), told.key_id, event_nid
       FROM (SELECT room_nid, state_chain AS chain FROM event JOIN room_filling USING (room_nid) WHERE event_id = join_event_id) AS own
         JOIN state_chain USING (room_nid, chain) JOIN event AS told USING (room_nid)
       WHERE told.type = 'm.room.member' AND told.standing = 'outlier' ORDER BY event_nid LIMIT 100`,
    )
    const { length } = await tx.query(
      `INSERT INTO room_member (user_nid, room_nid, membership, event_nid)
       SELECT matrix_user.user_nid, room_nid, 'join', max(event_nid) FROM state_change, matrix_user
       WHERE room_nid = (SELECT room_nid FROM room_filling) AND matrix_user.user_id = $1
       GROUP BY matrix_user.user_nid, room_nid RETURNING 1`,
      [stray.userId],
    )
    expect(length).toBe(1)
  })
}

/** What a member of the second server says right after our user has come in, as that server sends it. */
async function saidByMember(text: string, prev: EventId): Promise<EventId> {
  const { name, key } = servers[1]!
  const member = userOf(servers, 1)
  const join = room.members.find((json) => JSON.parse(json).state_key === member)!
  const cited = [...room.place.auth_events.slice(0, 2), eventIdIn(VERSION, JSON.parse(join))!] as EventId[]
  const draft = {
    ...{ type: 'm.room.message', sender: member, room_id: room.roomId, content: { msgtype: 'm.text', body: text } },
    ...{ origin_server_ts: Date.now(), depth: Number(room.place.depth) + 1, prev_events: [prev], auth_events: cited },
  }
  const { eventId, pdu } = buildEvent(VERSION, draft, name, key)
  const body = { origin: name, origin_server_ts: Date.now(), pdus: [pdu], edus: [] }
  const to = { name: house.name, url: house.child.baseUrl }
  const answer = await strangers[1]!.ask(to, 'PUT', `/_matrix/federation/v1/send/${text}`, { body })
  expect(answer).toEqual({ status: 200, body: { pdus: { [eventId]: {} } } })
  return eventId
}

/** Joins, and gives the id of the join as the resident server was told it. */
async function joinRoom({ token }: Account): Promise<EventId> {
  await house.api.call('POST', `/join/${enc(room.roomId)}?server_name=${enc(servers[0]!.name)}`, { token, body: {} })
  const { url } = strangers[0]!.front.requests.find((request) => request.url.includes('/send_join/'))!
  return decodeURIComponent(url.split('?')[0]!.split('/').at(-1)!) as EventId
}

/** The texts of the messages that a server was sent, by event id. */
function messagesSentTo({ front }: Stranger): Map<EventId, string> {
  const sent = front.requests.filter(({ url }) => url.includes('/federation/v1/send/'))
  const pdus = sent.flatMap(({ body }) => (JSON.parse(body) as { pdus: Json[] }).pdus)
  const messages = pdus.filter(({ type }) => type === 'm.room.message')
  return new Map(messages.map((pdu) => [eventIdIn(VERSION, pdu)!, pdu.content.body]))
}

test(`a room of ${MEMBERS} members is filled though kill -9 ends the process amid it (${KILLS}) and right after`, async () => {
  const alice = await register(house.api, 'alice')
  stray = await register(house.api, 'stray')
  const join = await joinRoom(alice)
  const [held, own] = await Promise.all([
    saidByMember('held', join),
    sendText(house.api, alice.token, room.roomId, 'own', 'own') as Promise<EventId>,
  ])
  for (const part of KILLED_AT) await killAt(part)
  await waitUntil('the room to be filled', isFilled, { timeoutMs: 60_000, everyMs: 2 })
  await house.child.kill('SIGKILL')
  await house.child.start()
  await waitUntil('nothing to wait', async () => (await count('held_event')) === 0, { timeoutMs: 60_000 })

  const members = await house.api.call('GET', `/rooms/${enc(room.roomId)}/members`, { token: alice.token })
  expect(members.chunk).toHaveLength(MEMBERS + 1)
  expect(await count("room_member WHERE membership = 'join'")).toBe(MEMBERS + 1)
  const path = syncPath({ filter: { room: { state: { lazy_load_members: true } } } })
  const { rooms } = await house.api.call('GET', path, { token: alice.token })
  const shown = rooms.join[room.roomId].timeline.events.map(({ event_id }: Json) => event_id)
  expect(shown.toSorted()).toEqual([join, held, own].toSorted())
  for (const stranger of strangers) {
    await waitUntil('our message', () => messagesSentTo(stranger).has(own))
    expect([...messagesSentTo(stranger).values()]).toEqual(['own'])
  }
  const { code, stdout } = await runProgramHere(['room', 'verify', room.roomId], {
    directory: house.child.dataDir,
    env: { HEARTH__DATABASE__URL: house.database.url, HEARTH__SERVER_NAME: house.name },
  })
  expect(stdout).toContain('All of it is right.')
  expect(code).toBe(0)
}, 180_000)
