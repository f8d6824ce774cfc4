import {
  DecryptionSettings,
  DeviceId,
  DeviceLists,
  EncryptionSettings,
  initAsync,
  OlmMachine,
  type OutgoingRequest,
  RequestType,
  RoomId,
  type ToDeviceRequest,
  TrustRequirement,
  UserId,
} from '@matrix-org/matrix-sdk-crypto-wasm'
import { Preset } from 'matrix-js-sdk'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Heard, startService, TAKES_ALL, type TestService } from '../appservices/service.ts'
import { as, makeGhost, openWorld, registration, type World } from '../appservices/world.ts'
import { type Json, register } from '../support/api.ts'
import { waitUntil } from '../support/wait.ts'
import { type CryptoDevice, openCryptoDevice, waitForText } from './crypto-device.ts'

/** A bridge that encrypts: its ghost's device has no login and no sync, and knows what transactions tell it. */
const reg = registration('crypt', { receive_ephemeral: true, 'org.matrix.msc3202': true })
const DEVICE = 'BRIDGE'
let service: TestService
let world: World
let ghost: string
let machine: OlmMachine
const devices: CryptoDevice[] = []
const read: string[] = []
/** What a client's requests are called in the interface. */
const PATHS: ReadonlyMap<RequestType, string> = new Map([
  [RequestType.KeysUpload, '/keys/upload'],
  [RequestType.KeysQuery, '/keys/query'],
  [RequestType.KeysClaim, '/keys/claim'],
])

const asGhost = (path: string) => as(ghost, path, `&device_id=${DEVICE}`)
const call = (method: string, path: string, body?: unknown) =>
  world.api.call(method, asGhost(path), { token: reg.as_token, ...(body !== undefined && { body }) })

async function perform(request: OutgoingRequest | ToDeviceRequest): Promise<void> {
  const body = JSON.parse(request.body)
  const isToDevice = request.type === RequestType.ToDevice
  const { event_type, txn_id } = request as ToDeviceRequest
  const path = isToDevice ? `/sendToDevice/${event_type}/${txn_id}` : PATHS.get(request.type)!
  const answer = await call(isToDevice ? 'PUT' : 'POST', path, body)
  if (request.id !== undefined) await machine.markRequestAsSent(request.id, request.type, JSON.stringify(answer))
}
async function performAll(): Promise<void> {
  for (const request of await machine.outgoingRequests()) await perform(request)
}

const idsOf = (names: readonly string[] = []) => names.map((name) => new UserId(name))

/** As frameworks do it: first what concerns keys, then the events. */
async function take({ body }: Heard): Promise<void> {
  const { to_device = [], device_lists, device_one_time_keys_count, device_unused_fallback_key_types, events } = body
  const lists = new DeviceLists(idsOf(device_lists?.changed), idsOf(device_lists?.left))
  const counts = device_one_time_keys_count?.[ghost]?.[DEVICE]
  const fallback = device_unused_fallback_key_types?.[ghost]?.[DEVICE]
  await machine.receiveSyncChanges(
    JSON.stringify(to_device),
    lists,
    new Map(Object.entries(counts ?? {})),
    fallback && new Set(fallback),
  )
  await performAll()
  for (const event of events) {
    if (event.type !== 'm.room.encrypted' || event.sender === ghost) continue
    const settings = new DecryptionSettings(TrustRequirement.Untrusted)
    const decrypted = await machine.decryptRoomEvent(JSON.stringify(event), new RoomId(event.room_id), settings)
    read.push(JSON.parse(decrypted.event).content.body)
  }
}

/** Transactions one after another, and each once. */
let last: Promise<void> = Promise.resolve()
const taken = new Set<string>()
function takes(heard: Heard, { response }: { response: { writeHead(status: number): { end(body: string): void } } }) {
  last = last.then(async () => {
    if (!taken.has(heard.path)) await take(heard)
    taken.add(heard.path)
    response.writeHead(200).end('{}')
  })
  return undefined
}

async function say(roomId: string, text: string): Promise<void> {
  const { joined } = await call('GET', `/rooms/${encodeURIComponent(roomId)}/joined_members`)
  const members = () => idsOf(Object.keys(joined))
  await machine.updateTrackedUsers(members())
  await performAll()
  const claim = await machine.getMissingSessions(members())
  if (claim) await perform(claim)
  for (const request of await machine.shareRoomKey(new RoomId(roomId), members(), new EncryptionSettings())) {
    await perform(request)
  }
  const content = JSON.stringify({ msgtype: 'm.text', body: text })
  const encrypted = await machine.encryptRoomEvent(new RoomId(roomId), 'm.room.message', content)
  const path = `/rooms/${encodeURIComponent(roomId)}/send/m.room.encrypted/${encodeURIComponent(text)}`
  await call('PUT', path, JSON.parse(encrypted))
}

beforeAll(async () => {
  await initAsync()
  service = await startService()
  world = await openWorld([{ ...reg, url: service.url }])
  await register(world.api, 'alice')
  ghost = await makeGhost(world.api, reg, '_crypt_ghost')
  await world.api.call('PUT', as(ghost, `/devices/${DEVICE}`), { token: reg.as_token, body: {} })
  machine = await OlmMachine.initialize(new UserId(ghost), new DeviceId(DEVICE))
  await performAll()
  service.behave(takes as never)
})
afterAll(async () => {
  for (const { client } of devices) client.stopClient()
  service.behave(TAKES_ALL)
  await last
  await world.close()
  await service.close()
})

async function open(): Promise<CryptoDevice> {
  const device = await openCryptoDevice(world.server.baseUrl, 'alice', new Map())
  devices.push(device)
  return device
}

test('an encrypted bridge that lives on transactions reads and is read, on new devices and after a time away too', async () => {
  const alice = await open()
  const { room_id: roomId } = await alice.client.createRoom({
    preset: Preset.PrivateChat,
    invite: [ghost],
    initial_state: [{ type: 'm.room.encryption', state_key: '', content: { algorithm: 'm.megolm.v1.aes-sha2' } }],
  })
  await call('POST', `/join/${encodeURIComponent(roomId)}`, {})
  await waitUntil('the ghost to have joined', () => {
    return alice.client.getRoom(roomId)?.getMember(ghost)?.membership === 'join'
  })
  const hears = (text: string) => waitUntil(`the bridge to read "${text}"`, () => read.includes(text))
  await alice.client.sendTextMessage(roomId, 'hello')
  await hears('hello')
  await say(roomId, 'hello to you')
  await waitForText(alice, roomId, 'hello to you')
  // The keys of what is said now come while nobody is there to take them.
  service.behave(() => 503)
  await alice.crypto.forceDiscardSession(roomId)
  await alice.client.sendTextMessage(roomId, 'while you were away')
  await world.server.restart()
  service.behave(takes as never)
  await call('GET', '/account/whoami')
  await hears('while you were away')
  // A device that is new is told of, and what is said after that can be read there.
  const second = await open()
  await waitUntil('the new device to be told of', () => isKnown(second))
  await say(roomId, 'to both of you')
  await waitForText(second, roomId, 'to both of you')
  await waitForText(alice, roomId, 'to both of you')
  expect(read).toEqual(['hello', 'while you were away'])
  const stored = await world.server.database.db.query<{ json: string }>('SELECT json FROM event')
  expect(stored.map(({ json }: Json) => json).join()).not.toContain('hello')
}, 120_000)

async function isKnown({ userId, deviceId }: CryptoDevice): Promise<boolean> {
  await last
  return (await machine.getDevice(new UserId(userId), new DeviceId(deviceId))) !== undefined
}
