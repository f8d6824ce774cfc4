import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type JoinParts, joinNodes, meetNodes, StandByEnded } from '../../src/domain/cluster/join.ts'
import { findNode, type NodeFacts, sessionName, takeNode } from '../../src/store/cluster/nodes.ts'
import { type Database, openDatabase } from '../../src/store/db/db.ts'
import { isWriterPresent, WRITER } from '../../src/store/db/writer-lock.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { waitUntil } from '../support/wait.ts'

const log = pino({ level: 'silent' })
let database: TestDatabase
/** What ends the processes. */
let opened: (() => Promise<void>)[] = []

beforeEach(async () => {
  database = await createTestDatabase()
})
afterEach(async () => {
  for (const close of opened) await close().catch(() => undefined)
  opened = []
  await database.drop()
})

let processes = 0

/** A process with connections of its own. */
function node(change: Partial<NodeFacts> = {}): JoinParts & { readonly db: Database; end(): Promise<void> } {
  const holder = (++processes).toString(16).padStart(16, '0')
  const own = {
    holder,
    address: `${processes}:8008`,
    release: '1.0.0',
    keys: 'k',
    files: 'f',
    cluster: 'proof',
    ...change,
  }
  const db = openDatabase({ connection: database.connection, poolSize: 2, name: sessionName(holder) })
  let ended: Promise<void> | undefined
  const end = () => {
    ended ??= db.close()
    return ended
  }
  opened.push(end)
  return { db, own, clock: Date, log, end }
}

/** Has it stand by. */
function standing(parts: JoinParts) {
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
  return { joined, stop: () => stopping.abort(), began: () => waitUntil('standing by', () => isStandingBy) }
}

/** As if the node had not said for long that it runs. */
const expire = () => database.db.query('UPDATE node SET expires_at = 0')

