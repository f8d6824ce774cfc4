import { request as httpRequest, type IncomingMessage } from 'node:http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { UserId } from '../../src/core/ids.ts'
import { JsonBytes } from '../../src/core/json-bytes.ts'
import { ANSWER_BYTES_RESERVED } from '../../src/domain/limits/answers.ts'
import { MAX_ANSWER_BYTES_PER_USER, MAX_TIMELINE_BYTES } from '../../src/domain/limits.ts'
import { createHeldSyncs } from '../../src/domain/sync/held-syncs.ts'
import { createSentAnswers, type SentAnswer } from '../../src/domain/sync/sent-answers.ts'
import { type House, inRoom, openHouse, type Person } from '../rooms/people.ts'
import type { Json } from '../support/api.ts'
import { waitUntil } from '../support/wait.ts'

let house: House
let owner: Person
let room: string

const MB = 1024 * 1024
const PIECES = 16
const STATE_EVENTS = 100
const TEXT = 'x'.repeat(60_000)

beforeAll(async () => {
  house = await openHouse()
  owner = await house.person('owner')
  room = await owner.createRoom()
  await putMuchData(owner)
  for (let index = 0; index < STATE_EVENTS; index++) await owner.setState(room, 'org.test.large', { TEXT }, `k${index}`)
})
afterAll(() => house.close())

/** As it was possible before there was a cap: 16 MB in pieces of 1 MB. */
async function putMuchData({ userId, call }: Person): Promise<void> {
  await call('PUT', `/user/${encodeURIComponent(userId)}/account_data/org.small`, {})
  await house.server.database.db.query(
    `INSERT INTO account_data (user_nid, room_id, type, content, position)
     SELECT (SELECT user_nid FROM matrix_user WHERE user_id = $1), '', 'org.test.' || n, '{"text":"' || repeat('y', $2::int) || '"}', 1
     FROM generate_series(1, $3::int) AS n`,
    [userId, MB, PIECES],
  )
  // Into memory comes only what is written, and this was not.
  await house.restart()
}

async function level(name: string): Promise<number> {
  return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(await house.server.metrics())?.[1])
}

/** A sync of which nothing is read until the test does. */
function unread(person: Person): Promise<IncomingMessage> {
  const headers = { authorization: `Bearer ${person.token}` }
  return new Promise((resolve, reject) => {
    httpRequest(`${house.api.baseUrl}/_matrix/client/v3/sync`, { headers, agent: false }, resolve)
      .on('error', reject)
      .end()
  })
}

const largeState = (events: readonly Json[]) => events.filter(({ type }) => type === 'org.test.large')

test('A4: account data from before the cap, and a large room state, come whole in a first sync', async () => {
  const body = await owner.sync()
  const mine = body.account_data.events.filter(({ type }: Json) => type.startsWith('org.test.'))
  expect(mine.map(({ type }: Json) => type).sort()).toEqual(
    Array.from({ length: PIECES }, (_, index) => `org.test.${index + 1}`).sort(),
  )
  expect(mine.every(({ content }: Json) => content.text.length === MB)).toBe(true)
  const { state, timeline } = body.rooms.join[room]
  const shown = largeState([...state.events, ...timeline.events]).map(({ state_key }) => state_key)
  expect(new Set(shown)).toEqual(new Set(Array.from({ length: STATE_EVENTS }, (_, index) => `k${index}`)))
  expect(shown.length).toBe(STATE_EVENTS)
})

test('A4: filters hold for what is made while it is sent', async () => {
  const only = {
    account_data: { types: ['org.test.7'] },
    room: { state: { types: ['m.room.create', 'org.test.large'] } },
  }
  const body = await owner.sync(`&filter=${encodeURIComponent(JSON.stringify(only))}`)
  expect(body.account_data.events.map(({ type }: Json) => type)).toEqual(['org.test.7'])
  const types = new Set(body.rooms.join[room].state.events.map(({ type }: Json) => type))
  expect(types).toEqual(new Set(['m.room.create', 'org.test.large']))
  const none = { account_data: { types: [] }, room: { state: { types: [] }, timeline: { limit: 1 } } }
  const empty = await owner.sync(`&filter=${encodeURIComponent(JSON.stringify(none))}`)
  expect([empty.account_data, empty.rooms.join[room].state.events]).toEqual([undefined, []])
})

test('A4: pieces from before the cap can be read one by one, and be replaced by smaller ones', async () => {
  const path = `/user/${encodeURIComponent(owner.userId)}/account_data/org.test.1`
  expect((await owner.call('GET', path)).text.length).toBe(MB)
  expect(await owner.ask('PUT', path, { text: 'z'.repeat(70_000) })).toMatchObject({
    status: 413,
    body: { errcode: 'M_TOO_LARGE' },
  })
  expect((await owner.ask('PUT', path, { text: 'y'.repeat(60_000) })).status).toBe(200)
  await house.server.database.db.query(
    `UPDATE account_data SET content = '{"text":"' || repeat('y', $1::int) || '"}', position = 1 WHERE type = 'org.test.1'`,
    [MB],
  )
})

