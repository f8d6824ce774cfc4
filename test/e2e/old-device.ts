import { createRequire } from 'node:module'
import { PASSWORD } from '../support/api.ts'
import { waitUntil } from '../support/wait.ts'

/** What is used here of matrix-js-sdk 19, the last that speaks r0. */
interface OldClient {
  initCrypto(): Promise<void>
  startClient(options: object): Promise<void>
  stopClient(): void
  isInitialSyncComplete(): boolean
  joinRoom(roomId: string): Promise<unknown>
  sendTextMessage(roomId: string, text: string): Promise<{ event_id: string }>
  prepareKeyBackupVersion(): Promise<object>
  createKeyBackupVersion(info: object): Promise<{ version: string }>
  setGlobalErrorOnUnknownDevices(value: boolean): void
  isRoomEncrypted(roomId: string): boolean
  getRoom(roomId: string): { timeline: OldEvent[] } | null
  login(type: string, data: object): Promise<{ access_token: string; user_id: string; device_id: string }>
}

interface OldEvent {
  getWireType(): string
  isDecryptionFailure(): boolean
  getContent(): { body?: string }
}

type Request = (options: { uri: string }, done: (...results: unknown[]) => void) => unknown

interface OldSdk {
  createClient(options: object): OldClient
  MemoryStore: new () => object
  MemoryCryptoStore: new () => object
}

interface Loggers {
  methodFactory: () => () => void
}

/** A device as it was in 2022: matrix-js-sdk 19 with libolm. */
export interface OldDevice {
  readonly userId: string
  readonly client: OldClient
  /** Every path it asked for. */
  readonly paths: ReadonlySet<string>
  readable(roomId: string): string[]
  waitForText(roomId: string, text: string): Promise<unknown>
}

const require = createRequire(import.meta.url)

async function loadSdk(): Promise<{ sdk: OldSdk; request: Request }> {
  const olm = require('@matrix-org/olm') as { init(): Promise<void> }
  await olm.init()
  Object.assign(globalThis, { Olm: olm })
  // Its loggers are made as they are needed, each with a level of its own.
  const levels = require(require.resolve('loglevel', { paths: [require.resolve('matrix-js-sdk-r0')] })) as Loggers
  const { logger } = require('matrix-js-sdk-r0/lib/logger') as { logger: { disableAll(): void } }
  logger.disableAll()
  levels.methodFactory = () => () => undefined
  return { sdk: require('matrix-js-sdk-r0') as OldSdk, request: require('request') as Request }
}

export async function openOldDevice(baseUrl: string, name: string): Promise<OldDevice> {
  const { sdk, request } = await loadSdk()
  const paths = new Set<string>()
  const recorded: Request = (options, done) => {
    paths.add(new URL(options.uri).pathname)
    return request(options, done)
  }
  const entrance = sdk.createClient({ baseUrl, request: recorded })
  const identifier = { type: 'm.id.user', user: name }
  const session = await entrance.login('m.login.password', { identifier, password: PASSWORD })
  const client = sdk.createClient({
    baseUrl,
    request: recorded,
    accessToken: session.access_token,
    userId: session.user_id,
    deviceId: session.device_id,
    store: new sdk.MemoryStore(),
    cryptoStore: new sdk.MemoryCryptoStore(),
  })
  await client.initCrypto()
  client.setGlobalErrorOnUnknownDevices(false)
  await client.startClient({ initialSyncLimit: 50, pollTimeout: 5_000 })
  await waitUntil(`${name}'s first sync`, () => client.isInitialSyncComplete())
  const readable = (roomId: string) =>
    (client.getRoom(roomId)?.timeline ?? [])
      .filter((event) => event.getWireType() === 'm.room.encrypted' && !event.isDecryptionFailure())
      .flatMap((event) => event.getContent().body ?? [])
  return {
    userId: session.user_id,
    client,
    paths,
    readable,
    waitForText: (roomId, text) =>
      waitUntil(`"${text}" at the old device of ${name}`, () => readable(roomId).includes(text) || undefined, {
        timeoutMs: 40_000,
      }),
  }
}
