import type { Logger } from 'pino'
import type { Reader } from '../../../store/db/db.ts'
import { writeEventBatch } from '../../../store/events/event-batch.ts'
import type {
  ChainWrite,
  EarlyRedactionWrite,
  EventBatch,
  EventWrite,
  GapFilled,
  GapWrite,
  HighlightWrite,
  KeyWrite,
  RedactionWrite,
  ResyncWrite,
  TxnWrite,
} from '../../../store/events/event-writes.ts'
import { lastPosition } from '../../../store/events/events.ts'
import type { Metrics } from '../../metrics.ts'
import type { Head, StateChange } from '../room/head.ts'
import type { MembershipChange, Room } from '../room/room.ts'
import type { RoomEvent } from '../room/room-event.ts'

/** Events of one room that are written together or not at all, and what else their commit writes. */
export interface Unit {
  readonly room: Room
  readonly before: Head
  readonly after: Head
  /** New to us. */
  readonly events: readonly RoomEvent[]
  /** Outliers that take their place in the room. */
  readonly promoted: readonly RoomEvent[]
  readonly keys: readonly KeyWrite[]
  /** In the order of their numbers within a chain. */
  readonly changes: readonly StateChange[]
  readonly chains: readonly ChainWrite[]
  /** With it the room's members are all there. */
  readonly resynced: readonly ResyncWrite[]
  readonly gaps: readonly GapWrite[]
  readonly filled: readonly GapFilled[]
  readonly earlyRedactions: readonly EarlyRedactionWrite[]
  readonly members: readonly MembershipChange[]
  readonly highlights: readonly HighlightWrite[]
  readonly txn: TxnWrite | undefined
  readonly redactions: readonly (RedactionWrite & { readonly event: RoomEvent })[]
}

/** What a unit writes of the event graph that plain growth at the tip does not need. */
export const NO_GRAPH = { promoted: [], chains: [], resynced: [], gaps: [], filled: [], earlyRedactions: [] } as const

/** State keys that a unit of this room has to write with it: it is the next to be enqueued. */
export function keyWrites(room: Room): KeyWrite[] {
  return room.keys
    .takeUnwritten()
    .map(({ key_id, type, state_key }) => ({ roomNid: room.nid, keyId: key_id, type, stateKey: state_key }))
}

/** The events of a unit that its commit brings into the stream, the new and the promoted. */
export function streamed(unit: Pick<Unit, 'events' | 'promoted'>): readonly RoomEvent[] {
  return unit.promoted.length === 0 ? unit.events : [...unit.events, ...unit.promoted]
}

/**
 * `moved`: another write came first; load the room again and build anew.
 * `repeated`: the transaction id was used before, and that event is its answer.
 */
export type Outcome = { kind: 'committed' } | { kind: 'moved' } | { kind: 'repeated'; eventId: string }

/** The one writer of events of this process: a queue that is drained once per tick into one commit. */
export interface Persister {
  /** Takes the next number. An event's position in the stream is the last number that was taken when it is enqueued. */
  takeNid(): number
  /** The number taken last. */
  lastNid(): number
  enqueue(unit: Unit): Promise<Outcome>
  /** The newest committed stream position. */
  position(): number
  /** Resolves when all that is queued now has been written or refused. */
  idle(): Promise<void>
}

export interface PersisterParts {
  readonly connection: Reader
  readonly writer: number
  readonly log: Logger
  readonly metrics: Pick<Metrics, 'observeCommit'>
  /** Told of each committed unit, in order, before its caller is. */
  committed(unit: Unit): void
  /** Told once per batch, when all its units are in place. */
  published(): void
  /** Told of a room whose write was refused. */
  refused(room: Room): void
  /** Told that events up to a position turned out to be committed though their commit was never answered. */
  missed(position: number): void
}

interface Waiting {
  readonly unit: Unit
  readonly resolve: (outcome: Outcome) => void
  readonly reject: (error: unknown) => void
}

const MAX_EVENTS_PER_BATCH = 512
const ASK_AGAIN_MS = 1_000

