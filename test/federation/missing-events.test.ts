import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { EventId, RoomId } from '../../src/core/ids.ts'
import { openStage, type Party, type Stage, setState, shownTo, textOf, viewOf } from './party.ts'
import { honestAnswers } from './world.ts'

let stage: Stage

beforeAll(async () => {
  stage = await openStage()
})
afterAll(() => stage.close())

/** Messages of bob's that alpha does not get. */
async function unheard({ run, roomId, alpha, beta, gamma, bob }: Party, count: number): Promise<EventId[]> {
  run.network.part([[alpha.name], [beta.name, gamma.name]])
  const ids: EventId[] = []
  for (let said = 0; said < count; said++) ids.push(await run.say(bob, roomId, `unheard ${said}`))
  await run.network.settle()
  run.network.heal()
  return ids
}

/** What makes up a room for those in it. */
async function shapeOf(party: Party): Promise<unknown> {
  const { extremities, state, members, events } = await viewOf(party, party.alpha)
  return { extremities, state, members, events: [...events.keys()] }
}

describe('events whose predecessors did not come', () => {
  it.each(['1', '3', '12'])('have them fetched at once, in room version %s', (version) =>
    stage.play(version, async (party) => {
      const { run, roomId, alpha, beta, ann } = party
      const ids = await unheard(party, 12)
      const [received] = await run.receive(alpha, beta.name, roomId, [await textOf(party, beta, ids.at(-1)!)])
      expect(received!.kind).toBe('accepted')
      expect(run.questions.filter(({ from }) => from === alpha.name)).toEqual([
        { from: alpha.name, of: beta.name, kind: 'missingEvents' },
      ])
      const { synced, paged } = await shownTo(party, ann)
      expect(synced.slice(-ids.length)).toEqual(ids)
      expect(paged.slice(-ids.length)).toEqual(ids)
      expect((await viewOf(party, alpha)).extremities).toEqual([ids.at(-1)])
    }),
  )

  it('come in with a state from elsewhere where nobody has the predecessors', () =>
    stage.play('10', async (party) => {
      const { run, roomId, alpha, beta, gamma, ann } = party
      const ids = await unheard(party, 6)
      run.lies.set(beta.name, { ...honestAnswers(beta.engine.resident), missingEvents: async () => [] })
      const [received] = await run.receive(alpha, beta.name, roomId, [await textOf(party, beta, ids[4]!)])
      expect(received!.kind).toBe('accepted')
      const view = await viewOf(party, alpha)
      expect(view.events.has(ids[3]!)).toBe(false)
      expect((await shownTo(party, ann)).synced.at(-1)).toBe(ids[4])
      expect(await alpha.db.query('SELECT missing_id FROM event_gap WHERE room_nid = $1', [view.roomNid])).toEqual([
        { missing_id: ids[3] },
      ])

      // They turn up after all, and are no newest events.
      run.lies.clear()
      const texts = await honestAnswers(gamma.engine.resident).events(roomId, ids.slice(0, 4))
      expect(texts).toHaveLength(4)
      const late = await run.receive(alpha, gamma.name, roomId, texts)
      expect(late.map(({ kind }) => kind)).toEqual(texts.map(() => 'accepted'))
      expect(await alpha.db.query('SELECT missing_id FROM event_gap WHERE room_nid = $1', [view.roomNid])).toEqual([])
      expect((await viewOf(party, alpha)).extremities).toEqual(expect.not.arrayContaining(ids.slice(0, 4)))
    }))

  it.each(['1', '2', '12'])('are given exactly the state that was told, in room version %s', (version) =>
    stage.play(version, async (party) => {
      const { run, roomId, alpha, beta, gamma, ann, bob, cid } = party
      const own = party.version.creatorsAreInfinite ? {} : { [ann]: 100 }
      await setState(party, ann, 'm.room.power_levels', { users: { ...own, [cid]: 50 } })
      await run.network.settle()
      run.network.part([[alpha.name], [beta.name], [gamma.name]])
      // Each side changes the join rules. The kick is undone by what ann says of herself later, in room version 1.
      const first = [await setState(party, ann, 'm.room.join_rules', { join_rule: 'public', side: 'a' })]
      await run.does(ann, roomId, (rooms, by) => rooms.kick(by, roomId, cid, {}))
      first.push(...(await viewOf(party, alpha)).extremities)
      first.push(await setState(party, ann, 'm.room.member', { membership: 'join', displayname: 'Ann' }, ann))
      const second: EventId[] = []
      for (let said = 0; said < 4; said++) second.push(await run.say(cid, roomId, `${said}`))
      second.push(await setState(party, cid, 'm.room.join_rules', { join_rule: 'public', side: 'b' }))
      run.network.heal()
      for (const [from, ids] of [
        [gamma, second],
        [alpha, first],
      ] as const) {
        const received = await run.receive(
          beta,
          from.name,
          roomId,
          await honestAnswers(from.engine.resident).events(roomId, ids),
        )
        expect(received.map(({ kind }) => kind)).toEqual(ids.map(() => 'accepted'))
      }
      const both = await run.say(bob, roomId, 'both')
      run.lies.set(beta.name, { ...honestAnswers(beta.engine.resident), missingEvents: async () => [] })
      await run.receive(gamma, beta.name, roomId, [await textOf(party, beta, both)])
      const [theirs, ours] = [await viewOf(party, beta), await viewOf(party, gamma)]
      expect(ours.events.get(both)!.prev).toHaveLength(2)
      expect(ours.events.has(first[2]!)).toBe(ours.events.get(first[2]!)?.standing === 'outlier')
      const states = await Promise.all([theirs, ours].map((view) => view.stateBefore(view.events.get(both)!)))
      expect(new Map([...states[1]!].sort())).toEqual(new Map([...states[0]!].sort()))
    }),
  )

  it('wait for another time where nobody answers', () =>
    stage.play('12', async (party) => {
      const { run, roomId, alpha, beta } = party
      const ids = await unheard(party, 3)
      const text = await textOf(party, beta, ids[2]!)
      const before = await shapeOf(party)
      run.network.conditions = { ...run.network.conditions, silence: 1 }
      expect((await run.receive(alpha, beta.name, roomId, [text]))[0]!.kind).toBe('dropped')
      expect(await shapeOf(party)).toEqual(before)
      run.network.conditions = { ...run.network.conditions, silence: 0 }
      expect((await run.receive(alpha, beta.name, roomId, [text]))[0]!.kind).toBe('accepted')
    }))
})

