import type { BudgetPart, ByteBudget } from '../../core/byte-budget.ts'

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
