import pg from 'pg'
import { pino } from 'pino'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { ByteBudget } from '../../../src/core/byte-budget.ts'
import type { EventId, RoomId } from '../../../src/core/ids.ts'
import { roomVersion } from '../../../src/core/room-version.ts'
import { createEventCache } from '../../../src/domain/rooms/room/event-cache.ts'
import { emptyRoom, type Room } from '../../../src/domain/rooms/room/room.ts'
import { RoomEvent } from '../../../src/domain/rooms/room/room-event.ts'
import { openPersister, type Persister } from '../../../src/domain/rooms/write/persister.ts'
import { NO_GRAPH, type Outcome, type Unit } from '../../../src/domain/rooms/write/unit.ts'
import { unavailable } from '../../../src/store/db/connection.ts'
import type { Reader } from '../../../src/store/db/db.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { takePlace } from '../../support/place.ts'
import { waitUntil } from '../../support/wait.ts'

/** Events of type `test.bad` cannot be written. Those of `test.held` and `test.bad` wait for a lock that a test may hold. */
const HOLD = `
CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(17);
  IF NEW.type = 'test.bad' THEN RAISE EXCEPTION 'this event is bad'; END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER hold BEFORE INSERT ON event FOR EACH ROW WHEN (NEW.type <> 'm.room.message') EXECUTE FUNCTION hold()`
/** So many are sent behind a small batch that is not answered. */
const ENOUGH = 24

let database: TestDatabase
let writing: Reader & { close(): Promise<void> }
/** Another session, which holds the lock. */
let other: pg.Client
let persister: Persister
let fence: Awaited<ReturnType<typeof takePlace>>
/** How many batches were sent. */
let sent: number
/** Runs instead of a batch's own statement; undefined for the statement itself. */
let instead: ((batch: number, write: () => Promise<object[]>) => Promise<object[]>) | undefined
/** What the persister said: numbers of events that were committed, and where it published. */
let said: string[]
let missed: number[]
let isWritten: (nid: number) => Promise<boolean>

beforeEach(async () => {
  database = await createTestDatabase()
  const { db, connection } = database
  fence = await takePlace(db)
  writing = db.dedicated()
  other = new pg.Client(connection)
  await other.connect()
  await other.query(HOLD)
  await other.query('SELECT pg_advisory_lock(17)')
  sent = 0
  instead = undefined
  said = []
  missed = []
  const watched: Reader = {
    query<Row extends object>(text: string, values?: readonly unknown[]) {
      const run = () => writing.query<Row>(text, values)
      if (!text.startsWith('WITH input')) return run()
      sent += 1
      return instead ? (instead(sent, run) as Promise<Row[]>) : run()
    },
  }
  persister = await openPersister({
    node: { ...fence, writing: watched },
    clock: { now: () => 1_000 } as never,
    log: pino({ level: 'silent' }),
    metrics: { observeCommit: () => {} },
    committed(unit) {
      unit.room.settled(unit)
      said.push(...unit.events.map(({ nid }) => `${nid}`))
    },
    published: () => said.push(`up to ${persister.position()}`),
    refused(room) {
      room.alive = false
    },
    missed: (position) => missed.push(position),
  })
  isWritten = async (nid) => (await db.query('SELECT FROM event WHERE event_nid = $1', [nid])).length === 1
})
afterEach(async () => {
  await other.end()
  await database.drop()
})

function roomOf(nid: number): Room {
  const events = createEventCache({ db: database.db, budget: new ByteBudget(1_000_000) })
  return emptyRoom({ nid, id: `!${nid}` as RoomId, version: roomVersion('12')!, events })
}

interface Said {
  readonly nid: number
  readonly outcome: Promise<Outcome>
}

