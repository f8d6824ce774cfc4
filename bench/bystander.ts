import { setTimeout as pause } from 'node:timers/promises'
import { type Account, type Api, createRoom, join, openApi, sendText, syncPath } from '../test/support/api.ts'
import { newPrefix, registerPeople } from './community.ts'
import { type Latencies, latenciesOf, now } from './measurement.ts'
import type { Target } from './target.ts'

/** Two users in a room who notice nothing of what else goes on, or do. */
export interface Bystander {
  /** Has one of them send while the work runs, one message after the other, and the other one sync. */
  during<Result>(work: () => Promise<Result>): Promise<Noticed & { readonly result: Result }>
  close(): Promise<void>
}

export interface Noticed {
  /** From sending a message to its event id. */
  readonly sends: Latencies
  /** From sending a message to its coming down the other's sync. */
  readonly deliveries: Latencies
  readonly sent: number
  /** Answers other than 200, and connections that failed. */
  readonly failed: number
}

const SEND_EVERY_MS = 100
const SYNC_TIMEOUT_MS = 10_000

/** Makes the two and their room, on connections of their own. The load belongs into another process: here it would measure itself. */
export async function startBystander(target: Target): Promise<Bystander> {
  const api = openApi(target.baseUrl, { connections: 4 })
  const [sender, reader] = (await registerPeople(api, target, 2)) as [Account, Account]
  const room = await createRoom(api, sender.token, { preset: 'public_chat' })
  await join(api, reader.token, room)
  // The first of each is slower: it brings things into memory.
  await watch(api, { sender, reader, room }, () => pause(1_000))
  return {
    during: (work) => watch(api, { sender, reader, room }, work),
    close: () => api.close(),
  }
}

interface Pair {
  readonly sender: Account
  readonly reader: Account
  readonly room: string
}

async function watch<Result>(api: Api, pair: Pair, work: () => Promise<Result>): Promise<Noticed & { result: Result }> {
  const prefix = newPrefix()
  const begun = new Map<string, number>()
  const sends: number[] = []
  const deliveries: number[] = []
  let failed = 0
  let isOver = false

  async function send(): Promise<void> {
    for (let count = 0; !isOver; count++) {
      const word = `${prefix}-${count}`
      const at = now()
      begun.set(word, at)
      const isSent = await sendText(api, pair.sender.token, pair.room, word, word).then(
        () => true,
        () => false,
      )
      if (isSent) sends.push(now() - at)
      else {
        begun.delete(word)
        failed++
      }
      await pause(Math.max(0, SEND_EVERY_MS - (now() - at)))
    }
  }

  async function read(since: string): Promise<void> {
    for (let from = since; !isOver || begun.size > 0; ) {
      const timeout = isOver ? 1_000 : SYNC_TIMEOUT_MS
      const answer = await api
        .call('GET', syncPath({ since: from, timeout }), { token: pair.reader.token })
        .catch(() => {
          failed++
          return undefined
        })
      const arrived = now()
      if (answer === undefined) await pause(SEND_EVERY_MS)
      else from = answer.next_batch
      const events = answer?.rooms?.join?.[pair.room]?.timeline?.events ?? []
      for (const { content } of events) {
        const at = begun.get(content?.body)
        if (at === undefined) continue
        begun.delete(content.body)
        deliveries.push(arrived - at)
      }
      if (isOver && events.length === 0) return
    }
  }

  const { next_batch: since } = await api.call('GET', syncPath({}), { token: pair.reader.token })
  const reading = read(since)
  const sending = send()
  try {
    const result = await work()
    isOver = true
    await Promise.all([sending, reading])
    return { result, sends: latenciesOf(sends), deliveries: latenciesOf(deliveries), sent: sends.length, failed }
  } finally {
    isOver = true
  }
}

/** What they noticed, as the note of a line of results. */
export function noticedNote({ sends, deliveries, sent, failed }: Noticed): string {
  const ms = ({ p50Ms, p99Ms }: Latencies) => `${p50Ms.toFixed(0)}/${p99Ms.toFixed(0)} ms`
  return `bystander p50/p99: send ${ms(sends)}, sync ${ms(deliveries)}, ${sent} sent, ${failed} failed`
}