export async function openPersister(parts: PersisterParts): Promise<Persister> {
  let last = await lastPosition(parts.connection, parts.writer)
  let published = last
  let committedUpTo = last
  let queue: Waiting[] = []
  /** Answers of the current batch, given once its position is published: a caller that reads at once finds its event. */
  let answers: (() => void)[] = []
  let running: Promise<void> | undefined
  /** The answer to what was queued last. */
  let newest: Promise<Outcome> | undefined
  /** The last commit was not answered: it may have happened. */
  let isInDoubt = false

  /**
   * What fits into one commit: whole units, in order. Units on a dead room are sent back to be built again, and so are those
   * on a room that was loaded a second time while the first still has units here: a batch moves a head once.
   */
  function take(): Waiting[] {
    const taken: Waiting[] = []
    const rooms = new Map<number, Room>()
    let events = 0
    let index = 0
    for (; index < queue.length && events < MAX_EVENTS_PER_BATCH; index++) {
      const waiting = queue[index]!
      const { room } = waiting.unit
      const first = rooms.get(room.nid) ?? room
      if (first !== room) parts.refused(room)
      rooms.set(room.nid, first)
      if (room.alive) {
        taken.push(waiting)
        events += waiting.unit.events.length
      } else answers.push(() => waiting.resolve({ kind: 'moved' }))
    }
    queue = queue.slice(index)
    return taken
  }

  /** Finds out what became of a commit that was not answered. Asked on the connection that writes, which waits for an earlier one's end. */
  async function resolveDoubt(): Promise<void> {
    const position = await lastPosition(parts.connection, parts.writer)
    isInDoubt = false
    if (position <= committedUpTo) return
    committedUpTo = position
    parts.missed(position)
  }

  /** Nobody may write again for long: readers are not to wait for that. */
  function resolveDoubtSoon(): void {
    setTimeout(() => {
      if (!isInDoubt) return
      if (running) resolveDoubtSoon()
      else running = resolveDoubt().then(publish, resolveDoubtSoon).then(drain)
    }, ASK_AGAIN_MS).unref()
  }

  async function commit(group: readonly Waiting[]): Promise<void> {
    try {
      if (isInDoubt) await resolveDoubt()
      const begun = performance.now()
      const batch = toBatch(group)
      const { advanced, repeated } = await writeEventBatch(parts.connection, batch)
      parts.metrics.observeCommit(batch.events.length, (performance.now() - begun) / 1000)
      const earlier = new Map(repeated.map(({ tokenNid, hash, eventId }) => [`${tokenNid} ${hash}`, eventId]))
      for (const waiting of group) settle(waiting, advanced, earlier)
    } catch (error) {
      await recover(group, error)
    }
  }

  function settle(
    { unit, resolve }: Waiting,
    advanced: ReadonlySet<number>,
    earlier: ReadonlyMap<string, string>,
  ): void {
    if (advanced.has(unit.room.nid)) {
      for (const event of streamed(unit)) committedUpTo = Math.max(committedUpTo, event.streamPos)
      parts.committed(unit)
      answers.push(() => resolve({ kind: 'committed' }))
      return
    }
    parts.refused(unit.room)
    const eventId = unit.txn && earlier.get(`${unit.txn.tokenNid} ${unit.txn.hash}`)
    answers.push(() => resolve(eventId === undefined ? { kind: 'moved' } : { kind: 'repeated', eventId }))
  }

  /** A failed batch is tried again room by room, so that one that cannot be written spoils no other. */
  async function recover(group: readonly Waiting[], error: unknown): Promise<void> {
    const rooms = new Set(group.map(({ unit }) => unit.room))
    const isOutage = (error as { status?: number }).status === 503
    if (rooms.size > 1 && !isOutage) {
      for (const room of rooms) await commit(group.filter(({ unit }) => unit.room === room))
      return
    }
    if (isOutage) {
      if (!isInDoubt) resolveDoubtSoon()
      isInDoubt = true
    } else parts.log.error({ err: error }, 'a batch of events could not be written')
    for (const { unit, reject } of group) {
      parts.refused(unit.room)
      answers.push(() => reject(error))
    }
  }

  function publish(): void {
    if (committedUpTo <= published) return
    published = committedUpTo
    parts.published()
  }

  async function drain(): Promise<void> {
    while (queue.length > 0) {
      const group = take()
      if (group.length > 0) await commit(group)
      const given = answers
      answers = []
      publish()
      for (const answer of given) answer()
    }
    running = undefined
  }

  return {
    takeNid: () => ++last,
    lastNid: () => last,
    position: () => published,
    // Units are answered in order, so the newest comes last. The whole queue may never be empty while others write.
    async idle() {
      await newest?.catch(() => undefined)
    },
    enqueue(unit) {
      newest = new Promise((resolve, reject) => {
        queue.push({ unit, resolve, reject })
        running ??= new Promise<void>((start) => setImmediate(start)).then(drain)
      })
      return newest
    },
  }
}

