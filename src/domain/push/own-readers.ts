import type { ByteBudget } from '../../core/byte-budget.ts'
import type { UserId } from '../../core/ids.ts'
import type { CompiledRules, RoomRules } from '../../core/push/compiled-rules.ts'
import type { LocalMember, Room } from '../rooms/room/room.ts'
import type { PushRules } from './rules.ts'

/** A local member of a room who has rules of their own, or ignores somebody. */
export interface OwnReader {
  readonly member: LocalMember
  /** The members whose rules do the same in this room. Undefined if the rules there are as the default ones, or no event notifies. */
  readonly group: RuleGroup | undefined
  /** Whether the rules in this room are not the default ones. */
  readonly isOwn: boolean
  readonly ignored: ReadonlySet<string> | undefined
  /** Whether messages count for the member at all. */
  readonly countsMessages: boolean
}

/** Members of a room whose rules do the same there: each event is tried once for all of them. */
export interface RuleGroup {
  readonly rules: RoomRules
  readonly readers: ReadonlyMap<number, OwnReader>
}

/** The local members of a room whose rules must be asked. It changes as they do: use it at once. */
export interface OwnReaders {
  readonly byNid: ReadonlyMap<number, OwnReader>
  readonly groups: Iterable<RuleGroup>
  readonly hasGroups: boolean
  /** The readers who ignore a sender. */
  deafTo(sender: UserId): Deaf
}

/** The numbers of a room's members who ignore somebody. It is never changed. */
export interface Deaf {
  readonly all: ReadonlySet<number>
  /** Those of them for whom messages count. */
  readonly counting: ReadonlySet<number>
}

export interface OwnReadersOf {
  /** Of a room; or the members whose rules must be loaded first. */
  of(room: Room): OwnReaders | readonly number[]
  /** Reads rules into memory. */
  load(userNids: readonly number[]): Promise<void>
}

const READERS_BYTES = 1_150
const READER_BYTES = 300
const GROUP_BYTES = 1_000
/** Of a member who was looked at and is none of them. */
const DEFAULT_BYTES = 40
/** Bytes of rules for each character of their text. The budget may drop them elsewhere while they are used here. */
const RULE_CHARACTER_BYTES = 12
/** The same for an id in a list of ignored users. */
const IGNORED_BYTES = 120
/** Senders of whom is known who ignores them, and bytes of each. */
const MAX_SENDERS = 1_000
const SENDER_BYTES = 200

const NOBODY: ReadonlySet<number> = new Set()
const NONE: Deaf = { all: NOBODY, counting: NOBODY }

/** Keeps the readers of rooms: a change of rules or of a membership costs what it changes. */
export function createOwnReaders({
  pushRules,
  budget,
}: {
  readonly pushRules: Pick<PushRules, 'peek' | 'of' | 'load' | 'hasOwn' | 'version' | 'changedSince'>
  readonly budget: ByteBudget
}): OwnReadersOf {
  const rooms = budget.part<number, RoomReaders>({ bytesOf: (readers) => readers.bytes })

  // What was read for the next try: it must not depend on what the budget keeps.
  let fresh = { version: -1, rules: new Map<number, CompiledRules>() }

  function rulesOf(userNid: number): CompiledRules | undefined {
    return pushRules.peek(userNid) ?? (fresh.version === pushRules.version() ? fresh.rules.get(userNid) : undefined)
  }

  return {
    of(room) {
      const version = pushRules.version()
      const members = room.mentionables()
      let readers = rooms.get(room.nid)
      if (readers?.members === members && readers.version === version) return readers
      const changed = readers && pushRules.changedSince(readers.version)
      if (!readers || !changed) readers = new RoomReaders()
      for (const userNid of changed ?? []) readers.remove(userNid)
      if (readers.members !== members) readers.keepOnly(room.localMembers)
      const missing: number[] = []
      const look = (member: LocalMember | undefined) => {
        if (!member || readers.knows(member.userNid) || !pushRules.hasOwn(member.userNid)) return
        const rules = rulesOf(member.userNid)
        if (rules) readers.add(member, rules.inRoom(room.id))
        else missing.push(member.userNid)
      }
      if (readers.members === members) for (const userNid of changed ?? []) look(room.localMembers.get(userNid))
      else for (const member of room.localMembers.values()) look(member)
      // Its version stays, so that the next try looks at the same members.
      if (missing.length === 0) {
        readers.version = version
        readers.members = members
        if (fresh.rules.size > 0) for (const userNid of room.localMembers.keys()) fresh.rules.delete(userNid)
      }
      rooms.set(room.nid, readers)
      return missing.length > 0 ? missing : readers
    },

    async load(userNids) {
      await pushRules.load(userNids)
      const version = pushRules.version()
      const rules = await Promise.all(userNids.map(async (nid) => [nid, await pushRules.of(nid)] as const))
      if (fresh.version !== version) fresh = { version, rules: new Map() }
      if (version === pushRules.version()) for (const [nid, compiled] of rules) fresh.rules.set(nid, compiled)
    },
  }
}

