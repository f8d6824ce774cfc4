import { pino } from 'pino'
import { type JoinParts, joinNodes } from '../../src/domain/cluster/join.ts'
import { type NodeFacts, sessionName } from '../../src/store/cluster/nodes.ts'
import { type Database, openDatabase } from '../../src/store/db/db.ts'
import type { TestDatabase } from '../support/database.ts'
import { waitUntil } from '../support/wait.ts'

export interface Process extends JoinParts {
  readonly db: Database
  end(): Promise<void>
}

/** Processes that use one database, each with connections of its own. */
export interface Processes {
  node(change?: Partial<NodeFacts>): Process
  /** In the order in which they began. */
  readonly all: readonly Process[]
  endAll(): Promise<void>
}

export function openProcesses({ connection }: Pick<TestDatabase, 'connection'>): Processes {
  const log = pino({ level: 'silent' })
  const all: Process[] = []
  return {
    all,
    node(change = {}) {
      const number = all.length + 1
      const holder = number.toString(16).padStart(16, '0')
      const facts = {
        address: `${number}:8008`,
        release: '1.0.0',
        keys: 'k',
        files: 'f',
        settings: '{}',
        cluster: 'proof',
      }
      const own = { holder, ...facts, ...change }
      const db = openDatabase({ connection, poolSize: 2, name: sessionName(holder) })
      let ended: Promise<void> | undefined
      const end = () => {
        ended ??= db.close()
        return ended
      }
      const made = { db, own, clock: Date, log, end }
      all.push(made)
      return made
    },
    async endAll() {
      for (const { end } of all) await end().catch(() => undefined)
    },
  }
}

/** Has it stand by. */
export function standing(parts: JoinParts) {
  const stopping = new AbortController()
  let isStandingBy = false
  const standBy = {
    signal: stopping.signal,
    serving() {
      isStandingBy = true
    },
  }
  const joined = joinNodes({ ...parts, standBy })
  joined.catch(() => undefined)
  const began = () => waitUntil('standing by', () => isStandingBy)
  return { joined, stop: () => stopping.abort(), began }
}
