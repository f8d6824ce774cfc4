import { type Logger, pino } from 'pino'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ProtocolError } from '../../src/core/errors.ts'
import { joinNodes, meetNodes, StandByEnded } from '../../src/domain/cluster/join.ts'
import { NODE_LOOK_MS } from '../../src/domain/limits/cluster.ts'
import { findNode, type NodeFacts, takeNode } from '../../src/store/cluster/nodes.ts'
import { claimWriter, isWriterPresent, WRITER } from '../../src/store/db/writer-lock.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { waitUntil } from '../support/wait.ts'
import { openProcesses, type Processes, standing } from './processes.ts'

let database: TestDatabase
let processes: Processes
const node = (change?: Partial<NodeFacts>) => processes.node(change)

/** A log, and the texts that are in it. */
function heardLog(): { log: Logger; said: string[]; lines: Record<string, unknown>[] } {
  const lines: Record<string, unknown>[] = []
  const said: string[] = []
  const log = pino(
    {},
    {
      write(line: string) {
        lines.push(JSON.parse(line))
        said.push(JSON.parse(line).msg)
      },
    },
  )
  return { log, said, lines }
}

beforeEach(async () => {
  database = await createTestDatabase()
  processes = openProcesses(database)
})
afterEach(async () => {
  await processes.endAll()
  await database.drop()
})

