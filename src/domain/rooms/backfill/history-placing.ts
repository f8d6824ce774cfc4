import type { ServerName } from '../../../core/ids.ts'
import { isNotifiable } from '../../../core/push/default-rules.ts'
import type { StateMap } from '../../../core/state/trie.ts'
import type { Database } from '../../../store/db/db.ts'
import { Intake, type IntakeParts } from '../receive/intake.ts'
import type { Placed, Placing } from '../receive/placing.ts'
import { stateLike } from '../receive/remote-state.ts'
import type { Branches } from '../room/branches.ts'
import type { Checkpoints } from '../room/checkpoints.ts'
import { judgingIds, prevIdsOf } from '../room/event-references.ts'
import type { Room } from '../room/room.ts'
import type { Past } from '../room/surroundings.ts'
import { namedThread } from '../room/threads.ts'
import type { Gap, Piece } from './history-piece.ts'

export interface HistoryPlacingParts extends IntakeParts {
  readonly db: Database
  readonly placing: Placing
  readonly branches: Branches
  readonly checkpoints: Pick<Checkpoints, 'considerPast'>
}

/**
 * Puts a piece of history into its gap, oldest event first. Each event is authorised by its auth events and by the state before it.
 * Resolves when it is durable, with the number of accepted events. Sends no query; other writers of the room wait.
 */
export async function placePiece(
  parts: HistoryPlacingParts,
  room: Room,
  of: ServerName,
  gap: Gap,
  piece: Piece,
): Promise<number> {
  const { outliers, branches } = parts
  const { holder } = gap
  const lowest = gap.from - piece.order.length
  // The gap has no more free positions: what does not fit stays missing.
  if (lowest <= gap.below) return 0
  await outliers.take(room, piece.around)
  const intake = new Intake(parts, room, of)
  await intake.lookUp(piece.order)
  const past = {
    near: { point: holder.pointBefore, state: await branches.stateAt(room, holder.pointBefore) },
    notifiable: holder.notifiable - (isNotifiable(holder.pdu) && namedThread(holder) === undefined ? 1 : 0),
    holderNid: holder.nid,
  }
  const placed: Placed[] = []
  for (const [index, read] of piece.order.entries()) {
    const one = await placeOne(parts, intake, piece, read, { ...past, pos: lowest + index })
    if (one === 'moved') break
    if (one) placed.push(one)
  }
  const outcomes = await Promise.allSettled(placed.map(({ outcome }) => outcome))
  const committed = placed.filter((_, index) => {
    const outcome = outcomes[index]!
    return outcome.status === 'fulfilled' && outcome.value.kind === 'committed'
  })
  const oldest = committed[0]?.event.pointBefore
  if (oldest && !piece.isPlain) {
    await parts.checkpoints.considerPast(room, oldest, await branches.stateAt(room, oldest))
  }
  return committed.length
}

async function placeOne(
  parts: HistoryPlacingParts,
  intake: Intake,
  piece: Piece,
  read: Piece['order'][number],
  past: Past,
): Promise<Placed | 'moved' | undefined> {
  const { room } = intake
  const { pdu, eventId } = read
  const known = await intake.known(eventId)
  if (known && (known.roomNid !== room.nid || known.hasPlace)) return undefined
  const isOtherCreate =
    pdu.type === 'm.room.create' && known?.nid !== room.stateNid(room.pending.state, 'm.room.create', '')
  if (isOtherCreate) return undefined
  const claimed = await claimedBefore(parts.db, room, piece, read, past.near.state)
  const needed = [...judgingIds(room, read), ...(claimed ? [] : prevIdsOf(pdu))]
  const found = await parts.outliers.find(room, needed)
  if (!needed.every((id) => found.has(id)) || (!claimed && !prevIdsOf(pdu).every((id) => found.get(id)?.hasPlace)))
    return undefined
  const around = await intake.around(read, known, claimed)
  if (typeof around === 'string') return undefined
  const whole = { ...around, cited: found, isOwnJoin: false, isOffered: false, past }
  const placed = await parts.placing.place(room, read, whole)
  if (placed === 'moved') return placed
  if (!('event' in placed)) return undefined
  intake.placed(placed.event, whole)
  return placed
}

/** The claimed state before an event of a piece, where its previous events do not determine it. */
async function claimedBefore(
  db: Database,
  room: Room,
  { isPlain, claimed }: Piece,
  { eventId }: Piece['order'][number],
  near: StateMap,
): Promise<StateMap | undefined> {
  if (isPlain) return near
  const ids = claimed.get(eventId)
  return ids && stateLike(db, room, near, ids)
}
