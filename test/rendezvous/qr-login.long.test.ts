import '../e2e/promise-with-resolvers.ts'
import { initAsync, QrCodeData } from '@matrix-org/matrix-sdk-crypto-wasm'
import { createClient, type MatrixClient, MemoryStore } from 'matrix-js-sdk'
import {
  MSC4108RendezvousSession,
  MSC4108SecureChannel,
  MSC4108SignInWithQR,
} from 'matrix-js-sdk/lib/rendezvous/index.js'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { backUp, type CryptoDevice, crossSign, openCryptoDevice } from '../e2e/crypto-device.ts'
import { type OauthWorld, openOauthWorld } from '../oauth/world.ts'
import { waitUntil } from '../support/wait.ts'

/** Signing in a new device by the QR code of one that is signed in, with both ends of matrix-js-sdk and its encryption. */

const silent = { trace() {}, debug() {}, info() {}, warn() {}, error() {}, log() {}, getChild: () => silent }
const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'

let world: OauthWorld
let phone: CryptoDevice
const opened: MatrixClient[] = []

beforeAll(async () => {
  await initAsync()
  world = await openOauthWorld({}, 'whole')
  await world.account('alice')
  phone = await openCryptoDevice(world.origin, 'alice', new Map())
  opened.push(phone.client)
  await crossSign(phone)
  await backUp(phone)
})
afterAll(async () => {
  for (const client of opened) client.stopClient()
  await world?.close()
})

/** The phone shows a code, and the computer has scanned it. */
async function meet() {
  const session = new MSC4108RendezvousSession({ client: phone.client })
  await session.send('')
  const showing = new MSC4108SignInWithQR(new MSC4108SecureChannel(session), false, phone.client)
  await showing.generateCode()
  const code = QrCodeData.fromBytes(showing.code!)
  const url = code.rendezvousUrl!
  const scanned = new MSC4108SecureChannel(new MSC4108RendezvousSession({ url }), code.publicKey)
  const scanning = new MSC4108SignInWithQR(scanned, true)
  await Promise.all([showing.negotiateProtocols(), scanning.negotiateProtocols()])
  expect(scanning.checkCode).toMatch(/^\d\d$/)
  expect(showing.checkCode).toBe(scanning.checkCode)
  return { showing, scanning }
}

async function newClient() {
  const metadata = await createClient({ baseUrl: world.origin, logger: silent }).getAuthMetadata()
  const clientId = await world.client({
    grant_types: [DEVICE_GRANT, 'refresh_token'],
    redirect_uris: undefined,
    response_types: undefined,
    client_name: 'A computer',
  })
  return { metadata, clientId }
}

describe('signing in by QR code', () => {
  it('gives a new device a session, the secrets and the trust of the old one', async () => {
    const { showing, scanning } = await meet()
    const { metadata, clientId } = await newClient()
    const deviceId = 'COMPUTER01'
    const beginning = scanning.deviceAuthorizationGrant({ metadata, clientId, deviceId })
    const { verificationUri } = await showing.deviceAuthorizationGrant()
    const { userCode } = await beginning
    expect(verificationUri).toBe(`${world.origin}/_hearth/account/link?user_code=${userCode}`)

    const sharing = showing.shareSecrets()
    const completing = scanning.completeLoginOnNewDevice({ clientId })
    // The person, in the browser that the phone opens.
    const browser = world.browser()
    const question = await browser.signIn(await browser.open(verificationUri!), 'alice')
    expect(question.heading).toBe('Is this your device?')
    expect(question.text).toContain(deviceId)
    expect((await browser.submit(question, { decision: 'allow' })).heading).toBe('The device is signed in')

    const tokens = await completing
    const { secrets } = await scanning.shareSecrets()
    await sharing
    const { access_token: accessToken, refresh_token: refreshToken } = tokens!
    expect(refreshToken).toEqual(expect.any(String))
    const { userId } = phone
    const store = new MemoryStore()
    const computer = createClient({ baseUrl: world.origin, logger: silent, accessToken, userId, deviceId, store })
    opened.push(computer)
    expect(await computer.whoami()).toMatchObject({ user_id: userId, device_id: deviceId })
    await computer.initRustCrypto({ useIndexedDB: false })
    const crypto = computer.getCrypto()!
    await crypto.importSecretsBundle!(secrets!)
    await computer.startClient({ pollTimeout: 5_000 })
    await waitUntil('the first sync of the computer', () => computer.isInitialSyncComplete())
    await crypto.crossSignDevice(deviceId)
    expect(await crypto.isCrossSigningReady()).toBe(true)
    await waitUntil('the phone to trust the computer', async () => {
      const status = await phone.crypto.getDeviceVerificationStatus(userId, deviceId)
      return status?.signedByOwner === true
    })
    const devices = (await phone.client.getDevices()).devices.map(({ device_id }) => device_id)
    expect(devices).toContain(deviceId)
  })

  it('ends where the person says no', async () => {
    const { showing, scanning } = await meet()
    const { metadata, clientId } = await newClient()
    const beginning = scanning.deviceAuthorizationGrant({ metadata, clientId, deviceId: 'STRANGER01' })
    const { verificationUri } = await showing.deviceAuthorizationGrant()
    await beginning
    const sharing = showing.shareSecrets()
    const completing = scanning.completeLoginOnNewDevice({ clientId })
    const browser = world.browser()
    const question = await browser.signIn(await browser.open(verificationUri!), 'alice')
    expect((await browser.submit(question, { decision: 'deny' })).heading).toBe('The device was refused')
    await expect(completing).rejects.toThrow()
    await expect(sharing).rejects.toThrow()
    expect((await phone.client.getDevices()).devices.map(({ device_id }) => device_id)).not.toContain('STRANGER01')
  })

  it('is refused for the name of a device that is there', async () => {
    const { showing, scanning } = await meet()
    const { metadata, clientId } = await newClient()
    const beginning = scanning.deviceAuthorizationGrant({ metadata, clientId, deviceId: phone.deviceId })
    await expect(showing.deviceAuthorizationGrant()).rejects.toThrow('already exists')
    await beginning
    await expect(scanning.completeLoginOnNewDevice({ clientId })).rejects.toThrow()
  })
})
