import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { RoomId, UserId } from '../../../src/core/ids.ts'
import { roomVersion } from '../../../src/core/room-version.ts'
import { Besieged, EVIL, idsIn } from '../../rooms/besieged.ts'
import { Forge } from '../../rooms/forge.ts'
import type { Json } from '../../support/api.ts'
import { clientOf } from './besieged-client.ts'
import { Connection, FORMS, type Request, type SyncClient, strippedOf } from './connection.ts'

const CREATOR = `@creator:${EVIL}` as UserId
const GUEST = `@guest:${EVIL}` as UserId
const LATE = `@late:${EVIL}` as UserId
const VERSION = roomVersion('10')!

let home: Besieged
let ann: SyncClient
let conn = 0
beforeAll(async () => {
  home = await Besieged.open()
  ann = await clientOf(home, 'ann')
})
afterAll(() => home.close())

const connect = (form: (typeof FORMS)[number]) => new Connection(ann, form, `reset${++conn}`)
const inRoom = (room: string, more: Json = {}): Request => ({
  rooms: {
    [room]: {
      limit: 20,
      state: [
        ['m.room.name', ''],
        ['m.room.topic', ''],
        ['m.room.join_rules', ''],
        ['m.room.member', '*'],
      ],
      ...more,
    },
  },
})

/** `type state_key` of the state in an answer, with the event's id; undefined for a key without content. */
const stateIn = (section: Json): Map<string, string | undefined> =>
  new Map((section?.required_state ?? []).map((event: Json) => [`${event.type} ${event.state_key}`, event.event_id]))

interface Settled {
  readonly forge: Forge
  readonly room: RoomId
  /** What others build on who have not heard of what came since. */
  readonly fork: NonNullable<Forge['latest']>
}

/** A room of a creator and a guest who may change its state, with users of ours in it. */
async function openRoom(name: string, ours: readonly string[]): Promise<Settled> {
  const forge = Forge.open(VERSION, `${name}-${++conn}`, CREATOR, { users: { [GUEST]: 50 }, state_default: 50 })
  forge.member(GUEST, 'join')
  forge.set(CREATOR, 'm.room.name', { name: 'first' })
  for (const user of ours) {
    await home.takeJoin(forge, user)
    await forge.catchUp(home.server)
  }
  home.answers(forge.answers())
  return { forge, room: forge.roomId, fork: forge.latest! }
}

