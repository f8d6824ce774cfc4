import { KnownMembership, Preset } from 'matrix-js-sdk'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Account, type Api, openApi, register } from '../support/api.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { waitUntil } from '../support/wait.ts'
import {
  backUp,
  type CryptoDevice,
  crossSign,
  openCryptoDevice,
  type RecoveryKeys,
  readableIn,
  waitForText,
} from './crypto-device.ts'
import { type OldDevice, openOldDevice } from './old-device.ts'
import { verifyBySas } from './verification.ts'

const TIMEOUT_MS = 120_000

let server: TestServer
let api: Api
const people = new Map<string, Account>()
const devices: CryptoDevice[] = []
let old: OldDevice | undefined

beforeAll(async () => {
  server = await startServer()
  api = openApi(server.baseUrl)
  for (const name of ['alice', 'bob', 'carol']) people.set(name, await register(api, name))
})
afterAll(async () => {
  for (const { client } of devices) client.stopClient()
  old?.client.stopClient()
  await api.close()
  await server.close()
})

async function open(name: string, recovery: RecoveryKeys): Promise<CryptoDevice> {
  const device = await openCryptoDevice(server.baseUrl, name, recovery)
  devices.push(device)
  return device
}

async function encryptedRoom(maker: CryptoDevice, guest: CryptoDevice): Promise<string> {
  const { room_id: roomId } = await maker.client.createRoom({
    preset: Preset.PrivateChat,
    invite: [guest.userId],
    initial_state: [{ type: 'm.room.encryption', state_key: '', content: { algorithm: 'm.megolm.v1.aes-sha2' } }],
  })
  await waitUntil('the invitation', () => guest.client.getRoom(roomId)?.getMyMembership() === KnownMembership.Invite)
  await guest.client.joinRoom(roomId)
  await seesJoined(maker, roomId, guest.userId)
  await seesJoined(guest, roomId, guest.userId)
  return roomId
}

const seesJoined = ({ client }: CryptoDevice, roomId: string, userId: string) =>
  waitUntil(`${userId} to have joined`, () => client.getRoom(roomId)?.getMember(userId)?.membership === 'join', {
    timeoutMs: 40_000,
  })

/** Whether the one user's identity is verified in the eyes of the other's device. */
const trusts = async ({ crypto }: CryptoDevice, { userId }: CryptoDevice) =>
  (await crypto.getUserVerificationStatus(userId)).isCrossSigningVerified()

async function knows({ crypto }: CryptoDevice, { userId, deviceId }: CryptoDevice): Promise<boolean | undefined> {
  return (await crypto.getUserDeviceInfo([userId])).get(userId)?.has(deviceId)
}

/** How many keys there are in somebody's backup. */
async function backedUp(name: string): Promise<number> {
  return (await api.call('GET', '/room_keys/version', { token: people.get(name)!.token })).count
}

/** What a server that reads its own database could see of the messages. */
async function storedTexts(): Promise<string> {
  const rows = await server.database.db.query<{ json: string }>('SELECT json FROM event')
  return rows.map(({ json }) => json).join('\n')
}

test(
  'two users and three devices talk encrypted, verify, cross-sign, back up and restore, over a restart; an old client joins in',
  async () => {
    const recovery: RecoveryKeys = new Map()
    const alice = await open('alice', recovery)
    const bob = await open('bob', new Map())
    await crossSign(alice)
    await crossSign(bob)
    await backUp(alice)

    const roomId = await encryptedRoom(alice, bob)
    await alice.client.sendTextMessage(roomId, 'the first secret')
    await waitForText(bob, roomId, 'the first secret')
    await bob.client.sendTextMessage(roomId, 'the second secret')
    await waitForText(alice, roomId, 'the second secret')

    expect(await trusts(alice, bob)).toBe(false)
    await verifyBySas(bob, await alice.crypto.requestVerificationDM(bob.userId, roomId))
    await waitUntil('trust on both sides', async () => (await trusts(alice, bob)) && (await trusts(bob, alice)))

    await waitUntil('both keys in the backup', async () => (await backedUp('alice')) >= 2, { timeoutMs: 40_000 })
    await server.restart()

    const second = await open('alice', recovery)
    // A request of a device that it has never heard of is passed over by the library.
    await waitUntil('the first device to hear of the second', () => knows(alice, second), { timeoutMs: 40_000 })
    await verifyBySas(alice, await second.crypto.requestOwnUserVerification())
    await waitUntil('the new device to be cross-signed', async () => {
      const status = await bob.crypto.getDeviceVerificationStatus(alice.userId, second.deviceId)
      return status?.crossSigningVerified
    })
    await second.crypto.loadSessionBackupPrivateKeyFromSecretStorage()
    const restored = await second.crypto.restoreKeyBackup()
    expect(restored.imported).toBeGreaterThanOrEqual(2)
    await waitForText(second, roomId, 'the first secret')
    await waitForText(second, roomId, 'the second secret')

    await bob.client.sendTextMessage(roomId, 'the third secret')
    for (const device of [alice, second]) await waitForText(device, roomId, 'the third secret')
    await second.client.sendTextMessage(roomId, 'the fourth secret')
    for (const device of [alice, bob]) await waitForText(device, roomId, 'the fourth secret')

    await meetOldClient(alice, bob, roomId)
    expect(await storedTexts()).not.toContain('secret')
    expect(readableIn(alice, roomId)).toEqual(readableIn(bob, roomId))
  },
  TIMEOUT_MS,
)

async function meetOldClient(alice: CryptoDevice, bob: CryptoDevice, roomId: string): Promise<void> {
  old = await openOldDevice(server.baseUrl, 'carol')
  // By hand: the library would first upload the history of the room, as media.
  const invitation = { token: people.get('alice')!.token, body: { user_id: old.userId } }
  await api.call('POST', `/rooms/${encodeURIComponent(roomId)}/invite`, invitation)
  await old.client.joinRoom(roomId)
  for (const device of [alice, bob]) await seesJoined(device, roomId, old.userId)
  const { client } = old
  await waitUntil('the old client to know of encryption', () => client.isRoomEncrypted(roomId))
  await bob.client.sendTextMessage(roomId, 'a secret for the old')
  await old.waitForText(roomId, 'a secret for the old')
  await old.client.sendTextMessage(roomId, 'a secret of the old')
  for (const device of [alice, bob]) await waitForText(device, roomId, 'a secret of the old')
  expect([...old.paths].filter((path) => !/^\/_matrix\/client\/(r0|unstable|versions)/.test(path))).toEqual([])
  await backUpOldClient(old)
}

/** Its backup goes by the unstable paths. */
async function backUpOldClient({ client, paths }: OldDevice): Promise<void> {
  await client.createKeyBackupVersion(await client.prepareKeyBackupVersion())
  await waitUntil('the keys of the old client', async () => (await backedUp('carol')) >= 2, { timeoutMs: 40_000 })
  expect([...paths]).toContain('/_matrix/client/unstable/room_keys/version')
  expect([...paths]).toContain('/_matrix/client/unstable/room_keys/keys')
}
