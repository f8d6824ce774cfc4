import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { EventId, UserId } from '../../../src/core/ids.ts'
import { roomVersion } from '../../../src/core/room-version.ts'
import { Besieged, EVIL } from '../besieged.ts'
import { Forge, stateKey } from '../forge.ts'

const CREATOR = `@creator:${EVIL}` as UserId
const GUEST = `@guest:${EVIL}` as UserId

let home: Besieged
beforeAll(async () => {
  home = await Besieged.open()
})
afterAll(() => home.close())

describe.each(['1', '6', '9', '11', '12'])('room version %s', (id) => {
  const version = roomVersion(id)!
  const named = (name: string) => `${name}${id}`

  it('a rejected event that is known by its auth chain alone can be built on', async () => {
    const forge = Forge.open(version, named('rejected'), CREATOR)
    const ban = forge.member(GUEST, 'ban', { sender: CREATOR })
    const join = forge.member(GUEST, 'join')
    const joinedState = forge.states.get(join)!
    const before = new Map(forge.states.get(ban)!)
    await home.takeJoin(forge, 'ann', before)
    // What is cited is given, what lies before is not: a join that cites a ban is fetched, and is against the rules.
    home.answers(forge.answers({ missingEvents: async () => [] }))
    const said = forge.say(GUEST, 'hello', { prev: [join], state: joinedState })
    const next = forge.say(CREATOR, 'good morning', { prev: [join], state: before })
    forge.latest = next
    expect(await home.kinds(forge, [said])).toEqual(['rejected'])
    expect((await home.view(forge.roomId)).events.get(join)).toMatchObject({
      standing: 'rejected',
      before: { chain: -1 },
    })
    expect(await home.kinds(forge, [next, join])).toEqual(['accepted', 'rejected'])
    await home.audit(forge.roomId)
  })

  it('a join that the told state holds already', async () => {
    const forge = Forge.open(version, named('inside'), CREATOR)
    const state = forge.states.get(forge.latest!)!
    const join = forge.member(home.user('ann'), 'join')
    const shown = forge.shown(new Map(state).set(stateKey('m.room.member', home.user('ann')), join))
    const received = await home.inRun(() =>
      home.server.engine.processJoin(EVIL, version, forge.roomId, forge.raw([join])[0]!, shown),
    )
    expect(received.kind).toBe('accepted')
    const rows = await home.server.db.query<{ event_nid: number; replaces_nid: number | null }>(
      'SELECT event_nid, replaces_nid FROM event WHERE event_id = $1',
      [join],
    )
    expect(rows[0]!.replaces_nid).toBeNull()
    const body = await home.sync('ann')
    expect(body.rooms.join[forge.roomId].timeline.events.map((e: { event_id: EventId }) => e.event_id)).toEqual([join])
    expect(body.rooms.join[forge.roomId].timeline.limited).toBe(true)
    await home.audit(forge.roomId)
  })

  it('the create event that comes again is known', async () => {
    const forge = Forge.open(version, named('again'), CREATOR)
    const create = [...forge.events.keys()][0]!
    await home.takeJoin(forge, 'ann')
    home.answers(forge.answers())
    expect(await home.kinds(forge, [create])).toEqual(['known'])
    await home.audit(forge.roomId)
  })

  it('auth events, a gap and the events themselves in one transaction, twice at once', async () => {
    const forge = Forge.open(version, named('all'), CREATOR)
    await home.takeJoin(forge, 'ann')
    const first = forge.member(GUEST, 'join')
    const ids: EventId[] = [first]
    for (let n = 0; n < 5; n++) ids.push(forge.say(GUEST, `${n}`))
    ids.push(forge.member(GUEST, 'join', { content: { displayname: 'G' } }))
    ids.push(forge.say(GUEST, 'last'))
    home.answers(forge.answers())
    home.answers(forge.answers(), 'other.test' as typeof EVIL)
    const both = await Promise.all([
      home.kinds(forge, ids.toReversed()),
      home.kinds(forge, ids.slice(4), 'other.test' as typeof EVIL),
    ])
    expect(both[0]).toEqual(ids.map(() => 'accepted'))
    expect(both[1]).toEqual(ids.slice(4).map(() => 'known'))
    await home.audit(forge.roomId)
    const view = await home.view(forge.roomId)
    expect(view.extremities).toEqual([ids.at(-1)])
  })

  it('an outlier that takes its place while it is fetched again', async () => {
    const forge = Forge.open(version, named('promoted'), CREATOR)
    const state = forge.states.get(forge.latest!)!
    await home.takeJoin(forge, 'ann', state)
    const joinedWith = forge.latest!
    const join = forge.member(GUEST, 'join')
    const said = forge.say(GUEST, 'hello')
    // The server that tells of the message knows of nothing before it: a state is told instead.
    home.answers(forge.answers({ missingEvents: async () => [] }))
    expect(await home.kinds(forge, [said])).toEqual(['accepted'])
    expect(home.standing(await home.view(forge.roomId), join)).toBe('outlier')
    expect(await home.kinds(forge, [join, join])).toEqual(['accepted', 'accepted'])
    expect(await home.kinds(forge, [join])).toEqual(['known'])
    const view = await home.view(forge.roomId)
    expect(view.extremities).toEqual([said])
    expect(view.events.get(join)!.prev).toEqual([joinedWith])
    await home.audit(forge.roomId)
  })
})