/** Enqueues an event. An outlier moves the room's version, and not its newest event. */
function say(room: Room, type = 'm.room.message', isOutlier = false): Said {
  const before = room.pending
  const nid = persister.takeNid()
  const json = `{"type":"${type}","content":{}}`
  const event = new RoomEvent(
    {
      event_nid: nid,
      room_nid: room.nid,
      room_pos: isOutlier ? null : before.pos + 1,
      sender_nid: 1,
      origin_server_ts: 1_000,
      notifiable: 0,
      replaces_nid: null,
      redacted_by: null,
      txn_token: null,
      state_chain: 0,
      state_seq: 0,
      key_id: null,
      event_id: `$${nid}` as EventId,
      type,
      txn_id: null,
      standing: isOutlier ? 'outlier' : null,
      reason: null,
      stream_pos: null,
      current_chain: null,
      current_seq: null,
      auth_nids: null,
      auth_content: null,
      has_relations: false,
      json,
    },
    JSON.parse(json),
  )
  const head = { ...before, version: before.version + 1 }
  const unit: Unit = {
    ...NO_GRAPH,
    room,
    before,
    after: isOutlier ? head : { ...head, pos: before.pos + 1, nid },
    events: [event],
    keys: [],
    changes: [],
    members: [],
    unread: [],
    txn: undefined,
    redactions: [],
  }
  room.enqueued(unit)
  const outcome = persister.enqueue(unit)
  outcome.catch(() => {})
  return { nid, outcome }
}

/** Rooms that are in the database, with an event each. */
async function roomsOf(count: number): Promise<Room[]> {
  const rooms = Array.from({ length: count }, (_, n) => roomOf(n + 1))
  await Promise.all(rooms.map((room) => say(room).outcome))
  sent = 0
  said = []
  return rooms
}

const sayInEach = (rooms: readonly Room[]) => rooms.map((room) => say(room))
const kindsOf = async (all: readonly Said[]) =>
  Promise.all(
    all.map(({ outcome }) =>
      outcome.then(
        ({ kind }) => kind,
        (error) => `${error.status ?? 'refused'}`,
      ),
    ),
  )

