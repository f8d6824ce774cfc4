import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Account, type Api, createRoom, openApi, register } from '../../support/api.ts'
import { type ChildServer, startChildServer } from '../../support/child-server.ts'
import { freePort } from '../../support/free-port.ts'
import { type Replicated, startReplicated } from '../../support/replica.ts'
import { waitUntil } from '../../support/wait.ts'

const MESSAGES = 220

let servers: Replicated
let server: ChildServer
let api: Api
let metricsUrl: string
let alice: Account
let room: string
const sent: string[] = []

beforeAll(async () => {
  servers = await startReplicated()
  const metricsPort = await freePort()
  metricsUrl = `http://127.0.0.1:${metricsPort}/metrics`
  server = await startChildServer({
    env: {
      HEARTH__DATABASE__URL: servers.url,
      HEARTH__DATABASE__REPLICAS: servers.replicaUrl,
      HEARTH__METRICS__PORT: `${metricsPort}`,
      HEARTH__REGISTRATION__ENABLED: 'true',
      HEARTH__RATE_LIMITS__ENABLED: 'false',
      HEARTH__PASSWORDS__SCRYPT__LOG2_COST: '4',
    },
  })
  api = openApi(server.baseUrl)
  alice = await register(api, 'alice')
  room = await createRoom(api, alice.token)
  for (let n = 0; n < MESSAGES; n++) {
    const path = `/rooms/${room}/send/m.room.message/${n}`
    const { event_id } = await api.call('PUT', path, { token: alice.token, body: { msgtype: 'm.text', body: `${n}` } })
    sent.push(event_id)
  }
})
afterAll(async () => {
  await api?.close()
  await server?.dispose()
  await servers?.close()
})

interface Found {
  readonly event_id: string
  readonly type: string
  readonly content: { readonly body?: string }
}

async function pageBack(): Promise<Found[]> {
  const found: Found[] = []
  for (let from = ''; ; ) {
    const path = `/rooms/${room}/messages?dir=b&limit=40${from}`
    const { chunk, end } = await api.call('GET', path, { token: alice.token })
    found.push(...(chunk as Found[]).filter(({ type }) => type === 'm.room.message'))
    if (end === undefined) return found.reverse()
    from = `&from=${encodeURIComponent(end)}`
  }
}

const texts = async () => (await pageBack()).map(({ event_id, content }) => [event_id, content.body])

async function measured(name: string): Promise<number> {
  const text = await (await fetch(metricsUrl)).text()
  return Number(new RegExp(`^hearth_replica_${name}\\{[^}]*\\} (\\S+)$`, 'm').exec(text)?.[1])
}

const isUsed = (value: number) =>
  waitUntil(`hearth_replica_used ${value}`, async () => (await measured('used')) === value)

test('far history is read at a replica, as it is now', async () => {
  await isUsed(1)
  const before = await measured('reads_total')
  expect((await pageBack()).map(({ event_id }) => event_id)).toEqual(sent)
  expect(await measured('reads_total')).toBeGreaterThan(before)
  for (const n of [0, 1, 2]) {
    await api.call('PUT', `/rooms/${room}/redact/${sent[n]}/r${n}`, { token: alice.token, body: {} })
    expect((await pageBack()).slice(0, n + 2).map(({ content }) => content.body)).toEqual([
      ...Array.from({ length: n + 1 }, () => undefined),
      `${n + 1}`,
    ])
  }
})

test('searches are answered there too', async () => {
  const search = { search_categories: { room_events: { search_term: '7', keys: ['content.body'] } } }
  const before = await measured('reads_total')
  await waitUntil('the index', async () => {
    const { search_categories } = await api.call('POST', '/search', { token: alice.token, body: search })
    return search_categories.room_events.results.length === 1
  })
  await api.call('POST', '/user_directory/search', { token: alice.token, body: { search_term: 'alice' } })
  expect(await measured('reads_total')).toBeGreaterThan(before)
})

test('without the replica nobody notices anything', async () => {
  const whole = await texts()
  await servers.stopReplica()
  expect(await texts()).toEqual(whole)
  await isUsed(0)
  expect(await texts()).toEqual(whole)
  expect(server.output().match(/a replica is left out/g)).toHaveLength(1)
  expect(server.output()).not.toContain('hearth@')
  await servers.startReplica()
  await isUsed(1)
  const before = await measured('reads_total')
  expect(await texts()).toEqual(whole)
  expect(await measured('reads_total')).toBeGreaterThan(before)
})