/** One head per room: from where its first unit began to where its last one ends. Later members win, and the first redaction. */
function toBatch(group: readonly Waiting[]): EventBatch {
  const units = group.map(({ unit }) => unit)
  const first = new Map<Room, Head>()
  const final = new Map<Room, Head>()
  const members = new Map<string, MembershipChange & { roomNid: number }>()
  for (const unit of units) {
    if (!first.has(unit.room)) first.set(unit.room, unit.before)
    final.set(unit.room, unit.after)
    for (const change of unit.members)
      members.set(`${unit.room.nid} ${change.userNid}`, { ...change, roomNid: unit.room.nid })
  }
  return {
    heads: [...final].map(([room, head]) => ({
      roomNid: room.nid,
      roomId: room.id,
      roomVersion: room.version.id,
      expected: first.get(room)!.version,
      version: head.version,
      extremities: head.extremities.map(({ nid }) => nid),
      merged: head.merged,
      depth: head.depth,
      lastPos: head.pos,
      lastNid: head.nid,
      notifiable: head.notifiable,
      stateChain: head.chain,
      stateSeq: head.seq,
    })),
    ...eventWrites(units),
    ...gapWrites(units),
    keys: units.flatMap((unit) => unit.keys),
    changes: units.flatMap(({ room, changes }) => changes.map((change) => ({ roomNid: room.nid, ...change }))),
    chains: units.flatMap((unit) => unit.chains),
    resynced: units.flatMap((unit) => unit.resynced),
    earlyRedactions: units.flatMap((unit) => unit.earlyRedactions),
    members: [...members.values()].map(({ after, ...member }) => ({ ...member, membership: after })),
    highlights: units.flatMap((unit) => unit.highlights),
    txns: units.flatMap((unit) => (unit.txn ? [unit.txn] : [])),
  }
}

/** What the batch itself writes it cannot update a second time: what happens to an event goes into its row. */
function eventWrites(units: readonly Unit[]): Pick<EventBatch, 'events' | 'promoted' | 'redactions'> {
  const inserted = new Map<number, EventWrite>()
  const promoted = new Map<number, EventWrite>()
  const redactions = new Map<number, RedactionWrite>()
  for (const unit of units) {
    for (const event of unit.events) inserted.set(event.nid, event.toRow())
    for (const event of unit.promoted) (inserted.has(event.nid) ? inserted : promoted).set(event.nid, event.toRow())
    for (const write of unit.redactions) if (!redactions.has(write.targetNid)) redactions.set(write.targetNid, write)
  }
  for (const [targetNid, { redactionNid, json, authContent }] of redactions) {
    const rows = inserted.has(targetNid) ? inserted : promoted
    const row = rows.get(targetNid)
    if (row === undefined) continue
    // A redaction that came before its target was first.
    if (row.redacted_by === null)
      rows.set(targetNid, { ...row, json, redacted_by: redactionNid, auth_content: authContent })
    redactions.delete(targetNid)
  }
  return { events: [...inserted.values()], promoted: [...promoted.values()], redactions: [...redactions.values()] }
}

/** A gap that the batch opens and fills is none. */
function gapWrites(units: readonly Unit[]): Pick<EventBatch, 'gaps' | 'filled'> {
  const gaps = new Map<string, GapWrite>()
  const filled: GapFilled[] = []
  for (const unit of units) {
    for (const gap of unit.filled) {
      filled.push(gap)
      for (const [key, { missingId, roomNid }] of gaps) {
        if (missingId === gap.missingId && roomNid === gap.roomNid) gaps.delete(key)
      }
    }
    for (const gap of unit.gaps) gaps.set(`${gap.eventNid} ${gap.missingId}`, gap)
  }
  return { gaps: [...gaps.values()], filled }
}
