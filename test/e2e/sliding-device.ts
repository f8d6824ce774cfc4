import './promise-with-resolvers.ts'
import { createClient, type MatrixClient, type MatrixEvent, MemoryStore } from 'matrix-js-sdk'
import { logger } from 'matrix-js-sdk/lib/logger.js'
import { SlidingSync } from 'matrix-js-sdk/lib/sliding-sync.js'
import type { Account, Json } from '../support/api.ts'
import { waitUntil } from '../support/wait.ts'

const silent = { trace() {}, debug() {}, info() {}, warn() {}, error() {}, log() {}, getChild: () => silent }
Object.assign(logger, silent)

/** What one request of the sliding sync was, and what came of it. */
export interface Exchange {
  readonly pos: string | undefined
  readonly request: Json
  readonly status: number
  readonly answer: Json
  /** The client never saw this answer. */
  readonly isLost: boolean
}

/** A device that reads its rooms through the sliding sync of matrix-js-sdk, with its Rust crypto. */
export interface SlidingDevice {
  readonly client: MatrixClient
  readonly sliding: SlidingSync
  readonly userId: string
  /** What went over the wire so far. */
  readonly exchanges: readonly Exchange[]
  /** Loses the next answer that tells of this room on its way. */
  loseAnswerAbout(roomId: string): void
}

export const LIST = 'rooms'
const PATH = '/_matrix/client/unstable/org.matrix.simplified_msc3575/sync'

/** What Element asks for, or nearly so. */
const REQUIRED_STATE = [
  ['m.room.create', ''],
  ['m.room.name', ''],
  ['m.room.topic', ''],
  ['m.room.encryption', ''],
  ['m.room.join_rules', ''],
  ['m.room.power_levels', ''],
  ['m.room.history_visibility', ''],
  ['m.room.member', '$ME'],
  ['m.room.member', '$LAZY'],
]

/** Opens one whose list begins with a window of ten rooms. */
export async function openSlidingDevice(
  baseUrl: string,
  { userId, token, deviceId }: Account,
  timelineLimit: number,
): Promise<SlidingDevice> {
  const exchanges: Exchange[] = []
  let doomed: string | undefined
  const watched: typeof fetch = async (input, init) => {
    const url = new URL(String(input))
    const response = await fetch(input, init)
    if (url.pathname !== PATH) return response
    const answer: Json = await response.clone().json()
    const isLost = doomed !== undefined && answer.rooms?.[doomed] !== undefined
    const pos = url.searchParams.get('pos') ?? undefined
    exchanges.push({ pos, request: JSON.parse(String(init?.body)), status: response.status, answer, isLost })
    if (isLost) {
      doomed = undefined
      throw new TypeError('the connection broke')
    }
    return response
  }
  const store = new MemoryStore()
  const client = createClient({
    ...{ baseUrl, fetchFn: watched, logger: silent, accessToken: token, userId, deviceId, store },
  })
  await client.initRustCrypto({ useIndexedDB: false })
  const list = { ranges: [[0, 9]], timeline_limit: timelineLimit, required_state: REQUIRED_STATE }
  const opened = { timeline_limit: 20, required_state: REQUIRED_STATE }
  const sliding = new SlidingSync(baseUrl, new Map([[LIST, list]]), opened, client, 5_000)
  await client.startClient({ slidingSync: sliding, lazyLoadMembers: true })
  await waitUntil(`${userId}'s first sync`, () => client.isInitialSyncComplete())
  return {
    ...{ client, sliding, userId, exchanges },
    loseAnswerAbout(roomId) {
      doomed = roomId
    },
  }
}

export const timelineOf = ({ client }: SlidingDevice, roomId: string): MatrixEvent[] =>
  client.getRoom(roomId)?.getLiveTimeline().getEvents() ?? []

/** The texts that a device shows of a room, those that it had to decrypt among them. */
export const textsIn = (device: SlidingDevice, roomId: string): string[] =>
  timelineOf(device, roomId)
    .filter((event) => event.getType() === 'm.room.message' && !event.isRedacted() && !event.isDecryptionFailure())
    .map((event) => String(event.getContent().body))

/** The same once all is decrypted: the client does that when a room is shown. */
export async function readIn(device: SlidingDevice, roomId: string): Promise<string[]> {
  await device.client.getRoom(roomId)?.decryptAllEvents()
  return textsIn(device, roomId)
}

export const hears = (device: SlidingDevice, roomId: string, text: string): Promise<true> =>
  waitUntil(`"${text}" at ${device.userId}`, () => textsIn(device, roomId).includes(text) || undefined)

/** What a device received of a room in the answers since one: `exchanges.length` of then. */
export const receivedSince = ({ exchanges }: SlidingDevice, since: number, roomId: string): Json[] =>
  exchanges.slice(since).flatMap(({ answer }) => answer.rooms?.[roomId] ?? [])
