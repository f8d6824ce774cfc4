import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Account, type Api, createRoom, type Json, openApi, register } from '../support/api.ts'
import { type ChildServer, startChildServer } from '../support/child-server.ts'
import { waitUntil } from '../support/wait.ts'

const ROUNDS = 5
const EVENTS = 60

let server: ChildServer
let api: Api
let alice: Account

beforeAll(async () => {
  server = await startChildServer({
    env: {
      HEARTH__REGISTRATION__ENABLED: 'true',
      HEARTH__RATE_LIMITS__ENABLED: 'false',
      HEARTH__CALLS__DELAYED_EVENTS__MAX_SCHEDULED: '1000',
    },
  })
  api = openApi(server.baseUrl)
  alice = await register(api, 'alice')
}, 120_000)
afterAll(async () => {
  await api?.close()
  await server?.dispose()
})

async function textsIn(room: string): Promise<string[]> {
  const path = `/rooms/${encodeURIComponent(room)}/messages?dir=b&limit=200`
  const { chunk } = await api.call('GET', path, { token: alice.token })
  return chunk.flatMap(({ content }: Json) => content.body ?? []).reverse()
}

it('a server that is killed while it sends delayed events sends each once', async () => {
  for (let round = 0; round < ROUNDS; round++) {
    const room = await createRoom(api, alice.token)
    const named = Array.from({ length: EVENTS }, (_, index) => `${round}-${index}`)
    const dueAt = Date.now() + 2_000
    for (const [index, text] of named.entries()) {
      const delay_ms = Math.max(1, dueAt - Date.now()) + index * 10
      const path = `/rooms/${encodeURIComponent(room)}/delayed_event/m.room.message/${text}`
      const body = { delay_ms, content: { msgtype: 'm.text', body: text } }
      await api.call('PUT', path, { token: alice.token, body })
    }
    const before = round * 10 + 1
    await waitUntil('some of them', async () => (await textsIn(room)).length >= before, { everyMs: 5 })
    await server.kill('SIGKILL')
    await server.start()
    await server.waitReady()
    const { length } = await waitUntil('all of them', async () => {
      const texts = await textsIn(room)
      return new Set(texts).size >= EVENTS && texts
    })
    expect(length).toBe(EVENTS)
    await waitUntil('their end', async () => {
      const { delayed_events } = await api.call('GET', '/_matrix/client/v1/delayed_events', { token: alice.token })
      return delayed_events.length === 0
    })
    expect(await textsIn(room)).toHaveLength(EVENTS)
  }
}, 180_000)
