import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { EventId } from '../../src/core/ids.ts'
import { reconcile, verify } from './convergence.ts'
import { openStage, type Party, type Stage, setState, shownTo, textOf, viewOf } from './party.ts'
import { parsed } from './run.ts'

let stage: Stage

beforeAll(async () => {
  stage = await openStage()
})
afterAll(() => stage.close())

async function comeTogether(party: Party): Promise<void> {
  party.run.network.heal()
  const present = await reconcile(party)
  await verify(party, present)
}

describe('a ban on one side of a partition, and messages of the banned user on the other', () => {
  it.each(['1', '6', '10', '12'])('are soft-failed and shown to nobody, in room version %s', (version) =>
    stage.play(version, async (party) => {
      const { run, roomId, alpha, beta, gamma, ann, bob, cid } = party
      run.network.part([[alpha.name, gamma.name], [beta.name]])
      await run.does(ann, roomId, (rooms, by) => rooms.ban(by, roomId, bob, {}))
      await run.network.settle()
      const late = await run.say(bob, roomId, 'you cannot hear me')
      run.network.heal()

      const before = await viewOf(party, alpha)
      const [received] = await run.receive(alpha, beta.name, roomId, [await textOf(party, beta, late)])
      expect(received).toMatchObject({ kind: 'soft-failed', eventId: late })
      const after = await viewOf(party, alpha)
      expect(after.events.get(late)).toMatchObject({ standing: 'soft-failed', isInTimeline: false })
      expect([after.extremities, after.state, after.members]).toEqual([
        before.extremities,
        before.state,
        before.members,
      ])

      const answer = await run.say(ann, roomId, 'is he gone?')
      const { synced, paged } = await shownTo(party, ann)
      expect(synced).toContain(answer)
      expect(paged).toContain(answer)
      expect([...synced, ...paged]).not.toContain(late)
      expect((await viewOf(party, alpha)).events.get(answer)!.prev).not.toContain(late)

      await run.network.settle()
      expect((await viewOf(party, gamma)).events.has(late)).toBe(false)
      expect((await shownTo(party, cid)).paged).toContain(answer)
    }),
  )

  it('count once a user who may speak builds on them, and are shown to nobody all the same', () =>
    stage.play('10', async (party) => {
      const { run, roomId, alpha, beta, ann, bob } = party
      const eve = run.user('eve', beta)
      await run.does(eve, roomId, (rooms, by) => rooms.join(by, roomId, {}))
      await run.network.settle()
      run.network.part([[alpha.name], [beta.name]])
      await run.does(ann, roomId, (rooms, by) => rooms.ban(by, roomId, bob, {}))
      const late = await run.say(bob, roomId, 'anybody there?')
      const built = await run.say(eve, roomId, 'yes')
      run.network.heal()

      const texts = [await textOf(party, beta, late), await textOf(party, beta, built)]
      const received = await run.receive(alpha, beta.name, roomId, texts)
      expect(received.map(({ kind }) => kind)).toEqual(['soft-failed', 'accepted'])
      const { paged } = await shownTo(party, ann)
      expect(paged).toContain(built)
      expect(paged).not.toContain(late)
      await comeTogether(party)
    }))
})

describe('power levels that are changed on both sides', () => {
  it.each(['1', '2', '9', '11', '12'])('come out the same everywhere, in room version %s', (version) =>
    stage.play(version, async (party) => {
      const { run, alpha, beta, gamma, ann, bob, cid, version: rules } = party
      const creators = rules.creatorsAreInfinite ? {} : { [ann]: 100 }
      const levels = (users: Record<string, number>) => ({ users: { ...creators, ...users }, state_default: 50 })
      await setState(party, ann, 'm.room.power_levels', levels({ [bob]: 99 }))
      await run.network.settle()
      run.network.part([[alpha.name], [beta.name, gamma.name]])
      const demoted = await setState(party, ann, 'm.room.power_levels', levels({ [bob]: 0 }))
      await run.network.pass(1_000)
      await setState(party, bob, 'm.room.power_levels', levels({ [bob]: 99, [cid]: 98 }))
      await setState(party, bob, 'm.room.topic', { topic: "bob's" })
      const topic = await setState(party, ann, 'm.room.topic', { topic: "ann's" })
      await comeTogether(party)
      const { state } = await viewOf(party, beta)
      // Ann stands above bob: what she says comes first, and then bob may no more.
      expect([state.get('m.room.power_levels '), state.get('m.room.topic ')]).toEqual([demoted, topic])
    }),
  )
})