describe('alone', () => {
  it('a process has the place until it ends, and the next one gets a higher fencing number', async () => {
    const first = node({ cluster: undefined })
    const lease = await joinNodes(first)
    expect(lease).toMatchObject({ writer: WRITER, fence: 1 })
    expect(await isWriterPresent(database.db, WRITER)).toBe(true)
    await first.end()
    expect((await joinNodes(node({ cluster: undefined }))).fence).toBe(2)
  })

  it('a second process is refused while the first one runs, with a secret or without', async () => {
    await joinNodes(node({ cluster: undefined }))
    await Promise.all([
      expect(joinNodes(node({ cluster: undefined }))).rejects.toThrow('another Hearth is using this database'),
      expect(joinNodes(node())).rejects.toThrow('a Hearth without cluster.secret uses this database'),
    ])
    expect((await findNode(database.db, WRITER))?.fence).toBe(1)
  })

  it('a process without the secret is refused beside a node, before it changes anything', async () => {
    await joinNodes(node())
    const stranger = node({ cluster: undefined })
    await expect(joinNodes(stranger)).rejects.toThrow('give this one the same cluster.secret')
    await expect(meetNodes(stranger.db, stranger.own)).rejects.toThrow('give this one the same cluster.secret')
  })

  it('a connection that comes back to a database without its fencing number brings it along', async () => {
    const lease = await joinNodes(node({ cluster: undefined }))
    await database.db.query('UPDATE node SET fence = 0')
    await database.db.query(
      `SELECT pg_terminate_backend(pid) AS ended FROM pg_locks WHERE locktype = 'advisory' AND granted
       AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
    )
    await waitUntil('a new connection', () =>
      lease.writing.query('SELECT 1 AS one').then(
        () => true,
        () => false,
      ),
    )
    expect((await findNode(database.db, WRITER))?.fence).toBe(lease.fence)
  })
})

describe('in a cluster', () => {
  it('a node stands by, and takes the place once it is given back', async () => {
    const first = await joinNodes(node())
    const second = standing(node())
    await second.began()
    expect(first.isHeld()).toBe(true)
    await first.leave()
    expect(first.isHeld()).toBe(false)
    // The process of the first one ends now; its lock goes with it.
    await opened[0]!()
    const lease = await second.joined
    expect(lease.fence).toBe(first.fence + 1)
    expect(lease.isHeld()).toBe(true)
  })

  it('a node whose lease has ended loses the place, its open transactions and its connections', async () => {
    const before = node()
    const first = await joinNodes(before)
    let goOn: () => void = () => {}
    const stopped = new Promise<void>((resolve) => {
      goOn = resolve
    })
    const stuck = before.db.tx(async (tx) => {
      await tx.query('UPDATE ledger SET position = position')
      await stopped
    })
    await waitUntil('a row that is locked', async () => {
      const rows = await database.db.query(`SELECT 1 AS one FROM pg_locks WHERE relation = 'ledger'::regclass`)
      return rows.length > 0
    })
    const second = standing(node())
    await second.began()
    await expire()
    const lease = await second.joined
    await lease.writing.query('UPDATE ledger SET position = position')
    await first.lost
    expect(first.isHeld()).toBe(false)
    expect(lease.isHeld()).toBe(true)
    await expect(first.writing.query('SELECT 1 AS one')).rejects.toThrow()
    goOn()
    await expect(stuck).rejects.toThrow()
  })

  it('of two that stand by, one gets the place', async () => {
    const first = await joinNodes(node())
    const others = [standing(node()), standing(node())]
    for (const other of others) await other.began()
    await first.leave()
    await opened[0]!()
    const lease = await Promise.race(others.map(({ joined }) => joined))
    expect(lease.fence).toBe(2)
    for (const other of others) other.stop()
    const outcomes = await Promise.allSettled(others.map(({ joined }) => joined))
    expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    expect((await findNode(database.db, WRITER))?.fence).toBe(2)
  })

  it.each([
    ['another secret', { cluster: 'guess' }, 'has another cluster.secret'],
    ['other keys', { keys: 'l' }, 'copy signing.key and identity.key'],
    ['files elsewhere', { files: 'g' }, 'have both mount the same directory'],
    ['a release too far away', { release: '1.2.0' }, 'one minor release apart'],
  ])('a node with %s is refused', async (_, change, advice) => {
    await joinNodes(node())
    const stranger = node(change)
    await expect(standing(stranger).joined).rejects.toThrow(advice)
    await expect(meetNodes(stranger.db, stranger.own)).rejects.toThrow(advice)
  })

  it('a node whose clock is ten minutes off is refused', async () => {
    const off = { now: () => Date.now() + 600_000 }
    await expect(joinNodes({ ...node(), clock: off })).rejects.toThrow('have NTP set both')
    expect(await findNode(database.db, WRITER)).toBeUndefined()
  })

  it('a node that stands by ends when the key is replaced that it does not have', async () => {
    const first = node()
    await joinNodes(first)
    const second = standing(node())
    await second.began()
    await database.db.query(`UPDATE node SET keys = 'new'`)
    await expect(second.joined).rejects.toThrow('copy signing.key and identity.key')
  })

  it('standing by ends when it is asked to', async () => {
    await joinNodes(node())
    const second = standing(node())
    await second.began()
    second.stop()
    await expect(second.joined).rejects.toThrow(StandByEnded)
  })

  it('a node that stands by for a command knows nobody to pass requests on to', async () => {
    const first = node({ address: '' })
    await joinNodes(first)
    const heard: (string | undefined)[] = []
    const stopping = new AbortController()
    const standBy = { signal: stopping.signal, serving: (address: string | undefined) => void heard.push(address) }
    const second = joinNodes({ ...node(), standBy })
    await waitUntil('standing by', () => heard.length > 0)
    stopping.abort()
    await expect(second).rejects.toThrow(StandByEnded)
    expect(heard).toEqual([undefined])
  })

  it('a process that cannot stand by says so after a while', { timeout: 60_000 }, async () => {
    await joinNodes(node())
    await expect(joinNodes(node())).rejects.toThrow('a node of this cluster serves')
  })
})

it('the place is taken by one of many who try at the same moment', async () => {
  const tries = Array.from({ length: 8 }, () => node())
  const fences = await Promise.all(tries.map(({ db, own }) => takeNode(db, WRITER, own, 10_000)))
  expect(fences.filter((fence) => fence !== undefined)).toEqual([1])
})
