import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { EventId, ServerName, UserId } from '../../../src/core/ids.ts'
import { roomVersion } from '../../../src/core/room-version.ts'
import { MAX_EXTREMITIES } from '../../../src/domain/limits.ts'
import { Besieged, EVIL } from '../besieged.ts'
import { Forge } from '../forge.ts'
import type { ForgedState } from '../forged-state.ts'

const OTHER = 'other.test' as ServerName
const CREATOR = `@creator:${EVIL}` as UserId
const GUEST = `@guest:${OTHER}` as UserId

let home: Besieged
beforeAll(async () => {
  home = await Besieged.open()
})
afterAll(() => home.close())

async function openRoom(id: string, name: string): Promise<{ forge: Forge; state: ForgedState }> {
  const forge = Forge.open(roomVersion(id)!, `${name}${id}`, CREATOR)
  forge.member(GUEST, 'join')
  const state = forge.states.get(forge.latest!)!
  await home.takeJoin(forge, 'ann')
  home.answers(forge.answers())
  return { forge, state }
}

describe.each(['1', '6', '11', '12'])('room version %s', (id) => {
  it('a banned user is shut out also behind a gap, and what builds on it is judged by itself', async () => {
    const { forge, state } = await openRoom(id, 'banned')
    const first = forge.say(CREATOR, 'first')
    const ban = forge.member(GUEST, 'ban', { sender: CREATOR, prev: [first] })
    expect(await home.kinds(forge, [first, ban])).toEqual(['accepted', 'accepted'])
    const hidden = forge.say(GUEST, 'nobody has this', { prev: [first], state })
    const late = forge.say(GUEST, 'let me in', { prev: [hidden], state })
    home.answers(forge.answers({ missingEvents: async () => [] }))
    expect(await home.kinds(forge, [late])).toEqual(['soft-failed'])
    expect((await home.view(forge.roomId)).extremities).toEqual([ban])
    const over = forge.say(CREATOR, 'over it', { prev: [late, ban], state: forge.states.get(ban)! })
    expect(await home.kinds(forge, [over])).toEqual(['accepted'])
    expect((await home.view(forge.roomId)).extremities).toEqual([over])
    await home.audit(forge.roomId)
  })

  it('extremities behind soft-failed events are covered by what builds on these', async () => {
    const { forge } = await openRoom(id, 'covered')
    const first = forge.say(GUEST, 'first')
    const state = forge.states.get(first)!
    const tip = forge.set(GUEST, 'test.own', { n: 1 }, { prev: [first], state_key: GUEST })
    const levels = { ...forge.events.get(state.get('m.room.power_levels ')!)!.content, events: { 'test.own': 0 } }
    forge.latest = first
    const opened = forge.set(CREATOR, 'm.room.power_levels', levels)
    const side = forge.say(GUEST, 'side', { prev: [opened] })
    const kick = forge.member(GUEST, 'leave', { sender: CREATOR, prev: [opened] })
    const own = forge.set(GUEST, 'test.own', { n: 2 }, { prev: [side], state_key: GUEST })
    const deeper = forge.say(GUEST, 'deeper', { prev: [own] })
    expect(await home.kinds(forge, [first, tip, opened, side, kick, own, deeper])).toEqual([
      'accepted',
      'rejected',
      'accepted',
      'accepted',
      'accepted',
      'soft-failed',
      'soft-failed',
    ])
    const joined = forge.say(CREATOR, 'joined', { prev: [deeper], state: forge.states.get(opened)! })
    expect(await home.kinds(forge, [joined])).toEqual(['accepted'])
    const view = await home.view(forge.roomId)
    expect(new Set(view.extremities)).toEqual(new Set([kick, joined]))
    await home.say('ann', forge.roomId, 'together')
    expect((await home.view(forge.roomId)).extremities).toHaveLength(1)
    await home.audit(forge.roomId)
  })

  it('more branches than an event can build on, with sends of ours between', async () => {
    const { forge } = await openRoom(id, 'many')
    const from = forge.latest!
    const tips = Array.from({ length: 25 }, (_, n) =>
      forge.set(CREATOR, 'test.state', { n }, { prev: [from], state_key: `${n % 7}` }),
    )
    const kinds = await home.kinds(forge, tips)
    expect(kinds).toEqual(tips.map(() => 'accepted'))
    expect((await home.view(forge.roomId)).extremities).toHaveLength(25)
    await home.say('ann', forge.roomId, 'one')
    await home.audit(forge.roomId)
    expect((await home.view(forge.roomId)).extremities).toHaveLength(6)
    await home.server.restart()
    await home.say('ann', forge.roomId, 'two')
    await home.audit(forge.roomId)
    const more = forge.say(CREATOR, 'more', { prev: [tips[24]!] })
    expect(await home.kinds(forge, [more])).toEqual(['accepted'])
    await home.say('ann', forge.roomId, 'three')
    expect((await home.view(forge.roomId)).extremities).toHaveLength(1)
    await home.audit(forge.roomId)
  })

  it('unknown events without end', async () => {
    const { forge } = await openRoom(id, 'endless')
    const unknown = (n: number): EventId[] =>
      Array.from(
        { length: 20 },
        (_, k) =>
          (forge.version.eventIdFormat === 'opaque'
            ? `$u${n}-${k}:${EVIL}`
            : `$${`${n}x${k}x`.padEnd(43, 'A')}`) as EventId,
      )
    let made = 0
    const state = forge.states.get(forge.latest!)!
    const another = (): EventId => forge.say(CREATOR, `${made}`, { prev: unknown(made++), state, depth: 1000 })
    const { questions } = home.run
    home.answers(
      forge.answers({
        missingEvents: async () => Array.from({ length: 50 }, () => forge.texts.get(another())!),
        stateIds: async () => ({ state: unknown(9999), authChain: unknown(9998) }),
        events: async () => [],
      }),
    )
    const before = questions.length
    expect(await home.kinds(forge, [another()])).toEqual(['dropped'])
    expect(questions.length - before).toBeLessThan(80)
    home.answers(forge.answers({ missingEvents: async () => [], stateIds: async () => undefined }))
    forge.latest = [...forge.states].find(([, after]) => after === state)![0]
    expect(
      await home.kinds(forge, [forge.say(CREATOR, 'as ever', { prev: (await home.view(forge.roomId)).extremities })]),
    ).toEqual(['accepted'])
    await home.audit(forge.roomId)
  })

  it('a server that never answers holds up no other room, and nobody of ours', async () => {
    const { forge } = await openRoom(id, 'silent')
    const { forge: other } = await openRoom(id, 'lively')
    let release: () => void = () => undefined
    const silence = new Promise<never[]>((resolve) => {
      release = () => resolve([])
    })
    home.answers({ missingEvents: () => silence, stateIds: async () => undefined, events: async () => [] }, OTHER)
    forge.say(GUEST, 'missing')
    const stuck = home.receive(forge, [forge.say(GUEST, 'stuck')], OTHER)
    expect(await home.kinds(other, [other.say(CREATOR, 'hello')])).toEqual(['accepted'])
    await home.say('ann', forge.roomId, 'hello')
    release()
    expect((await stuck).map(({ kind }) => kind)).toEqual(['dropped'])
    await home.audit(forge.roomId)
  })

  it('events of ours that come back, as they are and altered', async () => {
    const { forge } = await openRoom(id, 'ours')
    const ours = await home.say('ann', forge.roomId, 'mine')
    await forge.catchUp(home.server)
    const missing = forge.say(CREATOR, 'missing', { prev: [ours] })
    const said = forge.say(CREATOR, 'said', { prev: [missing] })
    const altered = JSON.stringify({ ...forge.events.get(ours)!, content: { msgtype: 'm.text', body: 'not mine' } })
    const answered = [forge.texts.get(ours)!, altered, forge.texts.get(missing)!]
    home.answers(forge.answers({ missingEvents: async () => answered }))
    const [received, more] = await Promise.all([home.kinds(forge, [said, ours]), home.say('ann', forge.roomId, 'more')])
    expect(received).toEqual(['accepted', 'known'])
    forge.texts.set(ours, altered)
    expect(await home.kinds(forge, [ours])).toEqual(['known'])
    const view = await home.view(forge.roomId)
    expect(view.events.get(ours)!.pdu.content.body).toBe('mine')
    expect(home.standing(view, more)).toBe('accepted')
    await home.audit(forge.roomId)
  })

  it('answers with events of other rooms, and with what was not asked for', async () => {
    const { forge } = await openRoom(id, 'asked')
    const { forge: foreign } = await openRoom(id, 'foreign')
    const theirs = foreign.say(CREATOR, 'elsewhere')
    const missing = forge.set(CREATOR, 'm.room.topic', { topic: 'missing' })
    const said = forge.say(CREATOR, 'said')
    const unasked = forge.say(CREATOR, 'unasked')
    const texts = [
      foreign.texts.get(theirs)!,
      forge.texts.get(unasked)!,
      forge.texts.get(missing)!,
      forge.texts.get(missing)!,
    ]
    home.answers(forge.answers({ missingEvents: async () => texts }))
    expect(await home.kinds(forge, [said])).toEqual(['accepted'])
    const view = await home.view(forge.roomId)
    expect([...view.events.keys()]).not.toContain(theirs)
    expect([missing, said, unasked].map((one) => home.standing(view, one))).toEqual([
      'accepted',
      'accepted',
      'accepted',
    ])
    await home.audit(forge.roomId)
  })
})