describe.each(FORMS)('state that changes without an event of its own, in the %s form', (form) => {
  it('name, topic and join rules go back to what they were when their sender turns out to have had no right', async () => {
    const { forge, room, fork } = await openRoom('names', ['ann'])
    const before = forge.states.get(fork)!
    const changes = [
      forge.set(GUEST, 'm.room.name', { name: 'second' }),
      forge.set(GUEST, 'm.room.topic', { topic: 'of a guest' }),
      forge.set(GUEST, 'm.room.join_rules', { join_rule: 'invite' }),
    ]
    expect(await home.kinds(forge, changes)).toEqual(['accepted', 'accepted', 'accepted'])
    const client = connect(form)
    const held = connect(form)
    const first = (await client.next(inRoom(room))).rooms[room]
    expect([first.name, stateIn(first).get('m.room.topic ')]).toEqual(['second', changes[1]])
    await held.next(inRoom(room))
    const classic = await home.sync('ann')
    const waiting = held.next({ ...inRoom(room), timeout: 20_000 })
    const levels = { users: { [CREATOR]: 100, [GUEST]: 0 }, state_default: 50, invite: 0 }
    const demotion = forge.set(CREATOR, 'm.room.power_levels', levels, { prev: [fork] })
    expect(await home.kinds(forge, [demotion])).toEqual(['accepted'])
    for (const answer of [await client.next(inRoom(room)), await waiting]) {
      const section = answer.rooms[room]
      expect(section.timeline.map(({ event_id }: Json) => event_id)).toEqual([demotion])
      const state = stateIn(section)
      expect(state.get('m.room.name ')).toBe(before.get('m.room.name '))
      expect(state.get('m.room.join_rules ')).toBe(before.get('m.room.join_rules '))
      expect(section.name).toBe('first')
      // The clients of the earlier text know no way to hear of removed state.
      expect([state.has('m.room.topic '), state.get('m.room.topic ')]).toEqual([form === 'merged', undefined])
      expect(section.initial).toBeUndefined()
    }
    const { next_batch: since } = classic
    const plain = (await home.sync('ann', since)).rooms.join[room]
    expect(idsIn(plain.timeline)).toEqual([demotion])
    const went = [before.get('m.room.name '), before.get('m.room.join_rules ')]
    expect(idsIn(plain.state)).toEqual(expect.arrayContaining(went))
    const after = (await home.sync('ann', since, { after: true })).rooms.join[room]
    expect(idsIn(after.state_after)).toEqual(expect.arrayContaining([...went, demotion]))
    expect((await client.next(inRoom(room))).rooms).toEqual({})
    const fresh = (await connect(form).next(inRoom(room))).rooms[room]
    expect([fresh.name, stateIn(fresh).has('m.room.topic ')]).toEqual(['first', false])
    await home.audit(room)
  })

  it('others are out whose join did not hold', async () => {
    const { forge, room, fork } = await openRoom('others', ['ann'])
    const late = forge.member(LATE, 'join')
    expect(await home.kinds(forge, [late, forge.say(LATE, 'hello')])).toEqual(['accepted', 'accepted'])
    const client = connect(form)
    const lazy = connect(form)
    const first = (await client.next(inRoom(room))).rooms[room]
    expect([first.joined_count, stateIn(first).get(`m.room.member ${LATE}`)]).toEqual([4, late])
    const wish = inRoom(room, { state: [], lazy: true })
    expect(stateIn((await lazy.next(wish)).rooms[room]).get(`m.room.member ${LATE}`)).toBe(late)
    const { next_batch: since } = await home.sync('ann')
    const closing = forge.set(CREATOR, 'm.room.join_rules', { join_rule: 'invite' }, { prev: [fork] })
    expect(await home.kinds(forge, [closing])).toEqual(['accepted'])
    const section = (await client.next(inRoom(room))).rooms[room]
    expect(section.joined_count).toBe(3)
    const key = `m.room.member ${LATE}`
    expect([stateIn(section).has(key), stateIn(section).get(key)]).toEqual([form === 'merged', undefined])
    const lazily = (await lazy.next(wish)).rooms[room]
    expect(lazily.joined_count).toBe(3)
    expect(stateIn(lazily).has(key)).toBe(form === 'merged')
    const classic = (await home.sync('ann', since)).rooms.join[room]
    expect(idsIn(classic.timeline)).toEqual([closing])
    await home.audit(room)
  })

  it('the user is out, and is told so though no event says it, and of nothing after', async () => {
    const { forge, room, fork } = await openRoom('own', ['keeper'])
    await home.takeLocalJoin('ann', room)
    await forge.catchUp(home.server)
    const client = connect(form)
    const held = connect(form)
    await client.next(inRoom(room))
    await held.next(inRoom(room))
    const { next_batch: since } = await home.sync('ann')
    const said = forge.say(CREATOR, 'ann may still see this')
    expect(await home.kinds(forge, [said])).toEqual(['accepted'])
    const waiting = held.next({ ...inRoom(room), timeout: 20_000 })
    const closing = forge.set(CREATOR, 'm.room.join_rules', { join_rule: 'invite' }, { prev: [fork] })
    expect(await home.kinds(forge, [closing])).toEqual(['accepted'])
    const after = forge.say(CREATOR, 'not for ann', { prev: [closing, said] })
    expect(await home.kinds(forge, [after])).toEqual(['accepted'])
    const fresh = await connect(form).next({ lists: { all: { range: [0, 99], limit: 20 } } })
    await waiting.then(
      (answer) => answer.rooms[room] && expect(isOut(answer.rooms[room]) || seesOnly(answer, [said])).toBe(true),
    )
    const answers = [await client.next(inRoom(room)), await held.next(inRoom(room)), fresh]
    expect(isOut(answers[0]!.rooms[room])).toBe(true)
    expect(answers[0]!.rooms[room].timeline.map(({ event_id }: Json) => event_id)).toContain(said)
    for (const answer of answers) {
      if (answer.rooms[room]) expect(isOut(answer.rooms[room])).toBe(true)
      expect(JSON.stringify(answer)).not.toContain('not for ann')
    }
    expect((await client.next(inRoom(room))).rooms).toEqual({})
    const classic = await home.sync('ann', since)
    expect(classic.rooms.join?.[room]).toBeUndefined()
    expect(idsIn(classic.rooms.leave[room].timeline)).toContain(said)
    expect(JSON.stringify(classic)).not.toContain('not for ann')
    await home.audit(room)

    function seesOnly({ rooms }: Json, ids: readonly string[]): boolean {
      return rooms[room].timeline.every(({ event_id }: Json) => ids.includes(event_id))
    }
  })

  it('the user who came and went between two answers is out too', async () => {
    const { forge, room, fork } = await openRoom('between', ['keeper'])
    const client = connect(form)
    const all: Request = { lists: { all: { range: [0, 99], limit: 20 } } }
    await client.next(all)
    const { next_batch: since } = await home.sync('ann')
    await home.takeLocalJoin('ann', room)
    await forge.catchUp(home.server)
    const closing = forge.set(CREATOR, 'm.room.join_rules', { join_rule: 'invite' }, { prev: [fork] })
    expect(await home.kinds(forge, [closing])).toEqual(['accepted'])
    const section = (await client.next(all)).rooms[room]
    expect(section === undefined || isOut(section)).toBe(true)
    const classic = await home.sync('ann', since)
    expect(classic.rooms?.join?.[room]).toBeUndefined()
    await home.audit(room)
  })

  it('who left sees nothing of what came after, when somebody bans them who has not heard of it', async () => {
    const { forge, room, fork } = await openRoom('banned', ['keeper'])
    await home.takeLocalJoin('ann', room)
    const view = await forge.catchUp(home.server)
    const join = view.extremities[0]!
    expect(join).not.toBe(fork)
    const { next_batch: since } = await home.sync('ann')
    await home.does('ann', (rooms, by) => rooms.leave(by, room, {}))
    await forge.catchUp(home.server)
    const changes = [forge.set(GUEST, 'm.room.topic', { topic: 'not for ann' }), forge.say(GUEST, 'nor is this')]
    expect(await home.kinds(forge, changes)).toEqual(['accepted', 'accepted'])
    const ban = forge.make({
      ...{ type: 'm.room.member', sender: CREATOR, state_key: ann.userId, prev: [join] },
      content: { membership: 'ban' },
    })
    expect(await home.kinds(forge, [ban])).toEqual(['accepted'])
    const section = (await connect(form).next(inRoom(room, { state: [['*', '*']] }))).rooms[room]
    expect(section.timeline.at(-1).event_id).toBe(ban)
    const classic = (await home.sync('ann', since)).rooms.leave[room]
    expect(idsIn(classic.timeline).at(-1)).toBe(ban)
    for (const shown of [section, classic]) {
      for (const hidden of changes) expect(JSON.stringify(shown)).not.toContain(hidden)
    }
  })

  it('who left sees nothing of what came after, when their coming and going turns out not to have held', async () => {
    const { forge, room } = await openRoom('gone', ['keeper'])
    const client = connect(form)
    const kick = forge.make({
      ...{ type: 'm.room.member', sender: CREATOR, state_key: ann.userId },
      content: { membership: 'leave' },
    })
    expect(await home.kinds(forge, [kick])).toEqual(['accepted'])
    await home.takeLocalJoin('ann', room)
    await client.next(inRoom(room))
    const { next_batch: since } = await home.sync('ann')
    await home.does('ann', (rooms, by) => rooms.leave(by, room, {}))
    await forge.catchUp(home.server)
    const changes = [forge.set(GUEST, 'm.room.topic', { topic: 'not for ann' }), forge.say(GUEST, 'nor is this')]
    expect(await home.kinds(forge, changes)).toEqual(['accepted', 'accepted'])
    const closing = forge.set(CREATOR, 'm.room.join_rules', { join_rule: 'invite' }, { prev: [kick] })
    expect(await home.kinds(forge, [closing])).toEqual(['accepted'])
    const section = (await client.next(inRoom(room, { state: [['*', '*']] }))).rooms[room]
    expect(isOut(section)).toBe(true)
    const classic = (await home.sync('ann', since)).rooms.leave[room]
    for (const shown of [section, classic]) {
      for (const hidden of [...changes, closing]) expect(JSON.stringify(shown)).not.toContain(hidden)
    }
  })

  it('the user is invited again whose join did not hold', async () => {
    const { forge, room } = await openRoom('invited', ['keeper'])
    const invite = forge.make({
      ...{ type: 'm.room.member', sender: CREATOR, state_key: ann.userId },
      content: { membership: 'invite' },
    })
    expect(await home.kinds(forge, [invite])).toEqual(['accepted'])
    const fork = forge.latest!
    await home.takeLocalJoin('ann', room)
    await forge.catchUp(home.server)
    const client = connect(form)
    await client.next(inRoom(room))
    const { next_batch: since } = await home.sync('ann')
    const closing = forge.set(CREATOR, 'm.room.join_rules', { join_rule: 'private' }, { prev: [fork] })
    expect(await home.kinds(forge, [closing])).toEqual(['accepted'])
    const section = (await client.next(inRoom(room))).rooms[room]
    expect(strippedOf(section)).toContainEqual(
      expect.objectContaining({ type: 'm.room.member', state_key: ann.userId, content: { membership: 'invite' } }),
    )
    expect(section.timeline).toBeUndefined()
    if (form === 'merged') expect(section.membership).toBe('invite')
    const classic = await home.sync('ann', since)
    expect([classic.rooms.join?.[room], classic.rooms.invite[room] === undefined]).toEqual([undefined, false])
    await home.audit(room)
  })

  /** Whether a room's section says that the user is out of it. */
  function isOut(section: Json): boolean {
    if (form === 'merged') return section.membership === 'leave'
    const own = section.required_state?.findLast(
      ({ type, state_key: key }: Json) => type === 'm.room.member' && key === ann.userId,
    )
    return own?.content.membership === 'leave'
  }
})
