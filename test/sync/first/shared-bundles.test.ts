import fc from 'fast-check'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { MAX_REPLIES_READ } from '../../../src/domain/limits/relations.ts'
import { WrittenEvents } from '../../../src/domain/sync/first/written-events.ts'
import { SHARED_FOR_MS } from '../../../src/domain/sync/shared-stretches.ts'
import { edit, react, redact, relate, reply } from '../../relations/people.ts'
import { type House, openHouse, type Person, personOf } from '../../rooms/people.ts'
import { type Json, login, PASSWORD } from '../../support/api.ts'

/**
 * First syncs, and those after a gap, share what is bundled with the events of a room, whoever reads. Each reader must be shown what they
 * alone would be shown: by a filter that wants everything too, but says so in a way that is not shared.
 */
let house: House
let writers: Person[]
let runs = 0

beforeAll(async () => {
  house = await openHouse()
  writers = []
  for (const name of ['alice', 'bob', 'carol']) writers.push(await house.person(name))
  // What a second device of Bob reads is not what it sent.
  writers.push(personOf(house.api, await login(house.api, writers[1]!.userId)))
})
afterAll(() => house.close())

const LIMIT = 12
/** More than a timeline has, so that all of it is newer than everybody's join. */
const BEFORE = LIMIT + 1

const filterOf = (timeline: Json) => encodeURIComponent(JSON.stringify({ room: { timeline } }))
const SHARED = filterOf({ limit: LIMIT })
const ALONE = filterOf({ limit: LIMIT, not_types: ['org.example.none'] })

/** The time up to which ages count, of all events wherever they are in an answer. */
function timesIn(value: Json, times = new Set<number>()): Set<number> {
  if (typeof value !== 'object' || value === null) return times
  if (value.unsigned?.age !== undefined) times.add(value.origin_server_ts + value.unsigned.age)
  for (const part of Object.values(value)) timesIn(part as Json, times)
  return times
}

const withoutAges = (value: Json): Json =>
  JSON.parse(JSON.stringify(value, (name, part) => (name === 'age' ? undefined : part)))

async function shownTo(reader: Person, room: string, filter: string, since?: string): Promise<Json> {
  const { rooms } = await reader.sync(`&filter=${filter}${since === undefined ? '' : `&since=${since}`}`)
  const section = rooms.join[room]
  const times = [...timesIn(section)]
  // They may be given what others were a moment ago.
  expect(Math.max(...times) - Math.min(...times)).toBeLessThanOrEqual(SHARED_FOR_MS)
  return withoutAges(section)
}

/** Most by chance begin a thread or are in one. */
const KINDS = ['say', 'say', 'reply', 'reply', 'edit', 'refer', 'react', 'redact'] as const
type Act = { readonly kind: (typeof KINDS)[number]; readonly by: number; readonly back: number }

const acts = fc.array(
  fc.record({ kind: fc.constantFrom(...KINDS), by: fc.nat({ max: 3 }), back: fc.nat({ max: 5 }) }),
  { minLength: 12, maxLength: 24 },
)

it('everybody is told whether they replied, in a thread of more replies than are remembered', async () => {
  const room = await writers[0]!.createRoom({ preset: 'public_chat' })
  const [alice, bob, carol] = writers as [Person, Person, Person]
  for (const person of [bob, carol]) await person.join(room)
  const root = await alice.say(room, 'root')
  await reply(bob, room, root)
  for (let sent = 0; sent < MAX_REPLIES_READ; sent += 64) {
    await Promise.all(Array.from({ length: 64 }, () => reply(alice, room, root)))
  }
  const filter = filterOf({ limit: MAX_REPLIES_READ + 2 })
  const answers: boolean[] = []
  for (const reader of [alice, alice, bob, carol, bob, carol, alice]) {
    const { timeline } = await shownTo(reader, room, filter)
    const { unsigned } = timeline.events.find(({ event_id }: Json) => event_id === root)
    const { count, current_user_participated } = unsigned['m.relations']['m.thread']
    expect(count).toBe(MAX_REPLIES_READ + 1)
    answers.push(current_user_participated)
  }
  expect(answers).toEqual([true, true, true, false, true, false, true])
})

interface Sent {
  readonly id: string
  readonly by: Person
  /** What it is no relation to may be the root of a thread. */
  readonly isRoot: boolean
}

