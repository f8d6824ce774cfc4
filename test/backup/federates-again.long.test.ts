import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { loadSigningKey } from '../../src/cli/serve/signing-key-file.ts'
import {
  type Account,
  type Api,
  createRoom,
  type Json,
  join as joinRoom,
  openApi,
  sendText,
  syncPath,
} from '../support/api.ts'
import { createTestDatabase } from '../support/database.ts'
import { type Neighbour, type Neighbourhood, openNeighbourhood } from '../support/neighbours.ts'
import { runProgramHere } from '../support/run-hearth.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { proxyTo } from '../support/tls-server.ts'
import { waitUntil } from '../support/wait.ts'

let street: Neighbourhood
let home: Neighbour
let peer: Neighbour
let alice: Account
let bob: Account
let directory: string
let restored: TestServer
let api: Api
let roomId: string
/** What was sent at home after the backup, and is lost there. */
let lost: string
let lostState: string
let reply: string

const messages = async (on: Api, token: string): Promise<Json[]> => {
  const path = `/rooms/${encodeURIComponent(roomId)}/messages?dir=b&limit=100`
  return (await on.call('GET', path, { token })).chunk
}
const ids = (events: Json[]): string[] => events.map(({ event_id }) => event_id)
const sync = (on: Api, token: string, since?: string): Promise<Json> =>
  on.call('GET', syncPath(since === undefined ? {} : { since }), { token })

const deviceKeys = ({ userId, deviceId }: Account) => ({
  user_id: userId,
  device_id: deviceId,
  algorithms: ['m.olm.v1.curve25519-aes-sha2'],
  keys: { [`curve25519:${deviceId}`]: 'identity' },
  signatures: {},
})

beforeAll(async () => {
  street = openNeighbourhood()
  home = await street.open()
  peer = await street.open()
  alice = await home.person('alice')
  bob = await peer.person('bob')
  directory = mkdtempSync(join(tmpdir(), 'hearth-again-'))
  await home.api.call('POST', '/keys/upload', {
    token: alice.token,
    body: { device_keys: deviceKeys(alice), one_time_keys: { 'curve25519:A': 'A', 'curve25519:B': 'B' } },
  })
  // A room that only invited people may join: others answer all the same.
  roomId = await createRoom(home.api, alice.token, { preset: 'private_chat', invite: [bob.userId] })
  await joinRoom(peer.api, bob.token, roomId)
  const before = await sendText(home.api, alice.token, roomId, 'before', 'before the backup')
  await waitUntil('the message at the peer', async () => ids(await messages(peer.api, bob.token)).includes(before))
  const env = {
    HEARTH__SERVER_NAME: home.name,
    HEARTH__DATABASE__URL: home.server.database.url,
    HEARTH__DATA_DIR: home.server.config.data_dir,
    HEARTH__LISTEN__PORT: '1',
  }
  mkdirSync(home.server.config.data_dir, { recursive: true })
  await loadSigningKey(home.server.config.data_dir)
  const run = (words: string[], more = {}) => runProgramHere(words, { directory, env: { ...env, ...more } })
  expect(await run(['backup', join(directory, 'backups')])).toMatchObject({ code: 0 })
  const one_time_keys = { [alice.userId]: { [alice.deviceId]: 'curve25519' } }
  await peer.api.call('POST', '/keys/claim', { token: bob.token, body: { one_time_keys } })
  lost = await sendText(home.api, alice.token, roomId, 'lost', 'after the backup')
  const topic = `/rooms/${encodeURIComponent(roomId)}/state/m.room.topic/`
  lostState = (await home.api.call('PUT', topic, { token: alice.token, body: { topic: 'set after the backup' } }))
    .event_id
  await waitUntil('all of it at the peer', async () => {
    const there = ids(await messages(peer.api, bob.token))
    return [lost, lostState].every((id) => there.includes(id))
  })
  reply = await sendText(peer.api, bob.token, roomId, 'reply', 'an answer to what is lost')
  const database = await createTestDatabase(true)
  const dataDir = join(directory, 'data')
  const target = { HEARTH__DATABASE__URL: database.url, HEARTH__DATA_DIR: dataDir }
  const place = join(directory, 'backups')
  const done = await run(['restore', place, '--even-if-running'], target)
  expect(done).toMatchObject({ code: 0 })
  restored = await startServer(
    { server_name: home.name, data_dir: dataDir, outbound: { ca_file: street.authority.file } } as never,
    { signingKey: home.signingKey, database },
  )
  home.front.handler = proxyTo(restored.baseUrl)
  api = openApi(restored.baseUrl)
})

afterAll(async () => {
  await api?.close()
  await restored?.close()
  await street.close()
  rmSync(directory, { recursive: true, force: true })
})

test('the first event of ours builds on what others have of the room, and both sides agree from there', async () => {
  const fresh = await sendText(api, alice.token, roomId, 'fresh', 'after the restore')
  const here = ids(await messages(api, alice.token))
  expect(here).toEqual(expect.arrayContaining([lost, lostState, fresh]))
  await waitUntil('the new message at the peer', async () => ids(await messages(peer.api, bob.token)).includes(fresh))
  expect(new Set(here)).toEqual(new Set(ids(await messages(peer.api, bob.token))))
  const [row] = await restored.database.db.query<{ json: string }>('SELECT json FROM event WHERE event_id = $1', [
    fresh,
  ])
  const { prev_events } = JSON.parse(row!.json) as { prev_events: string[] }
  expect(prev_events).toEqual([reply])
  const topic = `/rooms/${encodeURIComponent(roomId)}/state/m.room.topic/`
  expect(await api.call('GET', topic, { token: alice.token })).toEqual({ topic: 'set after the backup' })
  // The peer's events arrive, too.
  const last = await sendText(peer.api, bob.token, roomId, 'last', 'good to have you back')
  await waitUntil('the answer at home', async () => ids(await messages(api, alice.token)).includes(last))
})

test('others hear that device lists changed, and get no one-time key twice', async () => {
  await waitUntil('nothing is left to be done', async () => {
    const left = await restored.database.db.query(
      'SELECT room_nid AS nid FROM restored_room UNION ALL SELECT user_nid FROM restored_user',
    )
    return left.length === 0
  })
  await waitUntil('the news at the peer', async () => {
    const { device_lists } = await sync(peer.api, bob.token, bobSince)
    return device_lists.changed.includes(alice.userId)
  })
  const one_time_keys = { [alice.userId]: { [alice.deviceId]: 'curve25519' } }
  const answer = await peer.api.call('POST', '/keys/claim', { token: bob.token, body: { one_time_keys } })
  expect(answer.one_time_keys[alice.userId] ?? {}).toEqual({})
})

let bobSince: string
beforeAll(async () => {
  bobSince = (await sync(peer.api, bob.token)).next_batch
})
