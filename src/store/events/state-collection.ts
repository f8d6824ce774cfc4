import type { Reader, Tx } from '../db/db.ts'

// Tables: room, event, state_chain, state_change, state_checkpoint

/** A state chain of a room, and what refers to it. */
export interface ChainUse {
  readonly room_nid: number
  readonly chain: number
  readonly parent_chain: number
  /** An event's state is on it, or it is the room's current chain, or the newest one, whose number must not be used twice. */
  readonly is_used: boolean
  /** How many chains branch off it. */
  readonly branches: number
}

export interface ChainName {
  readonly room_nid: number
  readonly chain: number
}

/** Stands in place of the parent of a chain that was given up. */
const GIVEN_UP = -1

const USE = `room_nid, chain, parent_chain,
    chain = (SELECT max(newest.chain) FROM state_chain newest WHERE newest.room_nid = c.room_nid)
      OR EXISTS (SELECT FROM room WHERE room.room_nid = c.room_nid AND room.state_chain = c.chain)
      OR EXISTS (SELECT FROM event e WHERE e.room_nid = c.room_nid AND e.state_chain = c.chain AND e.state_chain > 0)
      OR EXISTS (SELECT FROM event e WHERE e.room_nid = c.room_nid AND e.current_chain = c.chain AND e.current_chain > 0)
      AS is_used,
    (SELECT count(*) FROM state_chain branch WHERE branch.room_nid = c.room_nid AND branch.parent_chain = c.chain) AS branches
  FROM state_chain c`

/** The next chains of all rooms before `before` in descending order, so that a chain comes after those that branch off it. */
export function surveyChains(reader: Reader, before: ChainName, limit: number): Promise<ChainUse[]> {
  return reader.query<ChainUse>(
    `SELECT ${USE} WHERE (room_nid, chain) < ($1::bigint, $2::int) AND parent_chain <> ${GIVEN_UP}
     ORDER BY room_nid DESC, chain DESC LIMIT $3`,
    [before.room_nid, before.chain, limit],
  )
}

/** Chains that nothing refers to except other such chains. `uses` are in descending order. */
export function unusedChains(uses: readonly ChainUse[]): ChainUse[] {
  const gone = new Map<string, number>()
  return uses.filter((use) => {
    const branchesGone = gone.get(`${use.room_nid} ${use.chain}`) ?? 0
    if (use.is_used || use.branches > branchesGone) return false
    const parent = `${use.room_nid} ${use.parent_chain}`
    gone.set(parent, (gone.get(parent) ?? 0) + 1)
    return true
  })
}

/**
 * Marks a room's unused chains as given up. Returns how many.
 *
 * A writer may still refer to them in memory, so this advances the room's head: a write that was built on the old head fails its
 * compare-and-set, after waiting for this transaction if need be, and is built again.
 */
export async function giveUpChains(tx: Tx, roomNid: number, chains: readonly number[]): Promise<number> {
  await tx.query('SELECT room_nid FROM room WHERE room_nid = $1 FOR NO KEY UPDATE', [roomNid])
  const uses = await tx.query<ChainUse>(
    `SELECT ${USE} WHERE room_nid = $1 AND chain = ANY($2::int[]) AND parent_chain <> ${GIVEN_UP} ORDER BY chain DESC`,
    [roomNid, chains],
  )
  const unused = unusedChains(uses).map(({ chain }) => chain)
  if (unused.length === 0) return 0
  await tx.query('UPDATE room SET head_version = head_version + 1 WHERE room_nid = $1', [roomNid])
  await tx.query(`UPDATE state_chain SET parent_chain = ${GIVEN_UP} WHERE room_nid = $1 AND chain = ANY($2::int[])`, [
    roomNid,
    unused,
  ])
  return unused.length
}

/** The next chain that was given up and is not removed yet. */
export async function findGivenUp(reader: Reader): Promise<ChainName | undefined> {
  const [row] = await reader.query<ChainName>(
    `SELECT room_nid, chain FROM state_chain WHERE parent_chain = ${GIVEN_UP} LIMIT 1`,
  )
  return row
}

/** Removes about `limit` rows of a chain that was given up, the chain's own row last. Returns how many changes and chains. */
export async function removeChain(tx: Tx, { room_nid, chain }: ChainName, limit: number): Promise<number> {
  const changes = await tx.query(
    `DELETE FROM state_change WHERE room_nid = $1 AND chain = $2
     AND seq IN (SELECT seq FROM state_change WHERE room_nid = $1 AND chain = $2 LIMIT $3) RETURNING 1 AS one`,
    [room_nid, chain, limit],
  )
  if (changes.length === limit) return limit
  await tx.query('DELETE FROM state_checkpoint WHERE room_nid = $1 AND chain = $2', [room_nid, chain])
  await tx.query('DELETE FROM state_chain WHERE room_nid = $1 AND chain = $2', [room_nid, chain])
  return changes.length + 1
}
