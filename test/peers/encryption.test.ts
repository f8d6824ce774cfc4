import { KnownMembership, Preset } from 'matrix-js-sdk'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type CryptoDevice, openCryptoDevice, waitForText } from '../e2e/crypto-device.ts'
import { type Neighbour, type Neighbourhood, openNeighbourhood } from '../support/neighbours.ts'
import { waitUntil } from '../support/wait.ts'

let street: Neighbourhood
let alpha: Neighbour
let beta: Neighbour
const devices: CryptoDevice[] = []

beforeAll(async () => {
  street = openNeighbourhood()
  ;[alpha, beta] = await Promise.all([street.open(), street.open()])
  await alpha.person('alice')
  await beta.person('bob')
})

afterAll(async () => {
  for (const { client } of devices) client.stopClient()
  await street.close()
})

async function open(at: Neighbour, name: string): Promise<CryptoDevice> {
  const device = await openCryptoDevice(at.server.baseUrl, name, new Map())
  devices.push(device)
  return device
}

test('users of two servers talk in secret, also after one of them has a new device', async () => {
  const [alice, bob] = await Promise.all([open(alpha, 'alice'), open(beta, 'bob')])
  const { room_id: roomId } = await alice.client.createRoom({
    preset: Preset.PrivateChat,
    invite: [bob.userId],
    initial_state: [{ type: 'm.room.encryption', state_key: '', content: { algorithm: 'm.megolm.v1.aes-sha2' } }],
  })
  await waitUntil('invitation', () => bob.client.getRoom(roomId)?.getMyMembership() === KnownMembership.Invite)
  await bob.client.joinRoom(roomId)
  for (const { client } of [alice, bob]) {
    await waitUntil('joined', () => client.getRoom(roomId)?.getMember(bob.userId)?.membership === 'join')
  }
  await alice.client.sendTextMessage(roomId, 'a secret for beta')
  await waitForText(bob, roomId, 'a secret for beta')
  await bob.client.sendTextMessage(roomId, 'a secret for alpha')
  await waitForText(alice, roomId, 'a secret for alpha')
  const second = await open(beta, 'bob')
  await waitUntil('the new device', async () =>
    (await alice.crypto.getUserDeviceInfo([bob.userId])).get(bob.userId)?.has(second.deviceId),
  )
  await alice.client.sendTextMessage(roomId, 'a secret for two devices')
  await Promise.all([bob, second].map((device) => waitForText(device, roomId, 'a secret for two devices')))
  const rows = await beta.server.database.db.query<{ json: string }>('SELECT json FROM event')
  expect(rows.map(({ json }) => json).join()).not.toContain('a secret')
})
