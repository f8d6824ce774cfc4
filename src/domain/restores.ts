import { getEpochs } from '../store/backup/restore-epochs.ts'
import type { Reader } from '../store/db/db.ts'

/** A place in the streams of events and of the ledger. */
interface Place {
  readonly events: readonly number[]
  readonly ledger: number
}

/**
 * How this database came back from backups. Each restore begins an epoch, which is named in the sync tokens that are given out in it. What
 * was given out between a backup and its restore is lost.
 */
export interface Restores {
  /** The epoch of now; empty if the database was never restored. */
  readonly epoch: string
  /** When it was restored last, in ms; undefined if never. */
  readonly restoredAt: number | undefined
  /**
   * The place to which a reader fell back who had read up to a place in an epoch: what they have from after it is not so any more.
   * Undefined if all that they have still is.
   */
  lostAfter(place: Place, epoch: string): Place | undefined
}

export const NEVER_RESTORED: Restores = { epoch: '', restoredAt: undefined, lostAfter: () => undefined }

export async function openRestores(db: Reader): Promise<Restores> {
  const epochs = await getEpochs(db)
  const latest = epochs.at(-1)
  if (latest === undefined) return NEVER_RESTORED
  const placeOf = ({ event_position, ledger_position }: (typeof epochs)[number]): Place => {
    return { events: [event_position], ledger: ledger_position }
  }
  return {
    epoch: latest.epoch,
    restoredAt: latest.restored_at,
    lostAfter(place, epoch) {
      if (epoch === latest.epoch) return undefined
      const known = epoch === '' ? 0 : epochs.findIndex((one) => one.epoch === epoch) + 1
      // An epoch that is unknown began with another restore of a backup from before: all of it is lost.
      if (known === 0 && epoch !== '') return placeOf(epochs[0]!)
      const isPast = (one: (typeof epochs)[number]) =>
        (place.events[0] ?? 0) > one.event_position || place.ledger > one.ledger_position
      const lost = epochs.slice(known).find(isPast)
      return lost && placeOf(lost)
    },
  }
}