describe('a server whose last user left and comes back', () => {
  it.each(['1', '5', '12'])('finds the room as it is, in room version %s', (version) =>
    stage.play(version, async (party) => {
      const { run, roomId, alpha, gamma, ann, bob, cid } = party
      await run.say(cid, roomId, 'bye')
      await run.does(cid, roomId, (rooms, by) => rooms.leave(by, roomId, {}))
      await run.network.settle()
      await setState(party, ann, 'm.room.topic', { topic: 'without cid' })
      const missed: EventId[] = []
      for (let count = 0; count < 5; count++) missed.push(await run.say(bob, roomId, `without cid ${count}`))
      await run.network.settle()
      expect((await viewOf(party, gamma)).events.has(missed[0]!)).toBe(false)

      expect(await run.doesFromOutside(cid, roomId, 'join', alpha)).toBe(true)
      await run.network.settle()
      const [mine, theirs] = [await viewOf(party, gamma), await viewOf(party, alpha)]
      expect(mine.extremities).toEqual(theirs.extremities)
      expect(new Map([...mine.state].sort())).toEqual(new Map([...theirs.state].sort()))
      const heard = await run.say(ann, roomId, 'welcome back')
      await run.network.settle()
      expect((await shownTo(party, cid)).synced).toContain(heard)
      await comeTogether(party)
    }),
  )
})

it('events that come while local users speak are all taken in', () =>
  stage.play('12', async (party) => {
    const { run, roomId, alpha, beta, gamma, ann, bob, cid } = party
    run.network.part([[alpha.name], [beta.name], [gamma.name]])
    const sent: { from: Party['beta']; ids: EventId[] }[] = []
    for (const [from, user] of [
      [beta, bob],
      [gamma, cid],
    ] as const) {
      const ids: EventId[] = []
      for (let count = 0; count < 10; count++) ids.push(await run.say(user, roomId, `${count}`))
      ids.push(await setState(party, user, 'm.room.member', { membership: 'join', displayname: 'me' }, user))
      sent.push({ from, ids })
    }
    run.network.heal()
    const by = await alpha.as(ann)
    const { rooms } = alpha.engine.services
    const speaking = Array.from({ length: 20 }, (_, count) =>
      rooms.send(
        by,
        roomId,
        'm.room.message',
        { content: { body: `${count}` }, offence: undefined },
        run.transaction(),
      ),
    )
    const receiving = sent.map(async ({ from, ids }) => {
      const texts = (await from.engine.resident.events(roomId, ids)).map(({ json }) => json)
      // Twice, as a server does that did not hear the answer.
      const call = () => alpha.engine.receiver.receive(from.name, roomId, texts.map(parsed))
      const [once, twice] = await Promise.all([call(), call()])
      expect(once.map(({ kind }) => kind)).toEqual(ids.map(() => 'accepted'))
      expect(twice.map(({ kind }) => kind)).toEqual(ids.map(() => 'known'))
    })
    const [said] = await Promise.all([Promise.all(speaking), Promise.all(receiving)])
    const { events } = await viewOf(party, alpha)
    for (const id of [...said, ...sent.flatMap(({ ids }) => ids)]) expect(events.get(id)?.standing).toBe(null)
    await run.relay(alpha, roomId)
    await comeTogether(party)
  }))