interface GrowingGroup extends RuleGroup {
  readonly readers: Map<number, OwnReader>
}

class RoomReaders implements OwnReaders {
  /** What they were made from. */
  members: object | undefined
  version = -1
  bytes = READERS_BYTES
  readonly byNid = new Map<number, OwnReader>()
  /** Members with own rules that are as the default ones in this room. */
  readonly #defaults = new Set<number>()
  readonly #groups = new Map<string, GrowingGroup>()
  readonly #ignorers = new Map<number, OwnReader>()
  readonly #deafTo = new Map<string, Deaf>()

  get groups(): Iterable<RuleGroup> {
    return this.#groups.values()
  }

  get hasGroups(): boolean {
    return this.#groups.size > 0
  }

  knows(userNid: number): boolean {
    return this.byNid.has(userNid) || this.#defaults.has(userNid)
  }

  deafTo(sender: UserId): Deaf {
    if (this.#ignorers.size === 0) return NONE
    const known = this.#deafTo.get(sender)
    if (known) return known
    if (this.#deafTo.size >= MAX_SENDERS) this.#forgetSenders()
    const found = deafAmong(this.#ignorers, sender)
    this.#deafTo.set(sender, found)
    this.bytes += senderBytes(found)
    return found
  }

  add(member: LocalMember, rules: RoomRules): void {
    const { ignored, countsMessages, standing } = rules
    if (standing === 'default' && !ignored) {
      this.#defaults.add(member.userNid)
      this.bytes += DEFAULT_BYTES
      return
    }
    const group = standing === 'own' ? this.#groupOf(rules) : undefined
    const reader: OwnReader = { member, group, isOwn: standing !== 'default', ignored, countsMessages }
    this.byNid.set(member.userNid, reader)
    group?.readers.set(member.userNid, reader)
    this.bytes += readerBytes(reader)
    if (!ignored) return
    this.#ignorers.set(member.userNid, reader)
    this.#forgetSenders()
  }

  remove(userNid: number): void {
    if (this.#defaults.delete(userNid)) this.bytes -= DEFAULT_BYTES
    const reader = this.byNid.get(userNid)
    if (!reader) return
    this.byNid.delete(userNid)
    this.bytes -= readerBytes(reader)
    if (reader.ignored) {
      this.#ignorers.delete(userNid)
      this.#forgetSenders()
    }
    const { group } = reader
    if (!group) return
    const { key } = group.rules
    const growing = this.#groups.get(key)!
    growing.readers.delete(userNid)
    if (growing.readers.size > 0) return
    this.#groups.delete(key)
    this.bytes -= groupBytes(group)
  }

  /** Removes who is no member any more, and who became another: by a new name, for example. */
  keepOnly(members: ReadonlyMap<number, LocalMember>): void {
    for (const [userNid, { member }] of this.byNid) if (members.get(userNid) !== member) this.remove(userNid)
    for (const userNid of this.#defaults) if (!members.has(userNid)) this.remove(userNid)
  }

  #groupOf(rules: RoomRules): GrowingGroup {
    const known = this.#groups.get(rules.key)
    if (known) return known
    const group = { rules, readers: new Map<number, OwnReader>() }
    this.#groups.set(rules.key, group)
    this.bytes += groupBytes(group)
    return group
  }

  #forgetSenders(): void {
    for (const found of this.#deafTo.values()) this.bytes -= senderBytes(found)
    this.#deafTo.clear()
  }
}

function deafAmong(ignorers: ReadonlyMap<number, OwnReader>, sender: UserId): Deaf {
  const all = new Set<number>()
  const counting = new Set<number>()
  for (const [userNid, { ignored, countsMessages }] of ignorers) {
    if (!ignored!.has(sender)) continue
    all.add(userNid)
    if (countsMessages) counting.add(userNid)
  }
  if (all.size === 0) return NONE
  return { all, counting: counting.size === all.size ? all : counting }
}

const readerBytes = ({ ignored }: OwnReader): number => READER_BYTES + (ignored?.size ?? 0) * IGNORED_BYTES
const groupBytes = ({ rules }: RuleGroup): number => GROUP_BYTES + rules.length * RULE_CHARACTER_BYTES
const senderBytes = ({ all, counting }: Deaf): number =>
  SENDER_BYTES + (all.size + (counting === all ? 0 : counting.size)) * 40