it.each(['2', '12'])('users go on while an answer is awaited, in room version %s', (version) =>
  stage.play(version, async (party) => {
    const { run, roomId, alpha, beta, ann } = party
    const ids = await unheard(party, 5)
    const resident = honestAnswers(beta.engine.resident)
    const meanwhile: EventId[] = []
    run.lies.set(beta.name, {
      ...resident,
      async missingEvents(id, between) {
        meanwhile.push(await run.say(ann, roomId, 'still here'))
        meanwhile.push(await setState(party, ann, 'm.room.topic', { topic: 'meanwhile' }))
        return resident.missingEvents(id, between)
      },
    })
    const [received] = await run.receive(alpha, beta.name, roomId, [await textOf(party, beta, ids.at(-1)!)])
    expect(received!.kind).toBe('accepted')
    const view = await viewOf(party, alpha)
    expect(view.extremities.toSorted()).toEqual([ids.at(-1), meanwhile.at(-1)].sort())
    expect(view.state.get('m.room.topic ')).toBe(meanwhile.at(-1))
    const { paged } = await shownTo(party, ann)
    expect(paged.slice(-7).sort()).toEqual([...ids, ...meanwhile].sort())
  }),
)

describe('a transaction', () => {
  it('in any order is taken in without a question', () =>
    stage.play('6', async (party) => {
      const { run, roomId, alpha, beta } = party
      const ids = await unheard(party, 8)
      const texts = await honestAnswers(beta.engine.resident).events(roomId, ids)
      const received = await run.receive(alpha, beta.name, roomId, texts.toReversed())
      expect(received.map((one) => [one.kind, one.eventId])).toEqual(ids.toReversed().map((id) => ['accepted', id]))
      expect(run.questions.filter(({ from }) => from === alpha.name)).toEqual([])
      expect((await viewOf(party, alpha)).extremities).toEqual([ids.at(-1)])
    }))

  it('that is repeated, alone or within others, changes nothing', () =>
    stage.play('12', async (party) => {
      const { run, roomId, alpha, beta } = party
      const ids = await unheard(party, 4)
      const texts = await honestAnswers(beta.engine.resident).events(roomId, ids)
      const first = await run.receive(alpha, beta.name, roomId, [...texts, ...texts])
      expect(first.map(({ eventId }) => eventId)).toEqual([...ids, ...ids])
      const before = await shapeOf(party)
      for (const again of [texts, texts.slice(2), texts.toReversed()]) {
        const received = await run.receive(alpha, beta.name, roomId, again)
        expect(received.map(({ kind }) => kind)).toEqual(again.map(() => 'known'))
      }
      expect(await shapeOf(party)).toEqual(before)
    }))

  it('for a room that nobody here was ever in leaves no trace', () =>
    stage.play('12', async (party) => {
      const { run, roomId, alpha, beta, bob } = party
      const { rooms } = beta.engine.services
      const other = await rooms.create(await beta.as(bob), { preset: 'public_chat', room_version: '12' }, undefined)
      const view = await viewOf({ roomId: other.roomId }, beta)
      const texts = await honestAnswers(beta.engine.resident).events(other.roomId, [...view.events.keys()])
      expect(texts.length).toBeGreaterThan(4)
      for (const id of [other.roomId, '!nowhere:beta.test' as RoomId]) {
        const received = await run.receive(alpha, beta.name, id, texts)
        expect(received.map(({ kind }) => kind)).toEqual(texts.map(() => 'dropped'))
      }
      // Nor when it is said to be of a room that is known.
      const astray = await run.receive(alpha, beta.name, roomId, texts)
      expect(astray.map(({ kind }) => kind)).toEqual(texts.map(() => 'dropped'))
      const rows = await alpha.db.query('SELECT event_id FROM event WHERE event_id = ANY($1::text[])', [
        [...view.events.keys()],
      ])
      expect(rows).toEqual([])
    }))
})
