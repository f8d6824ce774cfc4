import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { EventId, UserId } from '../../../src/core/ids.ts'
import { roomVersion } from '../../../src/core/room-version.ts'
import { waitUntil } from '../../support/wait.ts'
import { Besieged, EVIL } from '../besieged.ts'
import { Forge } from '../forge.ts'

const CREATOR = `@creator:${EVIL}` as UserId

let home: Besieged
beforeAll(async () => {
  home = await Besieged.open()
})
afterAll(() => home.close())

/** Branches with state on each, and what joins them. */
function branchesOf(forge: Forge, width: number): EventId[] {
  const from = forge.latest!
  const made: EventId[] = []
  const tips: EventId[] = []
  for (let n = 0; n < width; n++) {
    made.push(forge.set(CREATOR, 'm.room.topic', { topic: `${n}` }, { prev: [from] }))
    made.push(forge.set(CREATOR, 'test.state', { n }, { state_key: `${n}` }))
    tips.push(made.at(-1)!)
  }
  made.push(forge.say(CREATOR, 'together', { prev: tips }))
  made.push(forge.set(CREATOR, 'test.state', { last: true }))
  return made
}

async function joinedRoom(name: string, version = '10'): Promise<Forge> {
  const forge = Forge.open(roomVersion(version)!, name, CREATOR)
  await home.takeJoin(forge, 'ann')
  home.answers(forge.answers())
  return forge
}

/** All is there, and a server that reads it anew gives the same. */
async function expectWhole(forge: Forge, ids: readonly EventId[]): Promise<void> {
  await home.audit(forge.roomId)
  const view = await home.view(forge.roomId)
  expect(ids.map((id) => home.standing(view, id))).toEqual(ids.map(() => 'accepted'))
  const named = [...view.events.values()].filter(
    ({ standing, pdu }) => standing === null && pdu.state_key !== undefined,
  )
  const keys = await home.server.db.query<{ type: string; state_key: string }>(
    'SELECT type, state_key FROM state_key WHERE room_nid = $1',
    [view.roomNid],
  )
  const names = new Set(keys.map((key) => `${key.type} ${key.state_key}`))
  expect(named.filter(({ pdu }) => !names.has(`${pdu.type} ${pdu.state_key}`))).toEqual([])
  const shown = await allShown(forge)
  await home.server.restart()
  expect(await allShown(forge)).toEqual(shown)
}

async function allShown(forge: Forge): Promise<unknown> {
  const { rooms } = await home.sync('ann', undefined, { filter: { room: { timeline: { limit: 50 } } } })
  const { timeline, state, summary, unread_notifications } = rooms.join[forge.roomId]
  const plain = ({ unsigned, ...event }: { unsigned: object }) => event
  return { timeline: timeline.events.map(plain), state: state.events.map(plain), summary, unread_notifications }
}

