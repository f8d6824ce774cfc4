import { EMPTY_STATE, forEachState, type StateMap, setState } from '../../../src/core/state/trie.ts'
import type { Database } from '../../../src/store/db/db.ts'
import { type StatePoint, saveCheckpoint } from '../../../src/store/events/state.ts'

export type Change = readonly [keyId: number, eventNid: number]

interface Chain {
  readonly parent: StatePoint | undefined
  readonly changes: Change[]
}

/** Numbers that come out the same every time. */
export function seededRandom(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

/** The state log of a room with branches, as plain lists to be compared with what the database makes of it. */
export class ForkedRoom {
  readonly nid: number
  readonly chains = new Map<number, Chain>([[0, { parent: undefined, changes: [] }]])

  constructor(nid: number) {
    this.nid = nid
  }

  change(chain: number, ...changes: readonly Change[]): StatePoint {
    const own = this.chains.get(chain)!.changes
    own.push(...changes)
    return { chain, seq: own.length }
  }

  branch(parent: StatePoint): number {
    const chain = Math.max(...this.chains.keys()) + 1
    this.chains.set(chain, { parent, changes: [] })
    return chain
  }

  /** Chains that each branch off the middle of the one before, with `length` changes each. */
  static deep(nid: number, depth: number, length: number, keys: number): ForkedRoom {
    const room = new ForkedRoom(nid)
    const random = seededRandom(nid)
    let eventNid = nid * 1_000_000
    for (let chain = 0; ; chain = room.branch({ chain, seq: random(length + 1) })) {
      for (let n = 0; n < length; n++) {
        // Some changes take a key away again.
        room.change(chain, [random(keys), random(20) === 0 ? 0 : ++eventNid])
      }
      if (room.chains.size > depth) return room
    }
  }

  /** Every point there is. */
  points(): StatePoint[] {
    return [...this.chains].flatMap(([chain, { changes }]) =>
      Array.from({ length: changes.length + 1 }, (_, seq) => ({ chain, seq })),
    )
  }

  state({ chain, seq }: StatePoint): Map<number, number> {
    const { parent, changes } = this.chains.get(chain)!
    const state = parent === undefined ? new Map<number, number>() : this.state(parent)
    for (const [keyId, eventNid] of changes.slice(0, seq)) {
      if (eventNid === 0) state.delete(keyId)
      else state.set(keyId, eventNid)
    }
    return state
  }

  async write({ query }: Database): Promise<void> {
    const changes = [...this.chains].flatMap(([chain, own]) =>
      own.changes.map(([keyId, eventNid], index) => [chain, index + 1, keyId, eventNid] as const),
    )
    await query(
      `INSERT INTO state_change (room_nid, chain, seq, key_id, event_nid)
       SELECT $1, * FROM unnest($2::int[], $3::int[], $4::int[], $5::bigint[])`,
      [this.nid, ...[0, 1, 2, 3].map((column) => changes.map((change) => change[column]))],
    )
    const branches = [...this.chains].flatMap(([chain, { parent }]) => (parent ? [[chain, parent] as const] : []))
    await query(
      `INSERT INTO state_chain (room_nid, chain, parent_chain, parent_seq)
       SELECT $1, * FROM unnest($2::int[], $3::int[], $4::int[])`,
      [
        this.nid,
        branches.map(([chain]) => chain),
        branches.map(([, parent]) => parent.chain),
        branches.map(([, parent]) => parent.seq),
      ],
    )
  }

  /** Writes a checkpoint of a point. */
  async checkpoint(db: Database, point: StatePoint): Promise<void> {
    let state = EMPTY_STATE
    for (const [keyId, eventNid] of this.state(point)) state = setState(state, keyId, eventNid)
    await db.tx((tx) => saveCheckpoint(tx, this.nid, point, state))
  }
}

export function entriesOf(state: StateMap): Map<number, number> {
  const entries = new Map<number, number>()
  forEachState(state, (key, value) => entries.set(key, value))
  return entries
}

export const sorted = (entries: ReadonlyMap<number, number>) => [...entries].sort(([a], [b]) => a - b)
