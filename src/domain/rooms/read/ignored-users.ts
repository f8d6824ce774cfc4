import type { ByteBudget } from '../../../core/byte-budget.ts'
import { redact } from '../../../core/event/redact.ts'
import { ignoredIn } from '../../../core/ignored-users.ts'
import { encodeCanonical } from '../../../core/signing/canonical-json.ts'
import { findIgnoredUserList, listIgnoringUsers } from '../../../store/accounts/ignored-user-lists.ts'
import type { Reader } from '../../../store/db/db.ts'
import type { Room } from '../room/room.ts'
import { RoomEvent } from '../room/room-event.ts'

/** The ids of users whom somebody ignores. */
export type Ignored = ReadonlySet<string>

/**
 * Whom each local user ignores (client-server API, "Ignoring users"). Users who ignore nobody cost nothing: who ignores anybody is in
 * memory, and the lists are within the memory budget of rooms.
 */
export interface IgnoredUsers {
  /** Undefined, at once, for a user who ignores nobody. */
  of(userNid: number): Ignored | undefined | Promise<Ignored | undefined>
  /** Whether a user may ignore somebody. */
  ignores(userNid: number): boolean
  /** The list was written or deleted. Takes effect at once. */
  changed(userNid: number): void
  /** Calls `listener` with the number of a user whose list was written. */
  onChange(listener: (userNid: number) => void): void
  /** Commits were missed: who ignores anybody is read again. */
  readAgain(): Promise<void>
}

/** Bytes of a set, and of one id in it. */
const SET_BYTES = 300
const ENTRY_BYTES = 120

export async function openIgnoredUsers({ db, budget }: { db: Reader; budget: ByteBudget }): Promise<IgnoredUsers> {
  const lists = budget.part<number, Ignored>({ bytesOf: ({ size }) => SET_BYTES + ENTRY_BYTES * size })
  const ignorers = new Set(await listIgnoringUsers(db))
  const listeners: ((userNid: number) => void)[] = []
  let version = 0

  async function read(userNid: number): Promise<Ignored | undefined> {
    const before = version
    const list = await findIgnoredUserList(db, userNid)
    // A list was written meanwhile: what was read may be older.
    if (before !== version) return read(userNid)
    const ignored = list && ignoredIn(list.content, list.userId)
    if (ignored === undefined) ignorers.delete(userNid)
    else lists.set(userNid, ignored)
    return ignored
  }

  return {
    of: (userNid) => (ignorers.has(userNid) ? (lists.get(userNid) ?? read(userNid)) : undefined),
    ignores: (userNid) => ignorers.has(userNid),
    changed(userNid) {
      version++
      lists.delete(userNid)
      ignorers.add(userNid)
      for (const listener of listeners) listener(userNid)
    },
    onChange: (listener) => void listeners.push(listener),
    async readAgain() {
      version++
      lists.clear()
      for (const userNid of await listIgnoringUsers(db)) ignorers.add(userNid)
      version++
      lists.clear()
      for (const userNid of ignorers) for (const listener of listeners) listener(userNid)
    },
  }
}

/** The lists as a node that stands by sees them: each is read each time. */
export function lookUpIgnoredUsers({ db }: { readonly db: Reader }): Pick<IgnoredUsers, 'of'> {
  return {
    async of(userNid) {
      const list = await findIgnoredUserList(db, userNid)
      return list && ignoredIn(list.content, list.userId)
    },
  }
}

/** Whether a reader is not shown an event because they ignore its sender. State is shown whoever set it. */
export function isIgnored(event: RoomEvent, ignored: Ignored): boolean {
  return !event.isState && !event.isCopy && ignored.has(event.sender)
}

/** A copy of an ignored event as if it was redacted, where a reader needs to know that there is one (client-server API, "Threading"). */
export function withoutContent({ version }: Room, event: RoomEvent): RoomEvent {
  const json = encodeCanonical(redact(version, event.pdu))
  return new RoomEvent({ ...event.toRow(), json }, undefined, true)
}
