import type { Json } from '../../test/support/api.ts'
import { waitUntil } from '../../test/support/wait.ts'
import type { Person, Side } from './sides.ts'

const SEEN_WITHIN_MS = 45_000
const AGAIN_AFTER_MS = 150

/** Waits until something can be seen. @throws Error that names it, after 45 s */
export const until = <T>(what: string, ask: () => Promise<T | undefined | false>): Promise<T> =>
  waitUntil(what, ask, { timeoutMs: SEEN_WITHIN_MS, everyMs: AGAIN_AFTER_MS })

export function expect(what: string, isSo: boolean): void {
  if (!isSo) throw new Error(`not so: ${what}`)
}

/** @throws Error unless it is refused with this errcode */
export async function expectRefusal(what: string, errcode: string, attempt: Promise<unknown>): Promise<void> {
  const outcome = await attempt.then(
    () => 'taken',
    (error: { errcode?: string; message: string }) => error.errcode ?? error.message,
  )
  expect(`${what} is refused with ${errcode} (was: ${outcome})`, outcome === errcode)
}

export async function membership(seenBy: Person, room: string, of: Person): Promise<string> {
  const content = await seenBy.state(room, 'm.room.member', of.userId).catch(() => undefined)
  return content?.membership ?? 'none'
}

export const untilMember = (by: Side, room: string, of: Side, wanted: string) =>
  until(
    `${of.person.userId} with membership ${wanted}, seen on ${by.label}`,
    async () => (await membership(by.person, room, of.person)) === wanted,
  )

export async function textsOf(seenBy: Person, room: string, sender?: Person): Promise<string[]> {
  const events = await seenBy.history(room)
  return events
    .filter((event) => event.type === 'm.room.message' && (sender === undefined || event.sender === sender.userId))
    .map((event) => event.content.body)
}

export const untilHeard = (by: Side, room: string, text: string) =>
  until(`${text}, heard on ${by.label}`, async () => {
    const { chunk } = await by.person.call('GET', `/rooms/${encodeURIComponent(room)}/messages?dir=b&limit=50`)
    return chunk.some((event: Json) => event.content.body === text)
  })

async function stateIds(person: Person, room: string): Promise<string> {
  const events: Json[] = await person.call('GET', `/rooms/${encodeURIComponent(room)}/state`)
  const lines = events.map(({ type, state_key, event_id }) => `${type}|${state_key}|${event_id}`)
  return lines.sort().join('\n')
}

/** Waits until both say that the room's state is made of the same events. */
export async function untilSameState(room: string, one: Side, other: Side): Promise<void> {
  let differing: string[] = []
  const ask = async () => {
    const [here, there] = await Promise.all([stateIds(one.person, room), stateIds(other.person, room)])
    const [ours, theirs] = [new Set(here.split('\n')), new Set(there.split('\n'))]
    differing = [
      ...[...ours].filter((line) => !theirs.has(line)).map((line) => `${one.label} ${line}`),
      ...[...theirs].filter((line) => !ours.has(line)).map((line) => `${other.label} ${line}`),
    ]
    return differing.length === 0
  }
  await until('the same state', ask).catch((error: Error) => {
    throw new Error(`${error.message}; only on ${differing.slice(0, 6).join('; only on ')}`)
  })
}
