import { JsonBytes } from '../../../../core/json-bytes.ts'
import {
  changedFields,
  fieldsOfUsers,
  type ProfileFieldRow,
  profileChangesBetween,
  whoIsInRoomsWith,
} from '../../../../store/accounts/profile-changes.ts'
import { MAX_PROFILE_CHANGES_SENT, MAX_PROFILES_SENT } from '../../../limits/sliding-sync.ts'
import { MAX_ANSWER_PART_BYTES } from '../../../limits.ts'
import type { SlidingLook } from '../look.ts'
import { wasOn } from '../position.ts'
import { isSameRoom } from '../record.ts'
import type { SlidingExtensions } from '../request.ts'
import { type ExtensionPart, type ExtensionScene, inScope, type ScopedRoom } from './extension.ts'

type ProfilesExtension = NonNullable<SlidingExtensions['profiles']>

/** What the client is sent beside what it has. */
interface News {
  readonly rows: readonly ProfileFieldRow[]
  /** Users who share no room with the user any more. */
  readonly left: readonly string[]
  /** The ledger position up to which changes are among it; undefined for the end of the look. */
  readonly upTo: number | undefined
}

/**
 * Profiles of users of this server (MSC4262): whole ones of users whom the answer shows for the first time, and what changed in those of all
 * who share a room with the user. Of users elsewhere their servers tell us nothing.
 */
export function profilesPart(
  scene: ExtensionScene,
  extension: ProfilesExtension,
): undefined | Promise<ExtensionPart | undefined> {
  const { from, sliding, sources } = scene.look
  const isFresh = !wasOn(from, 'profiles') || from?.scope !== sliding.scope
  const after = isFresh || from === undefined ? undefined : (from.profiles ?? from.stream.ledger)
  const people = peopleIn(scene, extension, isFresh)
  const leaving = scene.deviceChanges()
  const isQuiet = after === undefined || sources.profileChanges.isQuietSince(after)
  const isNobodyGone = !(leaving instanceof Promise) && (leaving === undefined || leaving.left.length === 0)
  if (people.length === 0 && isQuiet && isNobodyGone) return undefined
  return partOf(scene, extension, { people, after: isQuiet ? undefined : after })
}

async function partOf(
  scene: ExtensionScene,
  { name, fields }: ProfilesExtension,
  { people, after }: { readonly people: readonly string[]; readonly after: number | undefined },
): Promise<ExtensionPart | undefined> {
  const { look } = scene
  const { db } = look.sources
  const [whole, changed, leaving] = await Promise.all([
    people.length === 0 ? [] : fieldsOfUsers(db, people, fields, MAX_ANSWER_PART_BYTES),
    after === undefined ? NOTHING : changesAfter(look, after, fields),
    scene.deviceChanges(),
  ])
  const { rows, upTo } = changed
  const json = write(look, { rows: [...whole, ...rows], left: leaving?.left ?? [], upTo })
  const hasMore = upTo !== undefined
  if (json === undefined && !hasMore) return undefined
  return { name, json: json ?? new JsonBytes().text('{}'), hasNews: json !== undefined, hasMore, profilesUpTo: upTo }
}

/** The users whose profiles the client needs and was not sent on this connection. */
function peopleIn(scene: ExtensionScene, extension: ProfilesExtension, isFresh: boolean): readonly string[] {
  const { look, rooms } = scene
  const { own, by, record, from, now, connection } = look
  const since = isFresh || from === undefined ? undefined : [record.version, ...from.stream.events]
  const sent = own.slidingMembers.of(connection, NO_ROOM, since)
  const needed = new Set<string>(isFresh ? [by.userId] : [])
  for (const room of inScope(rooms, extension)) {
    for (const userId of shownIn(look, room, isFresh)) {
      if (needed.size >= MAX_PROFILES_SENT) break
      if (sent.nidOf(userId) === undefined) needed.add(userId)
    }
  }
  const isRecorded = rooms.some(({ answer }) => {
    const before = record.rooms.get(answer.nid)
    return before === undefined || !isSameRoom(before, answer.sent)
  })
  const members = new Map([...needed].map((userId) => [userId, 0]))
  own.slidingMembers.record(connection, NO_ROOM, since, members, [record.version + (isRecorded ? 1 : 0), ...now.events])
  return [...needed]
}