describe('a write that is refused', () => {
  it('since others wrote to the room: taken in again', async () => {
    const forge = await joinedRoom('moved')
    const ids = branchesOf(forge, 6)
    const bump = () =>
      home.server.db.query('UPDATE room SET head_version = head_version + 7 WHERE room_id = $1', [forge.roomId])
    await bump()
    expect(await home.kinds(forge, ids.slice(0, 3))).toEqual(['accepted', 'accepted', 'accepted'])
    await bump()
    expect(await home.kinds(forge, ids)).toEqual(ids.map((_, n) => (n < 3 ? 'known' : 'accepted')))
    await expectWhole(forge, ids)
  })

  it('since others write all the time: what is placed is in the end there', async () => {
    const forge = await joinedRoom('busy')
    const ids = branchesOf(forge, 8)
    let others = 0
    const bumping = (async () => {
      for (; others < 4; others++) {
        await home.server.db.query('UPDATE room SET head_version = head_version + 7 WHERE room_id = $1', [forge.roomId])
        await home.say('ann', forge.roomId, `${others}`)
      }
    })()
    const received = await home.receive(forge, ids)
    await bumping
    expect(received.filter(({ kind }) => kind !== 'accepted').map(({ reason }) => reason)).toEqual([])
    await expectWhole(forge, ids)
  })

  it('since the connection broke: the next transaction finds what is there and brings the rest', async () => {
    const forge = await joinedRoom('broken')
    const ids = branchesOf(forge, 8)
    const { db } = home.server
    await db.query(`CREATE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN PERFORM pg_sleep(5); RETURN NULL; END $$`)
    await db.query('CREATE TRIGGER linger BEFORE INSERT ON event FOR EACH STATEMENT EXECUTE FUNCTION linger()')
    const outcomes: string[] = []
    for (let round = 1; round <= 4; round++) {
      let isOver = false
      const receiving = home
        .kinds(forge, ids.slice(0, 4 * round))
        .then(
          () => 'done',
          (error: { status?: number }) => `${error.status}`,
        )
        .finally(() => {
          isOver = true
        })
      await waitUntil('the write to linger', async () => {
        const [row] = await db.query<{ broken: boolean }>(
          `SELECT pg_terminate_backend(pid) AS broken FROM pg_stat_activity
           WHERE datname = current_database() AND wait_event = 'PgSleep'`,
        )
        return row?.broken || isOver
      })
      outcomes.push(await receiving)
    }
    await db.query('DROP TRIGGER linger ON event')
    expect(outcomes).toContain('503')
    let kinds: string[] = []
    for (let round = 0; round < 20 && kinds.length === 0; round++) kinds = await home.kinds(forge, ids).catch(() => [])
    expect(kinds.filter((kind) => kind !== 'known' && kind !== 'accepted')).toEqual([])
    expect(kinds).toHaveLength(ids.length)
    await expectWhole(forge, ids)
  })

  it('A7: since the disk of the database is full: the sender is asked to send it again, and then it is there', async () => {
    const forge = await joinedRoom('full')
    const { db } = home.server
    await db.query(`CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$`)
    await db.query('CREATE TRIGGER full_disk BEFORE INSERT ON event FOR EACH ROW EXECUTE FUNCTION full_disk()')
    const ids = branchesOf(forge, 4)
    const refused = expect.objectContaining({
      status: 503,
      message: expect.stringContaining('disk of the database is full'),
    })
    await expect(home.kinds(forge, ids)).rejects.toEqual(refused)
    await expect(home.say('ann', forge.roomId, 'from here')).rejects.toEqual(refused)
    await db.query('DROP TRIGGER full_disk ON event')
    expect(await home.kinds(forge, ids)).toEqual(ids.map(() => 'accepted'))
    await expectWhole(forge, ids)
  })

  it('since one event cannot be written: the others are', async () => {
    const forge = await joinedRoom('poison')
    const { db } = home.server
    await db.query(`CREATE FUNCTION poison() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN IF NEW.type = 'test.poison' THEN RAISE EXCEPTION 'no'; END IF; RETURN NEW; END $$`)
    await db.query('CREATE TRIGGER poison BEFORE INSERT ON event FOR EACH ROW EXECUTE FUNCTION poison()')
    const first = forge.say(CREATOR, 'before')
    const poison = forge.make({ type: 'test.poison', sender: CREATOR, prev: [first] })
    const second = forge.say(CREATOR, 'beside', { prev: [first] })
    const third = forge.set(CREATOR, 'test.state', { fine: true }, { prev: [second] })
    expect(await home.kinds(forge, [first, poison, second, third])).toEqual([
      'accepted',
      'dropped',
      'accepted',
      'accepted',
    ])
    await db.query('DROP TRIGGER poison ON event')
    await expectWhole(forge, [first, second, third])
  })
})

it('states of branches are read while others keep the database busy', async () => {
  const forge = await joinedRoom('patient')
  const other = await home.createRoom('ann', roomVersion('10')!)
  let isDone = false
  // Not in step with each other, so that something is queued at any time.
  const talking = Array.from({ length: 24 }, async (_, n) => {
    for (let said = 0; !isDone; said++) {
      await home.say('ann', other, 'on and on')
      await pause((n + said) % 5)
    }
  })
  // More branches than a room keeps the states of, and what builds on those that were put aside first.
  const from = forge.latest!
  const topics = Array.from({ length: 80 }, (_, n) =>
    forge.set(CREATOR, 'm.room.topic', { topic: `${n}` }, { prev: [from] }),
  )
  const ids = [...topics, forge.say(CREATOR, 'together', { prev: topics.slice(20, 40) })]
  const receiving = home.kinds(forge, ids)
  const patience = new Promise<string[]>((resolve) => setTimeout(resolve, 45_000, ['not while others talk']))
  const kinds = await Promise.race([receiving, patience])
  isDone = true
  await Promise.all([receiving, ...talking])
  expect(kinds).toEqual(ids.map(() => 'accepted'))
  await home.audit(forge.roomId)
})
