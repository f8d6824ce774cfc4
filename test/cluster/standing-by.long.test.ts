import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Account, type Api, createRoom, type Json, join, register, sendText } from '../support/api.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Nodes, startNodes } from '../support/nodes.ts'

/** Two processes: what one has acknowledged is in what the other answers next, while others write to the same room. */

const WRITERS = 6
const FOR_MS = 12_000

let database: TestDatabase
let nodes: Nodes
let serving: Api
let standby: Api
let own = 0
let asked = 0

beforeAll(async () => {
  database = await createTestDatabase()
  nodes = await startNodes({ count: 2, url: () => database.url })
  ;[serving, standby] = nodes.apis as [Api, Api]
})
afterAll(async () => {
  await nodes.close()
  await database.drop()
})

const prefixOf = (answer: Response) => answer.headers.get('x-request-id')?.split('-')[0]

it('every acknowledged write is read at the node that stands by', { timeout: 120_000 }, async () => {
  const servingId = prefixOf(await fetch(`${serving.baseUrl}/_matrix/client/versions`))
  const people: Account[] = []
  for (let n = 0; n < WRITERS; n++) people.push(await register(serving, `writer${n}`))
  const [boss] = people as [Account]
  const room = await createRoom(serving, boss.token, {
    preset: 'public_chat',
    power_level_content_override: { users_default: 50, users: { [boss.userId]: 100 } },
  })
  for (const person of people.slice(1)) await join(serving, person.token, room)
  const path = `/rooms/${encodeURIComponent(room)}`
  const until = performance.now() + FOR_MS

  async function read(by: Account, what: string): Promise<Json> {
    const answer = await fetch(`${standby.baseUrl}/_matrix/client/v3${path}${what}`, {
      headers: { authorization: `Bearer ${by.token}` },
    })
    asked++
    if (prefixOf(answer) !== servingId) own++
    return { status: answer.status, body: await answer.json() }
  }

  async function write(by: Account, number: number): Promise<void> {
    const redacted = new Set<string>()
    let last: string | undefined
    for (let n = 0; performance.now() < until; n++) {
      const text = `w${number}n${n}`
      const sent = await sendText(serving, by.token, room, text, text)
      const { body: page } = await read(by, '/messages?dir=b&limit=60')
      expect(page.chunk.map(({ content }: Json) => content.body)).toContain(text)
      for (const { event_id, content } of page.chunk) if (redacted.has(event_id)) expect(content).toEqual({})

      await serving.call('PUT', `${path}/state/org.test.${number}/`, { token: by.token, body: { n } })
      expect((await read(by, `/state/org.test.${number}`)).body).toEqual({ n })

      if (last !== undefined) {
        await serving.call('PUT', `${path}/redact/${last}/r${text}`, { token: by.token, body: {} })
        redacted.add(last)
        expect((await read(by, `/event/${last}`)).body.content).toEqual({})
      }
      last = sent

      if (number === 0) continue
      await serving.call('POST', `${path}/leave`, { token: by.token, body: {} })
      expect((await read(by, '/joined_members')).status).toBe(403)
      await join(serving, by.token, room)
      const { body } = await read(by, '/joined_members')
      expect(Object.keys(body.joined)).toContain(by.userId)
    }
  }

  await Promise.all(people.map(write))
  expect(asked).toBeGreaterThan(100)
  // Most of it was no answer of the other node; errors are.
  expect(own).toBeGreaterThan(asked / 4)
})
