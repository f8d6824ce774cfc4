import './promise-with-resolvers.ts'
import { createClient, EventType, type MatrixClient, MemoryStore } from 'matrix-js-sdk'
import { logger } from 'matrix-js-sdk/lib/logger.js'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { login, openApi, register } from '../support/api.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { waitUntil } from '../support/wait.ts'

/** Who is in a group call, as matrix-js-sdk says it to Element Call. */

const silent = { trace() {}, debug() {}, info() {}, warn() {}, error() {}, log() {}, getChild: () => silent }
Object.assign(logger, silent)

const FOCUS = { type: 'livekit', livekit_service_url: 'https://here.example.org/_hearth/livekit' }

let server: TestServer
let roomId: string
const clients: MatrixClient[] = []
/** The devices whose network is gone. */
const offline = new Set<MatrixClient>()

beforeAll(async () => {
  server = await startServer()
  const api = openApi(server.baseUrl)
  for (const name of ['alice', 'bob']) await register(api, name)
  await api.close()
})
afterAll(async () => {
  for (const client of clients) client.stopClient()
  await server.close()
})

async function enter(name: string): Promise<MatrixClient> {
  const api = openApi(server.baseUrl)
  const { token: accessToken, userId, deviceId } = await login(api, name)
  await api.close()
  const fetchFn: typeof fetch = (input, init) =>
    offline.has(client) ? Promise.reject(new TypeError('the network is gone')) : fetch(input, init)
  const options = { baseUrl: server.baseUrl, fetchFn, logger: silent, accessToken, userId, deviceId }
  const client = createClient({ ...options, store: new MemoryStore() })
  clients.push(client)
  await client.startClient({ pollTimeout: 2_000 })
  await waitUntil(`${userId}'s first sync`, () => client.isInitialSyncComplete())
  return client
}

it('loses a participant who crashes, and keeps one who does not', async () => {
  const alice = await enter('alice')
  const { room_id } = await alice.createRoom({
    preset: 'public_chat' as never,
    power_level_content_override: { events: { [EventType.GroupCallMemberPrefix]: 0 } },
  })
  roomId = room_id
  const bob = await enter('bob')
  await bob.joinRoom(roomId)
  const sessionOf = async (client: MatrixClient) =>
    client.matrixRTC.getRoomSession(await waitUntil('the room', () => client.getRoom(roomId) ?? undefined))
  const config = { delayedLeaveEventDelayMs: 3_000, delayedLeaveEventRestartMs: 500 }
  const [ofAlice, ofBob] = [await sessionOf(alice), await sessionOf(bob)]
  ofAlice.joinRoomSession([FOCUS as never], undefined, config)
  ofBob.joinRoomSession([FOCUS as never], undefined, config)
  const inCall = () => ofBob.memberships.map(({ sender }) => sender).sort()
  await waitUntil('both in the call', () => inCall().length === 2, { timeoutMs: 30_000 })
  expect(inCall()).toEqual([alice.getSafeUserId(), bob.getSafeUserId()])

  // Longer than the delay: both clients restart their leaves.
  const since = Date.now()
  await waitUntil('the delay', () => Date.now() - since > 4_000)
  expect(inCall()).toHaveLength(2)

  offline.add(alice)
  await waitUntil('alice out of the call', () => inCall().length === 1, { timeoutMs: 20_000 })
  expect(inCall()).toEqual([bob.getSafeUserId()])
  expect(await ofBob.leaveRoomSession(5_000)).toBe(true)
  await waitUntil('nobody in the call', () => inCall().length === 0)
}, 90_000)