describe('alone', () => {
  it('a process has the place until it ends, and the next one gets a higher fencing number', async () => {
    const first = node({ cluster: undefined })
    const lease = await joinNodes(first)
    expect(lease).toMatchObject({ writer: WRITER, fence: 1 })
    expect(await isWriterPresent(database.db, WRITER)).toBe(true)
    await first.end()
    expect((await joinNodes(node({ cluster: undefined }))).fence).toBe(2)
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
    await processes.all[0]!.end()
    const lease = await second.joined
    expect(lease.fence).toBe(first.fence + 1)
    expect(lease.isHeld()).toBe(true)
    // It looked again soon for the place, but what it writes may wait.
    expect(await lease.writing.query('SHOW lock_timeout')).toEqual([{ lock_timeout: '5s' }])
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

  it('a node that stands by gives up no request when it does not reach the database for a moment', async () => {
    const first = node()
    await joinNodes(first)
    const second = node()
    const heard: (string | undefined)[] = []
    const stopping = new AbortController()
    const standBy = { signal: stopping.signal, serving: (address: string | undefined) => void heard.push(address) }
    let looks = 0
    const away = new ProtocolError('M_UNKNOWN', 'The database is away.', { status: 503 })
    const query: typeof second.db.query = (text, values) =>
      ++looks % 4 === 0 ? Promise.reject(away) : second.db.query(text, values)
    const joined = joinNodes({ ...second, db: { query, dedicated: second.db.dedicated }, standBy })
    await waitUntil('looks without the database', () => looks > 12)
    stopping.abort()
    await expect(joined).rejects.toThrow(StandByEnded)
    expect(heard).toEqual([first.own.address])
  })

  it('a node takes no place while a session of the one before it lives', async () => {
    const before = node()
    const first = await joinNodes(before)
    const { log, said } = heardLog()
    const second = standing({ ...node(), log })
    await second.began()
    // It is not the session that has the lock.
    const [session] = await before.db.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
    process.kill(session!.pid, 'SIGSTOP')
    try {
      await first.leave()
      const waits = waitUntil('a word about it', () => said.some((text) => text.includes('does not end them')))
      expect(await Promise.race([waits, second.joined.then(() => 'it took the place')])).toBe(true)
      expect((await findNode(database.db, WRITER))?.fence).toBe(1)
    } finally {
      process.kill(session!.pid, 'SIGCONT')
    }
    expect((await second.joined).fence).toBe(2)
  })

  it('a node that begins while the first one is just taking an empty database soon sees that it serves', async () => {
    const first = node()
    const writing = first.db.dedicated((client) => claimWriter(client, WRITER))
    await writing.query('SELECT 1 AS one')
    const second = node()
    const tries: { readonly patience: string; readonly isLate: boolean }[] = []
    let isTaken = false
    const dedicated: typeof second.db.dedicated = (prepare) =>
      second.db.dedicated(async (client) => {
        const isLate = isTaken
        await prepare?.(client).catch(async (error: unknown) => {
          const { rows } = await client.query('SHOW lock_timeout')
          tries.push({ patience: rows[0].lock_timeout, isLate })
          throw error
        })
      })
    const stands = standing({ ...second, db: { query: second.db.query, dedicated } })
    await waitUntil('a second one that waits for the lock', async () => {
      const rows = await database.db.query(
        `SELECT 1 AS one FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
      )
      return rows.length > 0
    })
    await takeNode(writing, WRITER, first.own, 60_000)
    isTaken = true
    await stands.began()
    // It never waited for the lock as for that of a process alone, which may be ending; and it looked who serves after each try.
    expect(tries.length).toBeGreaterThan(0)
    expect(tries.filter(({ patience }) => patience !== `${NODE_LOOK_MS}ms`)).toEqual([])
    expect(tries.filter(({ isLate }) => isLate).length).toBeLessThan(2)
    stands.stop()
    await expect(stands.joined).rejects.toThrow(StandByEnded)
  })

  it('a node that stands by asks the database once for each look', async () => {
    await joinNodes(node())
    const second = node()
    const asked: string[] = []
    const query: typeof second.db.query = (text, values) => {
      asked.push(text)
      return second.db.query(text, values)
    }
    const stands = standing({ ...second, db: { query, dedicated: second.db.dedicated } })
    await stands.began()
    const before = asked.length
    await waitUntil('more looks', () => asked.length > before + 4)
    expect(asked.slice(before).filter((text) => text.includes('to_regclass'))).toEqual([])
    stands.stop()
    await expect(stands.joined).rejects.toThrow(StandByEnded)
  })

  it('a node with other settings stands by, says which they are, and answers nothing in the stead of the other', async () => {
    const serve = (settings: string) =>
      database.db.query('UPDATE node SET settings = holder || $1', [settings === '' ? '' : ` ${settings}`])
    const { own } = node()
    await takeNode(database.db, WRITER, own, 60_000)
    const heard: boolean[] = []
    const { log, lines } = heardLog()
    const stopping = new AbortController()
    const standBy = {
      signal: stopping.signal,
      serving: (_address: string | undefined, isAlike: boolean) => void heard.push(isAlike),
    }
    const settings = '{"rate_limits.enabled":"one"}'
    const second = joinNodes({ ...node({ settings }), log, standBy })
    second.catch(() => undefined)
    await waitUntil('a word about them', () => lines.some(({ options }) => options !== undefined))
    expect(lines.find(({ options }) => options !== undefined)).toMatchObject({ options: ['rate_limits.enabled'] })
    expect(heard).toEqual([false])
    await serve(settings)
    await waitUntil('the same settings', () => heard.length > 1)
    await serve('{"profiles.visible_to":"two"}')
    await waitUntil('others again', () => heard.length > 2)
    await serve(settings)
    await waitUntil('the same again', () => heard.length > 3)
    // A node of an earlier release leaves there what the one before it wrote.
    await database.db.query(`UPDATE node SET holder = 'earlier'`)
    await waitUntil('settings that are not known', () => heard.length > 4)
    expect(heard).toEqual([false, true, false, true, false])
    const warned = lines.flatMap(({ options }) => (options === undefined ? [] : [options]))
    expect(warned).toEqual([['rate_limits.enabled'], ['profiles.visible_to', 'rate_limits.enabled']])
    stopping.abort()
    await expect(second).rejects.toThrow(StandByEnded)
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
})

it('the place is taken by one of many who try at the same moment', async () => {
  const tries = Array.from({ length: 8 }, () => node())
  const fences = await Promise.all(tries.map(({ db, own }) => takeNode(db, WRITER, own, 10_000)))
  expect(fences.filter((fence) => fence !== undefined)).toEqual([1])
})
