import { readPdu } from '../../core/event/read.ts'
import type { RoomId, ServerName } from '../../core/ids.ts'
import { type ReadJson, readExactJson } from '../../core/json.ts'
import type { KeyedQueue } from '../../core/keyed-queue.ts'
import type { Database } from '../../store/db/db.ts'
import { getHeld, insertHeld, removeHeld } from '../../store/rooms/partial-state-rooms.ts'
import { HELD_CAPS, MAX_PDUS_PER_TRANSACTION } from '../limits.ts'
import { isRefusal } from '../rooms/receive/pdu-checks.ts'
import type { Held, PartialState } from '../rooms/room/partial-state.ts'
import type { PartialStateRooms } from '../rooms/room/partial-state-rooms.ts'
import type { Room } from '../rooms/room/room.ts'
import type { HeldReceipts } from './held-receipts.ts'

/** What the answer to a transaction says about one of its events. */
export interface Outcome {
  readonly eventId: string | undefined
  readonly error: string | undefined
}

/** Events of partial-state rooms. They are held until the resync is done and they can be checked. */
export interface HeldEvents {
  /**
   * Stores what a server sent. Resolves once it is durable, with an outcome for each event; undefined if events need not be held any
   * more. Events above the limit are refused, and will be fetched when later events refer to them.
   */
  hold(
    origin: ServerName,
    room: Room,
    partialState: PartialState,
    pdus: readonly ReadJson[],
  ): Promise<Outcome[] | undefined>
  /** Processes all held events in the order in which they came, then what arrived meanwhile, and stops holding. */
  takeAll(partialState: PartialState): Promise<void>
}

const NOTHING: Held = { count: 0, bytes: 0 }
const plus = (one: Held, other: Held): Held => ({ count: one.count + other.count, bytes: one.bytes + other.bytes })
const isWithin = ({ count, bytes }: Held, cap: Held): boolean => count <= cap.count && bytes <= cap.bytes

export function createHeldEvents(parts: {
  readonly db: Database
  readonly partialStateRooms: Pick<PartialStateRooms, 'end'>
  /** Runs holding and the end of holding one after another for a room, so that no event is held that nobody processes. */
  readonly turns: KeyedQueue<number>
  readonly receipts: Pick<HeldReceipts, 'takeSome'>
  take(origin: ServerName, roomId: RoomId, pdus: readonly ReadJson[]): Promise<unknown>
  readonly caps?: { readonly ofRoom: Held; readonly ofServer: Held }
}): HeldEvents {
  const { db, turns, receipts, caps = HELD_CAPS } = parts

  function mayHold({ held }: PartialState, origin: ServerName, more: Held): boolean {
    const all = [...held.values()].reduce(plus, more)
    return isWithin(all, caps.ofRoom) && isWithin(plus(held.get(origin) ?? NOTHING, more), caps.ofServer)
  }

  async function keep(
    origin: ServerName,
    room: Room,
    partialState: PartialState,
    pdus: readonly ReadJson[],
  ): Promise<Outcome[]> {
    const reads = pdus.map(({ value, offence }) => readPdu(room.version, value, offence))
    const jsons = reads.flatMap((read) => (isRefusal(read) ? [] : [read.json]))
    const more = { count: jsons.length, bytes: jsons.reduce((sum, json) => sum + Buffer.byteLength(json), 0) }
    const isKept = mayHold(partialState, origin, more)
    if (isKept && jsons.length > 0) {
      await db.tx((tx) => insertHeld(tx, room.nid, origin, jsons))
      partialState.held.set(origin, plus(partialState.held.get(origin) ?? NOTHING, more))
    }
    return reads.map((read) => {
      if (isRefusal(read)) return { eventId: undefined, error: read.reason }
      return { eventId: read.eventId, error: isKept ? undefined : 'too much waits for the members of this room' }
    })
  }

  async function takeSome(partialState: PartialState): Promise<boolean> {
    const rows = await getHeld(db, partialState.roomNid, MAX_PDUS_PER_TRANSACTION)
    const [first] = rows
    if (first === undefined) return false
    const next = rows.findIndex(({ origin }) => origin !== first.origin)
    const some = next === -1 ? rows : rows.slice(0, next)
    await parts.take(
      first.origin,
      partialState.roomId,
      some.map(({ json }) => readExactJson(json)),
    )
    await db.tx((tx) =>
      removeHeld(
        tx,
        some.map(({ held_nid }) => held_nid),
      ),
    )
    return true
  }

  return {
    hold: (origin, room, partialState, pdus) =>
      turns.run(room.nid, async () => (partialState.holdsEvents ? keep(origin, room, partialState, pdus) : undefined)),
    async takeAll(partialState) {
      while (partialState.holdsEvents) {
        while (partialState.holdsEvents && (await takeSome(partialState))) {
          // Repeats while events are left.
        }
        if (partialState.holdsEvents && (await receipts.takeSome(partialState))) continue
        await turns.run(partialState.roomNid, async () => {
          const isDone = (await getHeld(db, partialState.roomNid, 1)).length === 0
          if (isDone && !(await receipts.takeSome(partialState))) parts.partialStateRooms.end(partialState)
        })
      }
    },
  }
}
