import { EventType, MsgType } from 'matrix-js-sdk'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openApi, register } from '../support/api.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { waitUntil } from '../support/wait.ts'
import {
  backUp,
  type CryptoDevice,
  crossSign,
  openCryptoDevice,
  type RecoveryKeys,
  waitForText,
} from './crypto-device.ts'

let server: TestServer
const devices: CryptoDevice[] = []

beforeAll(async () => {
  server = await startServer()
  const api = openApi(server.baseUrl)
  for (const name of ['alice', 'bob']) await register(api, name)
  await api.close()
})
afterAll(async () => {
  for (const { client } of devices) client.stopClient()
  await server.close()
})

async function signIn(name: string, recovery: RecoveryKeys): Promise<CryptoDevice> {
  const device = await openCryptoDevice(server.baseUrl, name, recovery)
  devices.push(device)
  return device
}

it('lets a user without any device read later what was written meanwhile', async () => {
  const recovery: RecoveryKeys = new Map()
  const first = await signIn('alice', recovery)
  await crossSign(first)
  await backUp(first)
  expect(await first.crypto.isDehydrationSupported()).toBe(true)
  await first.crypto.startDehydration()
  const bob = await signIn('bob', new Map())
  await crossSign(bob)
  const { room_id: roomId } = await bob.client.createRoom({
    invite: [first.userId],
    initial_state: [{ type: EventType.RoomEncryption, state_key: '', content: { algorithm: 'm.megolm.v1.aes-sha2' } }],
  })
  await first.client.joinRoom(roomId)
  await waitUntil('alice in the room', () => bob.client.getRoom(roomId)?.getMember(first.userId)?.membership === 'join')
  first.client.stopClient()
  await first.client.logout(true)
  await bob.client.sendMessage(roomId, { msgtype: MsgType.Text, body: 'nobody is there' })

  const second = await signIn('alice', recovery)
  await waitUntil('the own keys', () => second.crypto.userHasCrossSigningKeys(second.userId, true))
  await second.crypto.bootstrapCrossSigning({})
  await waitUntil('the secrets', () => second.crypto.isCrossSigningReady())
  await second.crypto.startDehydration({ rehydrate: true })
  await waitForText(second, roomId, 'nobody is there')
})
