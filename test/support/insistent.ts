import { setTimeout as pause } from 'node:timers/promises'
import { type Account, type Api, syncPath } from './api.ts'
import { waitUntil } from './wait.ts'

/** People who send messages to rooms, and to a device, and repeat each one until some node acknowledges it. */
export interface InsistentSenders {
  /** Event ids by their texts. */
  readonly acknowledged: ReadonlyMap<string, string>
  /** The texts that were sent to the device. */
  readonly delivered: readonly string[]
  /** When each message was acknowledged, by `performance.now()`. */
  readonly times: readonly number[]
  stop(): Promise<void>
}

export interface SendersOptions {
  readonly apis: readonly Api[]
  readonly people: readonly Account[]
  readonly rooms: readonly string[]
  /** Who gets a message to their device with every tenth one to a room. */
  readonly listener: Account
  /** How long each waits after an answer. */
  readonly pauseMs?: number
}

/** Then it goes to another node, and what hung may still be done: twice, if transaction ids were not heeded. */
const TRY_MS = 5_000
const PATIENCE_MS = 90_000
const TO_DEVICE_EVERY = 10

export function startInsistentSenders(options: SendersOptions): InsistentSenders {
  const { apis, people, rooms, listener, pauseMs = 0 } = options
  const acknowledged = new Map<string, string>()
  const delivered: string[] = []
  const times: number[] = []
  let isOver = false

  /** Each try goes to another node, with the same transaction id. */
  const insist = (path: string, token: string, body: object) =>
    waitUntil(
      `an answer to ${path}`,
      () =>
        anyOf(apis)
          .request('PUT', path, { token, body, timeoutMs: TRY_MS })
          .then(
            (answer) => (answer.status === 200 ? answer.body : undefined),
            () => undefined,
          ),
      { timeoutMs: PATIENCE_MS, everyMs: 100 },
    )
  const sending = people.map(async ({ token }, sender) => {
    for (let n = 0; !isOver; n++) {
      const name = `${sender}-${n}`
      const room = encodeURIComponent(rooms[n % rooms.length]!)
      const body = { msgtype: 'm.text', body: name }
      const { event_id } = await insist(`/rooms/${room}/send/m.room.message/${name}`, token, body)
      acknowledged.set(name, event_id)
      times.push(performance.now())
      if (n % TO_DEVICE_EVERY === 0) {
        const messages = { [listener.userId]: { [listener.deviceId]: { name } } }
        await insist(`/sendToDevice/org.example.note/${name}`, token, { messages })
        delivered.push(name)
      }
      await pause(pauseMs)
    }
  })
  return {
    acknowledged,
    delivered,
    times,
    async stop() {
      isOver = true
      await Promise.all(sending)
    },
  }
}

/** A client that goes from node to node with the token that it got last. */
export interface Wanderer {
  /** Event ids of messages, by room, as they came. */
  readonly seen: ReadonlyMap<string, readonly string[]>
  /** What came to its device. */
  readonly received: readonly string[]
  /** Resolves when there is no more news. */
  finish(): Promise<void>
  /** Ends it wherever it is. */
  stop(): Promise<void>
}

interface Timeline {
  readonly timeline: { readonly limited: boolean; readonly events: readonly { event_id: string; type: string }[] }
}

export function startWanderer(apis: readonly Api[], { token }: Account, start: string): Wanderer {
  const seen = new Map<string, string[]>()
  const received: string[] = []
  let since = start
  let isOver = false

  /** @returns whether there was nothing new */
  async function read(timeout: number): Promise<boolean> {
    const query = syncPath({ since, timeout, filter: { room: { timeline: { limit: 1000 } } } })
    const { status, body } = await anyOf(apis).request('GET', query, { token, timeoutMs: TRY_MS })
    if (status !== 200) return false
    const rooms = Object.entries(body.rooms?.join ?? {}) as [string, Timeline][]
    for (const [room, { timeline }] of rooms) {
      const ids = seen.get(room) ?? []
      for (const { type, event_id } of timeline.events) if (type === 'm.room.message') ids.push(event_id)
      if (timeline.limited) ids.push('a gap')
      seen.set(room, ids)
    }
    const messages = (body.to_device?.events ?? []) as { content: { name: string } }[]
    for (const { content } of messages) received.push(content.name)
    since = body.next_batch
    return rooms.length === 0 && messages.length === 0
  }

  const reading = (async () => {
    while (!isOver) {
      // A node that is gone fails at once.
      await read(2_000).catch(() => pause(100))
    }
  })()
  return {
    seen,
    received,
    async stop() {
      isOver = true
      await reading
    },
    async finish() {
      isOver = true
      await reading
      await waitUntil('the end of the news', () => read(0).catch(() => false))
    },
  }
}

const anyOf = (apis: readonly Api[]): Api => apis[Math.floor(Math.random() * apis.length)]!

/** The messages of a room in its own order, from the first one on. */
export async function messagesOf(api: Api, { token }: Account, room: string): Promise<{ id: string; text: string }[]> {
  const found: { id: string; text: string }[] = []
  for (let from = ''; ; ) {
    const path = `/rooms/${encodeURIComponent(room)}/messages?dir=f&limit=1000${from}`
    const { chunk, end } = await api.call('GET', path, { token })
    for (const { type, event_id, content } of chunk as { type: string; event_id: string; content: { body: string } }[])
      if (type === 'm.room.message') found.push({ id: event_id, text: content.body })
    if (end === undefined || chunk.length === 0) return found
    from = `&from=${encodeURIComponent(end)}`
  }
}
