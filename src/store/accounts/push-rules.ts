import type { Reader, Tx } from '../db/db.ts'

// Table: push_rules

/** The users who changed push rules, each with the ledger position of the last change. */
export function listPushRuleChanges(reader: Reader): Promise<{ user_nid: number; position: number }[]> {
  return reader.query('SELECT user_nid, position FROM push_rules')
}

export function findPushRules(
  reader: Reader,
  userNids: readonly number[],
): Promise<{ user_nid: number; rules: string }[]> {
  return reader.query('SELECT user_nid, rules FROM push_rules WHERE user_nid = ANY($1::bigint[])', [userNids])
}

export async function setPushRules(
  tx: Tx,
  { userNid, rules, position }: { readonly userNid: number; readonly rules: string; readonly position: number },
): Promise<void> {
  await tx.query(
    `INSERT INTO push_rules (user_nid, rules, position) VALUES ($1, $2, $3)
     ON CONFLICT (user_nid) DO UPDATE SET rules = EXCLUDED.rules, position = EXCLUDED.position`,
    [userNid, rules, position],
  )
}