it('branches without end: a room keeps so many, and what it has can be gone on with', async () => {
  const { forge } = await openRoom('10', 'bushy')
  const from = forge.latest!
  const tips = Array.from({ length: MAX_EXTREMITIES + 20 }, (_, n) => forge.say(CREATOR, `${n}`, { prev: [from] }))
  for (let at = 0; at < tips.length; at += 100) {
    const part = tips.slice(at, at + 100)
    expect(await home.kinds(forge, part)).toEqual(part.map(() => 'accepted'))
  }
  const view = await home.view(forge.roomId)
  expect(view.extremities).toEqual(tips.slice(0, MAX_EXTREMITIES))
  const topic = forge.set(CREATOR, 'm.room.topic', { topic: 'goes on' }, { prev: [tips[0]!] })
  expect(await home.kinds(forge, [topic])).toEqual(['accepted'])
  await home.say('ann', forge.roomId, 'mine')
  const after = await home.view(forge.roomId)
  expect(after.extremities).toHaveLength(MAX_EXTREMITIES - 19)
  expect(after.state.get('m.room.topic ')).toBe(topic)
})

describe.each(['1', '2'])('room version %s, whose event ids are chosen', (id) => {
  it('circles of prev_events and of auth_events', async () => {
    const { forge } = await openRoom(id, 'circles')
    const tip = forge.latest!
    const [one, two] = [`$one-${id}:${EVIL}`, `$two-${id}:${EVIL}`] as [EventId, EventId]
    const state = forge.states.get(tip)!
    forge.say(CREATOR, 'one', { event_id: one, prev: [two, tip], state })
    forge.say(CREATOR, 'two', { event_id: two, prev: [one, tip], state })
    const [own, three, four] = [`$own-${id}:${EVIL}`, `$three-${id}:${EVIL}`, `$four-${id}:${EVIL}`] as [
      EventId,
      EventId,
      EventId,
    ]
    forge.say(CREATOR, 'own', { event_id: own, prev: [own, tip], state })
    const auth = [...state.values()].slice(0, 2)
    forge.member(CREATOR, 'join', { event_id: three, prev: [tip], auth: [...auth, four], state })
    forge.member(CREATOR, 'join', { event_id: four, prev: [tip], auth: [...auth, three], state })
    for (const kind of await home.kinds(forge, [one, two, own, three, four]))
      expect(['dropped', 'rejected']).toContain(kind)
    forge.latest = tip
    expect(await home.kinds(forge, [forge.say(CREATOR, 'as ever')])).toEqual(['accepted'])
    await home.audit(forge.roomId)
  })

  it('an id that is used again, in the room and in another, and one of a server that did not sign', async () => {
    const { forge } = await openRoom(id, 'again')
    const { forge: other } = await openRoom(id, 'elsewhere')
    const prev = [forge.latest!]
    const said = forge.say(CREATOR, 'first')
    expect(await home.kinds(forge, [said])).toEqual(['accepted'])
    forge.say(CREATOR, 'second', { event_id: said, prev, state: forge.states.get(said)! })
    expect(await home.kinds(forge, [said])).toEqual(['known'])
    other.say(CREATOR, 'third', { event_id: said })
    expect(await home.kinds(other, [said])).toEqual(['dropped'])
    expect((await home.view(forge.roomId)).events.get(said)!.pdu.content.body).toBe('first')
    const foreign = forge.say(CREATOR, 'signed by one', { event_id: `$foreign-${id}:${OTHER}` as EventId, prev })
    expect(await home.kinds(forge, [foreign])).toEqual(['dropped'])
    for (const room of [forge, other]) await home.audit(room.roomId)
  })
})