/** Under this number it is remembered whose profiles a connection was sent. No room has it. */
const NO_ROOM = 0

/** The users whom the client sees in a room: those whom the answer shows, and where members do not come lazily, all of ours. */
function* shownIn(look: SlidingLook, { wanted, answer }: ScopedRoom, isFresh: boolean): Iterable<string> {
  yield* answer.people
  if (!wanted.room.isJoined || !(isFresh || answer.isBegun)) return
  const { own, sources, record, from, connection } = look
  if (!wanted.wish.required.isLazy) {
    for (const { userId } of sources.registry.peek(answer.nid)?.localMembers.values() ?? []) yield userId
  } else if (from !== undefined) {
    yield* own.slidingMembers.of(connection, answer.nid, [record.version, ...from.stream.events]).userIds()
  }
}

const NOTHING: Pick<News, 'rows' | 'upTo'> = { rows: [], upTo: undefined }

/** Changes that the user may see, the oldest first. What does not fit comes with the next answer. */
async function changesAfter(
  { sources: { db }, by, now }: SlidingLook,
  after: number,
  fields: readonly string[] | undefined,
): Promise<Pick<News, 'rows' | 'upTo'>> {
  const found = await profileChangesBetween(db, after, now.ledger, MAX_PROFILE_CHANGES_SENT)
  const last = found.length < MAX_PROFILE_CHANGES_SENT ? now.ledger : found.at(-1)!.position
  const wanted = fields === undefined ? found : found.filter((change) => fields.includes(change.name))
  const others = new Set(wanted.map(({ user_nid }) => user_nid))
  others.delete(by.userNid)
  const seen = others.size === 0 ? others : await whoIsInRoomsWith(db, by.userNid, [...others])
  const visible = wanted.filter(({ user_nid }) => user_nid === by.userNid || seen.has(user_nid))
  const rows = visible.length === 0 ? [] : await changedFields(db, visible, MAX_ANSWER_PART_BYTES)
  const [end, next] = [rows.at(-1), visible[rows.length]]
  if (end === undefined || next === undefined) return { rows, upTo: last < now.ledger ? last : undefined }
  // All fields of a position go together: they are fewer bytes than an answer holds.
  const upTo = next.position === end.position ? end.position - 1 : end.position
  return { rows: rows.filter(({ position }) => position <= upTo), upTo }
}

/** Undefined if there is nothing to tell. */
function write({ ignored }: SlidingLook, { rows, left }: News): JsonBytes | undefined {
  const users = new Map<string, Map<string, string | null> | null>()
  for (const { user_id, name, value } of rows) {
    if (ignored?.has(user_id)) continue
    const fields = users.get(user_id) ?? new Map<string, string | null>()
    users.set(user_id, fields.set(name, value))
  }
  for (const userId of left) users.set(userId, null)
  if (users.size === 0) return undefined
  const json = new JsonBytes().text('{"users":{')
  let isFirst = true
  for (const [userId, fields] of users) {
    json.key(userId, isFirst).text(fields === null ? 'null' : writeFields([...fields]))
    isFirst = false
  }
  return json.text('}}')
}

/** Values are JSON already. */
function writeFields(fields: readonly (readonly [name: string, value: string | null])[]): string {
  const updated = fields.flatMap(([name, value]) => (value === null ? [] : [`${JSON.stringify(name)}:${value}`]))
  const removed = fields.flatMap(([name, value]) => (value === null ? [name] : []))
  const parts = [
    ...(updated.length > 0 ? [`"updated":{${updated.join()}}`] : []),
    ...(removed.length > 0 ? [`"removed":${JSON.stringify(removed)}`] : []),
  ]
  return `{${parts.join()}}`
}
