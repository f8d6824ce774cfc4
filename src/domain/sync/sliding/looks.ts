import type { Clock } from '../../clock.ts'
import type { Ignored } from '../../rooms/read/ignored-users.ts'
import { allOf } from '../all-of.ts'
import type { SyncSources } from '../sources.ts'
import type { StreamPosition } from '../token.ts'
import { classicRequest, type SlidingLook } from './look.ts'
import type { SlidingSources } from './sources.ts'
import type { Turn } from './turns.ts'

/** Begins a look for a request, up to a position. Synchronous where what it needs of the user is in memory. */
export function createLooks({
  sources,
  own,
  clock,
}: {
  readonly sources: SyncSources
  readonly own: SlidingSources
  readonly clock: Clock
}): (turn: Turn, now: StreamPosition) => SlidingLook | Promise<SlidingLook> {
  function lookWith(
    { by, request, from, record, name }: Turn,
    now: StreamPosition,
    ignored: Ignored | undefined,
    direct: ReadonlySet<string>,
  ): SlidingLook {
    return {
      sources,
      own,
      by,
      request: classicRequest(request),
      since: from?.stream,
      now,
      ignored,
      timeMs: clock.now(),
      sliding: request.asked,
      from,
      record,
      direct,
      connection: `${name} ${record.lineage}`,
    }
  }

  return (turn, now) => {
    const { userNid } = turn.by
    const reading = allOf([sources.ignoredUsers.of(userNid), own.directRooms(userNid, now.ledger)])
    if (reading instanceof Promise) return reading.then(([ignored, direct]) => lookWith(turn, now, ignored, direct))
    return lookWith(turn, now, reading[0], reading[1])
  }
}
