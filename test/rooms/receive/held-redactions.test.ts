import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { compileFilter } from '../../../src/core/filter.ts'
import type { EventId, UserId } from '../../../src/core/ids.ts'
import { roomVersion } from '../../../src/core/room-version.ts'
import { Besieged, EVIL } from '../besieged.ts'
import { Forge } from '../forge.ts'

const CREATOR = `@creator:${EVIL}` as UserId
const GUEST = '@guest:other.test' as UserId

let home: Besieged
beforeAll(async () => {
  home = await Besieged.open()
})
afterAll(() => home.close())

async function openRoom(id: string, name: string): Promise<Forge> {
  const forge = Forge.open(roomVersion(id)!, `${name}${id}`, CREATOR)
  forge.member(GUEST, 'join' as const)
  await home.takeJoin(forge, 'ann')
  home.answers(forge.answers({ missingEvents: async () => [] }))
  return forge
}

const redact = (forge: Forge, sender: UserId, redacts: EventId, more = {}) =>
  forge.make({ type: 'm.room.redaction', sender, redacts, ...more })

/** What a sync tells of the timeline of a room since a token, and where the next goes on. */
async function news(forge: Forge, since?: string): Promise<{ ids: EventId[]; next: string }> {
  const { rooms, next_batch: next } = await home.sync('ann', since)
  const events: { event_id: EventId }[] = rooms?.join?.[forge.roomId]?.timeline.events ?? []
  return { ids: events.map(({ event_id }) => event_id), next }
}

/** What paging back through the room shows, newest first. */
async function paged(forge: Forge): Promise<EventId[]> {
  const who = await home.server.as(home.user('ann'))
  const answer = await home.inRun(() =>
    home.server.engine.services.roomReader.messages(who, forge.roomId, {
      ...{ direction: 'b', from: undefined, to: undefined, limit: 100 },
      filter: compileFilter(undefined).room.timeline,
    }),
  )
  const { chunk } = JSON.parse(answer.toBuffer().toString())
  return chunk.map(({ event_id }: { event_id: EventId }) => event_id)
}

async function single(forge: Forge, id: EventId): Promise<boolean> {
  const who = await home.server.as(home.user('ann'))
  const seen = home.server.engine.services.roomReader.event(who, forge.roomId, id)
  return seen.then(
    () => true,
    () => false,
  )
}

