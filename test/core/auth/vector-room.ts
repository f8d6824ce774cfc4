import { readdirSync, readFileSync } from 'node:fs'
import { authorise } from '../../../src/core/auth/rules.ts'
import { type CitedEvent, checkAuthEvents } from '../../../src/core/auth/select.ts'
import type { Pdu, Verdict } from '../../../src/core/event/format.ts'
import type { JsonObject } from '../../../src/core/json.ts'
import { ROOM_VERSIONS, type RoomVersion } from '../../../src/core/room-version.ts'
import { CREATOR, createPdu, member, powerLevels, roomOf, type Sketch, type TestRoom } from './room.ts'

/** An event of a case: `prev` names its previous events, `create` being the room's own. */
type VectorEvent = Sketch & { readonly prev?: readonly string[] }

/** An auth event of a case: `create` (where the version cites it), `create!`, `levels`, `join_rules`, `member @user`, or an event. */
type Cite = string | { readonly rejected: string } | Sketch

/** One case of the authorisation rules: a room, an event, and what the rules say to it. */
export interface AuthVector {
  /** The clause it is about, by its name in `core/auth/clauses.ts`. */
  readonly clause: string
  readonly name: string
  /** `7-12`; all that have the clause where nothing is said. */
  readonly versions?: string
  /** What the create event's content says besides. */
  readonly create?: JsonObject
  readonly members?: { readonly [userId: string]: string }
  readonly levels?: JsonObject
  readonly join_rule?: string
  readonly more?: readonly Sketch[]
  readonly event: VectorEvent
  /** With them the event's own auth events are judged, not the event. */
  readonly cites?: readonly Cite[]
  readonly allowed: boolean
  /** The clause that refuses, where that is another. */
  readonly by?: string
}

const FOLDER = new URL('../../vectors/rooms/', import.meta.url)

export function authVectors(): AuthVector[] {
  const files = readdirSync(FOLDER).filter((file) => file.startsWith('auth-'))
  return files.sort().flatMap((file) => JSON.parse(readFileSync(new URL(file, FOLDER), 'utf8')) as AuthVector[])
}

/** The versions of a range as vectors write it: `6`, or `6-12`. */
export function versionsIn(range = '1-12'): readonly RoomVersion[] {
  const [from, to = from] = range.split('-').map(Number)
  return ROOM_VERSIONS.filter(({ id }) => Number(id) >= from! && Number(id) <= to!)
}

export function judgeVector(version: RoomVersion, vector: AuthVector): Verdict {
  const room = roomFor(version, vector)
  const event = eventFor(room, vector.event)
  if (vector.cites) return checkAuthEvents(version, event, citedBy(room, vector, vector.cites))
  return event.type === 'm.room.create' ? authorise(version, event, () => undefined) : room.judge(event)
}

function roomFor(version: RoomVersion, { create, members = {}, levels, join_rule, more = [] }: AuthVector): TestRoom {
  const room = roomOf(version.id, create)
  for (const [userId, membership] of Object.entries(members)) room.set(member(userId, membership))
  if (levels) room.set(powerLevels(levels))
  if (join_rule !== undefined) room.set(joinRules(join_rule))
  for (const each of more) room.set(each)
  return room
}

function joinRules(join_rule: string): Sketch {
  return { type: 'm.room.join_rules', sender: CREATOR, state_key: '', content: { join_rule } }
}

function eventFor({ version, pdu, createId }: TestRoom, { prev, ...sketch }: VectorEvent): Pdu {
  const reference = (name: string) => {
    const id = name === 'create' ? createId : `$${name}:here.example`
    return version.referencesCarryHashes ? [id, { sha256: '' }] : id
  }
  const full = prev === undefined ? sketch : { ...sketch, prev_events: prev.map(reference) }
  return sketch.type === 'm.room.create' ? createPdu(version, {}, full) : pdu(full)
}

function citedBy(room: TestRoom, vector: AuthVector, cites: readonly Cite[]): CitedEvent[] {
  const known: { readonly [name: string]: Sketch | undefined } = {
    levels: vector.levels && powerLevels(vector.levels),
    join_rules: vector.join_rule === undefined ? undefined : joinRules(vector.join_rule),
    [`member ${CREATOR}`]: member(CREATOR, 'join'),
    ...Object.fromEntries(Object.entries(vector.members ?? {}).map(([id, ms]) => [`member ${id}`, member(id, ms)])),
  }
  const cited = (cite: Cite, isRejected = false): CitedEvent[] => {
    if (typeof cite !== 'string')
      return 'type' in cite ? [{ pdu: room.pdu(cite), isRejected }] : cited(cite.rejected, true)
    if (cite === 'create' && !room.version.createIsAuthEvent) return []
    if (cite.startsWith('create')) return [{ pdu: room.create, isRejected }]
    const sketch = known[cite]
    if (!sketch) throw new Error(`the room has no ${cite}`)
    return [{ pdu: room.pdu(sketch), isRejected }]
  }
  return cites.flatMap((cite) => cited(cite))
}
