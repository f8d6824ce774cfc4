import type { BudgetPart, ByteBudget } from '../../core/byte-budget.ts'
import type { CompiledFilter } from '../../core/filter.ts'
import type { Mark } from '../rooms/room/client-event.ts'
import type { SlidingShape } from './sliding/shapes.ts'
import type { EventPosition } from './token.ts'

/** How far `age` in shared events can be off. */
export const SHARED_FOR_MS = 250

/** The newest stretch of a room's timeline as sync wrote it last. */
export interface SharedStretch {
  readonly key: string
  readonly madeAt: number
  readonly json: string
}

/** By room, for the many syncs that the same events wake. */
export type SharedStretches = Pick<BudgetPart<number, SharedStretch>, 'get' | 'set'>

const STRETCH_BYTES = 300

export function createSharedStretches(budget: ByteBudget): SharedStretches {
  return budget.part({ bytesOf: ({ json }) => STRETCH_BYTES + 2 * json.length })
}

/** Events that were written for somebody who continued from a place, and whom they may be shown to as well. */
export interface SharedEvents {
  readonly since: EventPosition
  readonly upTo: EventPosition
  readonly madeAt: number
  /** The stream position of the first of them. Who came later may be shown less. */
  readonly beginsAt: number
  /** Of those that another client may see with a transaction id or a delay id. */
  readonly marks: readonly Mark[]
}

/** What was written of them. */
export interface SharedText extends SharedEvents {
  /** For clients that load members lazily, and may lack some: who sent the events, with the numbers of their member events. */
  readonly senders: ReadonlyMap<string, number>
  readonly notifiable: number
  /** Without its end, the unread counts. */
  readonly json: string
}

/**
 * A joined room's part of an answer as it was written last: all of it that is the same for every reader who continues from the same place
 * with the same filter. A message to a room of thousands is written once.
 */
export interface SharedNews extends SharedText {
  /** A filter that names much is kept by nothing here: its bytes are not counted. */
  readonly filter: WeakRef<CompiledFilter>
  /** The key under which the state is, if the client asked for that after the timeline. */
  readonly stateAfter: string | undefined
}

/** The same of sliding sync, for readers who want the same of the room. */
export interface SharedAnswer extends SharedText {
  readonly shape: SlidingShape
  /** The lists that the room is in, as JSON, if the answer names them. */
  readonly lists: string
  readonly timelineLimit: number
  /** Stands for the state that is wanted. */
  readonly required: string
}

/** By room. */
export type SharedTexts<Kept extends SharedText> = Pick<BudgetPart<number, readonly Kept[]>, 'get' | 'set'>

const TEXT_BYTES = 600
const SENDER_BYTES = 120

export function createSharedTexts<Kept extends SharedText>(budget: ByteBudget): SharedTexts<Kept> {
  return budget.part({
    bytesOf(texts) {
      let bytes = 0
      for (const { json, senders } of texts) bytes += TEXT_BYTES + 2 * json.length + SENDER_BYTES * senders.size
      return bytes
    },
  })
}