describe.each(['3', '10', '11', '12'])('room version %s', (id) => {
  test('B1: a redaction by a member without the power is sent to no client', async () => {
    const forge = await openRoom(id, 'powerless')
    const { next } = await news(forge)
    const said = forge.say(CREATOR, 'stays')
    const redaction = redact(forge, GUEST, said)
    const after = forge.say(CREATOR, 'after')
    expect(await home.kinds(forge, [said, redaction, after])).toEqual(['accepted', 'accepted', 'accepted'])
    expect((await news(forge, next)).ids).toEqual([said, after])
    expect(await paged(forge)).not.toContain(redaction)
    expect(await single(forge, redaction)).toBe(false)
    await home.server.restart()
    expect((await news(forge, next)).ids).toEqual([said, after])
    expect(await paged(forge)).not.toContain(redaction)
    await home.audit(forge.roomId)
  })

  test('B1: a redaction that names an event of another room is sent to no client', async () => {
    const one = await openRoom(id, 'here')
    const said = one.say(CREATOR, 'stays')
    expect(await home.kinds(one, [said])).toEqual(['accepted'])
    const two = await openRoom(id, 'there')
    const { next } = await news(two)
    const redaction = redact(two, CREATOR, said)
    const after = two.say(CREATOR, 'after')
    expect(await home.kinds(two, [redaction, after])).toEqual(['accepted', 'accepted'])
    expect((await news(two, next)).ids).toEqual([after])
    await home.server.restart()
    expect((await news(two, next)).ids).toEqual([after])
    expect(await paged(two)).not.toContain(redaction)
  })

  test.each([false, true])(
    'B1: a redaction is held back until its target comes, then shown once (restart between: %s)',
    async (restarts) => {
      const forge = await openRoom(id, `early${restarts}`)
      const { next } = await news(forge)
      const state = forge.states.get(forge.latest!)!
      const before = forge.latest!
      const said = forge.say(CREATOR, 'oops')
      // Beside its target and not after it: nothing but the id is missing.
      const redaction = redact(forge, CREATOR, said, { prev: [before], state })
      expect(await home.kinds(forge, [redaction])).toEqual(['accepted'])
      const early = await news(forge, next)
      expect(early.ids).toEqual([])
      expect(await paged(forge)).not.toContain(redaction)
      if (restarts) await home.server.restart()
      expect(await home.kinds(forge, [said])).toEqual(['accepted'])
      const late = await news(forge, early.next)
      expect(late.ids).toEqual([said, redaction])
      expect((await news(forge, late.next)).ids).toEqual([])
      expect((await paged(forge)).slice(0, 2)).toEqual([redaction, said])
      await home.server.restart()
      expect((await news(forge, early.next)).ids).toEqual([said, redaction])
      expect((await paged(forge)).slice(0, 2)).toEqual([redaction, said])
      await home.audit(forge.roomId)
    },
  )

  test('B1: a redaction that builds on a target which cannot be had is held back, and what comes after it shown', async () => {
    const forge = await openRoom(id, 'gap')
    const { next } = await news(forge)
    const said = forge.say(CREATOR, 'oops')
    const redaction = redact(forge, CREATOR, said)
    const after = forge.say(CREATOR, 'after')
    expect(await home.kinds(forge, [redaction, after])).toEqual(['accepted', 'accepted'])
    const early = await news(forge, next)
    expect(early.ids).toEqual([after])
    await home.server.restart()
    expect(await home.kinds(forge, [said])).toEqual(['accepted'])
    expect((await news(forge, early.next)).ids).toEqual([said, redaction])
    await home.audit(forge.roomId)
  })

  test('B1: what is held back and turns out to have no power stays so', async () => {
    const forge = await openRoom(id, 'never')
    const { next } = await news(forge)
    const state = forge.states.get(forge.latest!)!
    const before = forge.latest!
    const said = forge.say(CREATOR, 'stays')
    const redaction = redact(forge, GUEST, said, { prev: [before], state })
    expect(await home.kinds(forge, [redaction, said])).toEqual(['accepted', 'accepted'])
    expect((await news(forge, next)).ids).toEqual([said])
    await home.server.restart()
    expect(await paged(forge)).not.toContain(redaction)
  })

  test('B1: redactions and their target in one transaction, in any order, are all shown', async () => {
    const forge = await openRoom(id, 'once')
    const { next } = await news(forge)
    const state = forge.states.get(forge.latest!)!
    const before = forge.latest!
    const said = forge.say(CREATOR, 'oops')
    const early = redact(forge, CREATOR, said, { prev: [before], state })
    const late = redact(forge, CREATOR, said, { prev: [said] })
    expect(await home.kinds(forge, [early, late, said])).toEqual(['accepted', 'accepted', 'accepted'])
    expect(new Set((await news(forge, next)).ids)).toEqual(new Set([said, early, late]))
    await home.server.restart()
    expect(new Set((await news(forge, next)).ids)).toEqual(new Set([said, early, late]))
    await home.audit(forge.roomId)
  })
})

test('B1: in versions 1 and 2, where the rules judge them, redactions are shown as they come', async () => {
  const forge = await openRoom('1', 'old')
  const { next } = await news(forge)
  const state = forge.states.get(forge.latest!)!
  const before = forge.latest!
  const said = forge.say(CREATOR, 'oops')
  const redaction = redact(forge, CREATOR, said, { prev: [before], state })
  expect(await home.kinds(forge, [redaction])).toEqual(['accepted'])
  expect((await news(forge, next)).ids).toEqual([redaction])
})
