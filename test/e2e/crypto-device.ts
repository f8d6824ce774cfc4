import './promise-with-resolvers.ts'
import { createClient, type MatrixClient, type MatrixEvent, MemoryStore } from 'matrix-js-sdk'
import { type CryptoApi, CryptoEvent, type VerificationRequest } from 'matrix-js-sdk/lib/crypto-api/index.js'
import { logger } from 'matrix-js-sdk/lib/logger.js'
import { PASSWORD } from '../support/api.ts'
import { waitUntil } from '../support/wait.ts'

const silent = { trace() {}, debug() {}, info() {}, warn() {}, error() {}, log() {}, getChild: () => silent }
Object.assign(logger, silent)

/** A device of a user: matrix-js-sdk with its Rust crypto, in memory. */
export interface CryptoDevice {
  readonly client: MatrixClient
  readonly crypto: CryptoApi
  readonly userId: string
  readonly deviceId: string
  /** Requests for verification that others have made of it. */
  readonly requests: VerificationRequest[]
}

/** The keys to a user's secret storage, as the user would write them down: id to key. */
export type RecoveryKeys = Map<string, Uint8Array<ArrayBuffer>>

export async function openCryptoDevice(baseUrl: string, name: string, recovery: RecoveryKeys): Promise<CryptoDevice> {
  const session = await createClient({ baseUrl, logger: silent }).loginRequest({
    type: 'm.login.password',
    identifier: { type: 'm.id.user', user: name },
    password: PASSWORD,
  })
  const { access_token: accessToken, user_id: userId, device_id: deviceId } = session
  const cryptoCallbacks = {
    getSecretStorageKey: async ({ keys }: { keys: object }): Promise<[string, Uint8Array<ArrayBuffer>] | null> =>
      [...recovery].find(([id]) => id in keys) ?? null,
    cacheSecretStorageKey: (id: string, _: unknown, key: Uint8Array<ArrayBuffer>) => void recovery.set(id, key),
  }
  const store = new MemoryStore()
  const client = createClient({ baseUrl, logger: silent, accessToken, userId, deviceId, store, cryptoCallbacks })
  await client.initRustCrypto({ useIndexedDB: false })
  const requests: VerificationRequest[] = []
  client.on(CryptoEvent.VerificationRequestReceived, (request) => requests.push(request))
  await client.startClient({ initialSyncLimit: 50, pollTimeout: 5_000 })
  await waitUntil(`${userId}'s first sync`, () => client.isInitialSyncComplete())
  return { client, crypto: client.getCrypto()!, userId, deviceId, requests }
}

/** Makes the user's cross-signing keys, proving by password that it is the user who does. */
export async function crossSign({ crypto, userId }: CryptoDevice): Promise<void> {
  await crypto.bootstrapCrossSigning({
    authUploadDeviceSigningKeys: async (makeRequest) => {
      const identifier = { type: 'm.id.user', user: userId }
      await makeRequest({ type: 'm.login.password', identifier, password: PASSWORD })
    },
  })
  await waitUntil('cross-signing', () => crypto.isCrossSigningReady())
}

/** Puts the user's secrets into storage on the server, and begins a backup of room keys. */
export async function backUp({ crypto }: CryptoDevice): Promise<void> {
  await crypto.bootstrapSecretStorage({
    createSecretStorageKey: () => crypto.createRecoveryKeyFromPassphrase(),
    setupNewSecretStorage: true,
    setupNewKeyBackup: true,
  })
  await waitUntil('the backup', async () => (await crypto.getActiveSessionBackupVersion()) !== null)
}

/** What a device could read of a room, in order. */
export function readableIn({ client }: Pick<CryptoDevice, 'client'>, roomId: string): string[] {
  const events: MatrixEvent[] = client.getRoom(roomId)?.getLiveTimeline().getEvents() ?? []
  return events
    .filter((event) => event.getWireType() === 'm.room.encrypted' && event.getType() === 'm.room.message')
    .filter((event) => !event.isDecryptionFailure())
    .map((event) => String(event.getContent().body))
}

export const waitForText = (device: CryptoDevice, roomId: string, text: string): Promise<true> =>
  waitUntil(
    `"${text}" at ${device.userId} ${device.deviceId}`,
    () => readableIn(device, roomId).includes(text) || undefined,
    {
      timeoutMs: 40_000,
    },
  )
