import type { Config } from '../../../config/schema.ts'
import { holdForApproval } from '../../../store/accounts/approvals.ts'
import { insertNewcomer } from '../../../store/accounts/newcomers.ts'
import type { Tx } from '../../../store/db/db.ts'
import type { Clock } from '../../clock.ts'

/** Who has an account now: somebody who made it, with or without a name of their own, or somebody for whom an operator did. */
export type NewAccountKind = 'own' | 'guest' | 'made'

/**
 * What follows for a new account, whatever the way in which it was made: it waits for an operator, and is led into the rooms of the server.
 * Call it in the transaction that makes the account.
 */
export async function settle(
  tx: Tx,
  { config, clock }: { readonly config: Pick<Config, 'registration'>; readonly clock: Clock },
  userNid: number,
  kind: NewAccountKind,
): Promise<void> {
  const { approval, auto_join } = config.registration
  if (approval && kind === 'own') await holdForApproval(tx, userNid)
  const isLed = auto_join.rooms.length > 0 && (kind !== 'guest' || auto_join.guests)
  if (isLed) await insertNewcomer(tx, userNid, clock.now())
}