const untilHeld = () =>
  waitUntil('a batch that waits for the lock', async () => {
    const { rows } = await other.query(
      `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    )
    return rows.length > 0
  })
const release = () => other.query('SELECT pg_advisory_unlock(17)')

/** Writes to a new room again and again until the connection is open anew. Returns what was written then. */
async function untilWritten(): Promise<Said> {
  let nid = 1_000
  return waitUntil('a write', async () => {
    const next = say(roomOf(++nid))
    return (await kindsOf([next]))[0] === 'committed' && next
  })
}

/** Turns of the event loop, after which whatever could be sent at once was sent. */
async function afterTurns(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve))
}

it('a batch is sent behind one that is not answered, and both are told in order', async () => {
  const [first, ...rest] = await roomsOf(1 + ENOUGH)
  const before = persister.position()
  const held = say(first!, 'test.held')
  await untilHeld()
  const behind = sayInEach(rest)
  await afterTurns()
  expect([sent, said, persister.position()]).toEqual([2, [], before])
  expect(await isWritten(behind[0]!.nid)).toBe(false)

  await release()
  expect(new Set(await kindsOf([held, ...behind]))).toEqual(new Set(['committed']))
  const last = behind.at(-1)!.nid
  expect(said).toEqual([`${held.nid}`, `up to ${held.nid}`, ...behind.map(({ nid }) => `${nid}`), `up to ${last}`])
})

it('few events wait for the answer to those before them, so that one commit takes more of them', async () => {
  const [first, ...rest] = await roomsOf(ENOUGH)
  const held = say(first!, 'test.held')
  await untilHeld()
  const behind = sayInEach(rest)
  await afterTurns()
  expect(sent).toBe(1)
  await release()
  await kindsOf([held, ...behind])
  expect(sent).toBe(2)
})

it('fewer events than the batch ahead has wait for its answer', async () => {
  const rooms = await roomsOf(2 * ENOUGH + 1)
  const held = [say(rooms[0]!, 'test.held'), ...sayInEach(rooms.slice(1, ENOUGH + 1))]
  await untilHeld()
  const behind = sayInEach(rooms.slice(ENOUGH + 1))
  await afterTurns()
  expect(sent).toBe(1)
  behind.push(say(rooms[0]!))
  await afterTurns()
  expect(sent).toBe(2)
  await release()
  expect(new Set(await kindsOf([...held, ...behind]))).toEqual(new Set(['committed']))
})

it('no third batch is sent before the first one is answered', async () => {
  const [first, ...rest] = await roomsOf(1 + 3 * ENOUGH)
  const held = say(first!, 'test.held')
  await untilHeld()
  const all: Said[] = [held]
  for (let n = 0; n < 3; n++) {
    all.push(...sayInEach(rest.slice(n * ENOUGH, (n + 1) * ENOUGH)))
    await afterTurns()
  }
  expect(sent).toBe(2)
  await release()
  expect(new Set(await kindsOf(all))).toEqual(new Set(['committed']))
  expect(sent).toBe(3)
})

/** Another writer moves the head of the first room, and holds its row until it commits. */
async function moveHeadElsewhere(): Promise<void> {
  await other.query('BEGIN')
  await other.query('UPDATE room SET head_version = head_version + 1 WHERE room_nid = 1')
}

it('a room that is refused is refused in the batch behind too, even if its version became what that one builds on', async () => {
  const [first, ...rest] = await roomsOf(ENOUGH)
  await release()
  await moveHeadElsewhere()
  const held = say(first!)
  await untilHeld()
  const same = say(first!)
  const behind = sayInEach(rest)
  await afterTurns()
  expect(sent).toBe(2)
  await other.query('COMMIT')
  expect(await kindsOf([held, same])).toEqual(['moved', 'moved'])
  expect(new Set(await kindsOf(behind))).toEqual(new Set(['committed']))
  expect([await isWritten(held.nid), await isWritten(same.nid)]).toEqual([false, false])
})

it('behind a write that leaves the newest event of its room as it is, nothing of that room is sent', async () => {
  const [first, ...rest] = await roomsOf(ENOUGH)
  await release()
  await moveHeadElsewhere()
  const held = say(first!, 'm.room.message', true)
  await untilHeld()
  const same = say(first!)
  const behind = sayInEach(rest)
  await afterTurns()
  expect(sent).toBe(1)
  await other.query('COMMIT')
  expect(await kindsOf([held, same])).toEqual(['moved', 'moved'])
  expect(new Set(await kindsOf(behind))).toEqual(new Set(['committed']))
})

it('a batch that fails is written again room by room, before what was sent behind it is told', async () => {
  const [bad, good, ...rest] = await roomsOf(1 + ENOUGH)
  const failing = say(bad!, 'test.bad')
  const fine = say(good!)
  await untilHeld()
  const onFailed = say(bad!)
  const behind = [...sayInEach(rest)]
  await afterTurns()
  expect(sent).toBe(2)

  await release()
  expect(await kindsOf([failing, fine, onFailed])).toEqual(['refused', 'committed', 'moved'])
  expect(new Set(await kindsOf(behind))).toEqual(new Set(['committed']))
  const committed = said.filter((word) => !word.startsWith('up')).map(Number)
  expect(committed).toEqual(committed.toSorted((a, b) => a - b))
  expect(said.slice(0, 2)).toEqual([`${fine.nid}`, `up to ${fine.nid}`])
})

it('while a failed batch is written again room by room, nothing is sent in between', async () => {
  const [one, two, ...rest] = await roomsOf(2 + ENOUGH)
  let goOn: () => void = () => {}
  const waits = new Promise<void>((resolve) => {
    goOn = resolve
  })
  instead = async (batch, write) => {
    if (batch === 1) throw new Error('no')
    if (batch === 2) await waits
    return write()
  }
  const failed = [say(one!), say(two!)]
  await waitUntil('the first room to be written again', () => sent === 2)
  const later = sayInEach(rest)
  await afterTurns()
  expect(sent).toBe(2)
  goOn()
  expect(new Set(await kindsOf([...failed, ...later]))).toEqual(new Set(['committed']))
  const committed = said.filter((word) => !word.startsWith('up')).map(Number)
  expect(committed).toEqual(committed.toSorted((x, y) => x - y))
})

it('what was sent behind a batch with a failed room is built again where it stands on it, and nowhere overtakes', async () => {
  const [bad, good, ...rest] = await roomsOf(1 + ENOUGH)
  const failing = say(bad!, 'test.bad')
  const fine = say(good!)
  await untilHeld()
  const later = say(good!)
  const behind = sayInEach(rest)
  await afterTurns()
  expect(sent).toBe(2)
  await release()
  expect(await kindsOf([failing, fine, later])).toEqual(['refused', 'committed', 'moved'])
  await kindsOf(behind)
  const [row] = await database.db.query<{ last_nid: number }>('SELECT last_nid FROM room WHERE room_nid = $1', [
    good!.nid,
  ])
  expect(row!.last_nid).toBe(fine.nid)
})

it('when the connection ends under both, neither is acknowledged, and the next write finds out', async () => {
  const [first, ...rest] = await roomsOf(1 + ENOUGH)
  const before = persister.position()
  const held = say(first!, 'test.held')
  await untilHeld()
  const behind = sayInEach(rest)
  await afterTurns()
  expect(sent).toBe(2)
  await other.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
  )
  expect(new Set(await kindsOf([held, ...behind]))).toEqual(new Set(['503']))
  expect([persister.position(), said]).toEqual([before, []])
  await release()
  const next = await untilWritten()
  expect([said, missed]).toEqual([[`${next.nid}`, `up to ${next.nid}`], []])
  expect(await isWritten(held.nid)).toBe(false)
})

it('when the connection ends between two batches, the one that was answered stands', async () => {
  const [first, second, ...rest] = await roomsOf(1 + ENOUGH)
  const held = say(first!, 'test.held')
  await untilHeld()
  const blocker = new pg.Client(database.connection)
  await blocker.connect()
  await blocker.query('BEGIN')
  await blocker.query('SELECT FROM room WHERE room_nid = 2 FOR UPDATE')
  const behind = sayInEach([second!, ...rest])
  await afterTurns()
  expect(sent).toBe(2)
  await release()
  expect(await kindsOf([held])).toEqual(['committed'])
  await untilHeld()
  await other.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
  )
  expect(new Set(await kindsOf(behind))).toEqual(new Set(['503']))
  await blocker.end()
  const next = await untilWritten()
  expect([said, missed]).toEqual([[`${held.nid}`, `up to ${held.nid}`, `${next.nid}`, `up to ${next.nid}`], []])
  expect(await kindsOf([say(first!)])).toEqual(['committed'])
})

it('what was sent behind a commit without an answer counts for nothing until it is known, though it was answered', async () => {
  const [first, ...rest] = await roomsOf(1 + ENOUGH)
  const before = persister.position()
  instead = async (batch, write) => {
    const rows = await write()
    if (batch === 1) throw unavailable()
    return rows
  }
  const held = say(first!, 'test.held')
  await untilHeld()
  const behind = sayInEach(rest)
  await afterTurns()
  expect(sent).toBe(2)
  await release()
  expect(new Set(await kindsOf([held, ...behind]))).toEqual(new Set(['503']))
  const last = behind.at(-1)!.nid
  expect([await isWritten(held.nid), await isWritten(last)]).toEqual([true, true])
  expect([said, persister.position()]).toEqual([[], before])
  await waitUntil('the position of what was committed', () => persister.position() === last)
  expect([said, missed]).toEqual([[`up to ${last}`], [last]])
})

it('while a room of a batch is in doubt, nothing is published beyond its events', async () => {
  const [one, two] = await roomsOf(2)
  const before = persister.position()
  instead = async (batch, write) => {
    if (batch === 1) throw new Error('no')
    const rows = await write()
    if (batch === 3) throw unavailable()
    return rows
  }
  const known = say(one!)
  const doubted = say(two!)
  const last = say(one!)
  expect(await kindsOf([known, doubted, last])).toEqual(['committed', '503', 'committed'])
  expect(await isWritten(doubted.nid)).toBe(true)
  expect(persister.position()).toBe(before)
  await waitUntil('the position of what was committed', () => persister.position() === last.nid)
  expect(missed).toEqual([last.nid])
})

it('whoever waits until all is written waits for what is under way, even if what was queued last need not be written', async () => {
  const [first, ...rest] = await roomsOf(1 + ENOUGH)
  const held = say(first!, 'test.held')
  await untilHeld()
  const behind = sayInEach(rest)
  rest.at(-1)!.alive = false
  let isIdle = false
  const idle = persister.idle().then(() => {
    isIdle = true
  })
  await afterTurns()
  expect([sent, isIdle]).toEqual([2, false])
  await release()
  await idle
  expect(said).toContain(`up to ${behind.at(-2)!.nid}`)
  expect((await kindsOf([held, ...behind])).slice(-2)).toEqual(['committed', 'moved'])
})

it('a node that lost its place writes nothing of what it had sent ahead', async () => {
  const [first, ...rest] = await roomsOf(1 + ENOUGH)
  const held = say(first!, 'test.held')
  await untilHeld()
  const behind = sayInEach(rest)
  await afterTurns()
  expect(sent).toBe(2)
  await other.query('UPDATE node SET fence = fence + 1 WHERE node = $1', [fence.writer])
  await release()
  await held.outcome
  expect(new Set(await kindsOf(behind))).toEqual(new Set(['moved']))
  for (const { nid } of behind) expect(await isWritten(nid)).toBe(false)
})