/** One of each, whatever chance makes of the others. */
const EACH: Act[] = [
  'say',
  'say',
  'reply',
  'edit',
  'refer',
  'reply',
  'edit',
  'react',
  'redact',
  'say',
  'reply',
  'edit',
].map((kind, by) => ({ kind: kind as Act['kind'], by: by % 4, back: by % 2 }))

/** Does what is asked to one of the newest events, and gives the event that this sent. */
async function act({ kind, by, back }: Act, room: string, sent: readonly Sent[]): Promise<Sent | undefined> {
  const person = writers[by]!
  const targets = kind === 'reply' ? sent.filter(({ isRoot }) => isRoot) : sent
  const target = targets.at(-1 - back)!
  const related = (id: string, whose = person): Sent => ({ id, by: whose, isRoot: false })
  switch (kind) {
    case 'say':
      return { id: await person.say(room, `text of ${by}`), by: person, isRoot: true }
    case 'reply':
      return related(await reply(person, room, target.id))
    case 'refer':
      return related(await relate(person, room, target.id, 'm.reference'))
    case 'edit':
      return related(await edit(target.by, room, target.id), target.by)
    case 'react':
      return related(await react(person, room, target.id, `key ${keys++}`))
    case 'redact':
      await redact(target.by, room, target.id)
  }
}

let keys = 0

async function erase({ userId, call }: Person): Promise<void> {
  const auth = { type: 'm.login.password', identifier: { type: 'm.id.user', user: userId }, password: PASSWORD }
  await call('POST', '/account/deactivate', { erase: true, auth })
}
it('everybody is shown what they alone would be shown, whatever relates to what', async () => {
  const written = vi.spyOn(WrittenEvents.prototype, 'write')
  await fc.assert(
    fc.asyncProperty(acts, acts, async (first, second) => {
      const [alice, ...others] = writers as [Person, Person, Person, Person]
      const name = `reader-${++runs}`
      const erased = await house.person(`${name}-erased`)
      const ignoring = await house.person(`${name}-ignoring`)
      const late = await house.person(`${name}-late`)
      const quiet = await house.person(`${name}-quiet`)
      await ignoring.call('PUT', `/user/${encodeURIComponent(ignoring.userId)}/account_data/m.ignored_user_list`, {
        ignored_users: { [others[0].userId]: {} },
      })
      const room = await alice.createRoom({ preset: 'public_chat' })
      for (const person of [...others.slice(0, 2), erased, ignoring, quiet]) await person.join(room)
      const sent: Sent[] = []
      for (let count = 0; count < BEFORE; count++) {
        sent.push({ id: await alice.say(room, `${count}`), by: alice, isRoot: true })
      }
      sent.push({ id: await erased.say(room, 'to be erased'), by: erased, isRoot: true })
      await reply(erased, room, sent.at(-2)!.id)
      const readers = [quiet, ...writers, ignoring, late]
      const begun = await Promise.all(readers.map(async (reader) => (await reader.sync()).next_batch as string))
      for (const [part, some] of [first, second].entries()) {
        if (part === 1) await erase(erased)
        for (const one of some) {
          const event = await act(one, room, part === 1 ? sent.filter(({ by }) => by !== erased) : sent)
          if (event) sent.push(event)
        }
        if (part === 0) await late.join(room)
        // At the end of the first part first syncs write, and others are given that. At the end of the second it is the other way.
        const isGapFirst = part === 1
        for (const isGap of [isGapFirst, !isGapFirst]) {
          const sinceOf = (index: number) => (isGap ? begun[index] : undefined)
          const alone: Json[] = []
          for (const [index, reader] of readers.entries()) {
            alone.push(await shownTo(reader, room, ALONE, sinceOf(index)))
          }
          // The first one reads, the second one writes, all others are given what was written.
          for (const _ of ['reads', 'writes']) await shownTo(quiet, room, SHARED, sinceOf(0))
          for (const [index, reader] of readers.entries()) {
            expect(await shownTo(reader, room, SHARED, sinceOf(index))).toEqual(alone[index])
          }
        }
      }
    }),
    { numRuns: 3, examples: [[EACH, EACH]] },
  )
  const withThreads = (written.mock.contexts as WrittenEvents[]).filter(({ threads }) => threads.length > 0)
  written.mockRestore()
  expect(withThreads.length).toBeGreaterThan(0)
})