test('A4: a client that reads nothing of a large answer leaves no more than some pieces of it in memory', async () => {
  const slow = await house.person('slow')
  await putMuchData(slow)
  const answers = await Promise.all(Array.from({ length: 4 }, () => unread(slow)))
  const bytes = await level('hearth_answer_bytes')
  expect(bytes).toBeGreaterThan(0)
  expect(bytes).toBeLessThan(8 * MB)
  const seen = await owner.sync('&filter={"room":{"rooms":[]},"account_data":{"types":[]}}')
  expect(seen.next_batch).toBeTypeOf('string')
  for (const answer of answers) answer.destroy()
  await waitUntil('bytes given back', async () => (await level('hearth_answer_bytes')) === 0)
})

test('A4: who leaves too much of earlier answers unread is told to read it', () => {
  const answers = createSentAnswers({ held: createHeldSyncs() })
  const by = { userId: '@greedy:localhost' as UserId, userNid: 1, deviceId: 'A', tokenNid: 1, isGuest: false }
  const json = new JsonBytes().bytes(Buffer.alloc(MB / 2, '1'))
  const sent: SentAnswer[] = []
  const isRefused = (userNid: number): Json => {
    try {
      answers.mustHaveRoom({ ...by, userNid })
    } catch (error) {
      return error
    }
    return false
  }
  while (!isRefused(1)) sent.push(answers.send(by, json))
  expect(isRefused(1)).toMatchObject({ errcode: 'M_LIMIT_EXCEEDED', extra: { retry_after_ms: expect.any(Number) } })
  expect(answers.bytes).toBe(MAX_ANSWER_BYTES_PER_USER)
  expect(isRefused(2)).toBe(false)
  sent[0]?.closed?.()
  sent[0]?.closed?.()
  expect(isRefused(1)).toBe(false)
  for (const { closed } of sent) closed?.()
  expect(answers.bytes).toBe(0)
})

test('A4: answers that are being made count too, so that a user has few made at once', async () => {
  const answers = createSentAnswers({ held: createHeldSyncs() })
  const by = { userNid: 1, deviceId: 'D' } as Parameters<typeof answers.answer>[0]
  const other = { userNid: 2, deviceId: 'D' } as typeof by
  const made = new JsonBytes().text('{}')
  let finish = () => {}
  const work = new Promise<void>((resolve) => {
    finish = resolve
  })
  const most = MAX_ANSWER_BYTES_PER_USER / ANSWER_BYTES_RESERVED
  const begun = Array.from({ length: most }, () => answers.answer(by, () => work.then(() => made)))
  await expect(answers.answer(by, async () => made)).rejects.toMatchObject({ errcode: 'M_LIMIT_EXCEEDED' })
  await expect(answers.answer(other, async () => made)).resolves.toMatchObject({ body: '{}' })
  const failing = answers.answer(other, () => Promise.reject(new Error('no')))
  await expect(failing).rejects.toThrow('no')
  finish()
  await Promise.all(begun)
  expect(answers.bytes).toBe(0)
  await expect(answers.answer(by, async () => made)).resolves.toMatchObject({ body: '{}' })
})

test('A6: a large answer is broken off when its session ends', async () => {
  const leaver = await house.person('leaver')
  await putMuchData(leaver)
  const answer = await unread(leaver)
  expect(answer.statusCode).toBe(200)
  await leaver.call('POST', '/logout')
  let bytes = 0
  await expect(
    (async () => {
      for await (const chunk of answer) bytes += chunk.length
    })(),
  ).rejects.toThrow()
  expect(bytes).toBeLessThan(PIECES * MB)
})

test('A4: GET state of a room with a large state gives all of it', async () => {
  const events = await owner.call('GET', inRoom(room, '/state'))
  expect(largeState(events)).toHaveLength(STATE_EVENTS)
})

test('A4: a timeline ends where its events come to a megabyte, and the rest is had by turning back the pages', async () => {
  const talk = await owner.createRoom()
  for (let index = 0; index < 30; index++) await owner.say(talk, `${index} ${TEXT}`)
  const filter = { account_data: { types: [] }, room: { rooms: [talk], timeline: { limit: 100 } } }
  const body = await owner.sync(`&filter=${encodeURIComponent(JSON.stringify(filter))}`)
  const { events, limited, prev_batch } = body.rooms.join[talk].timeline
  expect([limited, events.length]).toEqual([true, Math.floor(MAX_TIMELINE_BYTES / 60_500)])
  expect(events.at(-1).content.body).toMatch(/^29 /)
  const before = await owner.call('GET', inRoom(talk, `/messages?dir=b&limit=100&from=${prev_batch}`))
  const said = before.chunk.filter(({ type }: Json) => type === 'm.room.message')
  expect(said.length + events.length).toBe(30)
})
