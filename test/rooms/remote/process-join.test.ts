import { afterAll, beforeAll, expect, it } from 'vitest'
import type { EventId, UserId } from '../../../src/core/ids.ts'
import { roomVersion } from '../../../src/core/room-version.ts'
import { Besieged, EVIL, idsIn } from '../besieged.ts'
import { Forge, type ForgedRoom } from '../forge.ts'
import type { ForgedState } from '../forged-state.ts'

const CREATOR = `@creator:${EVIL}` as UserId
const GUEST = `@guest:${EVIL}` as UserId
const VERSION = roomVersion('12')!

let home: Besieged
beforeAll(async () => {
  home = await Besieged.open()
})
afterAll(() => home.close())

function openRoom(name: string): Forge {
  const forge = Forge.open(VERSION, name, CREATOR)
  forge.member(GUEST, 'join')
  home.answers(forge.answers())
  return forge
}

async function takeJoin(forge: Forge, join: EventId, shown: ForgedRoom, version = VERSION): Promise<string> {
  const { processJoin } = home.server.engine
  const received = await home.inRun(() => processJoin(EVIL, version, forge.roomId, forge.raw([join])[0]!, shown))
  return received.reason ?? received.kind
}

const latestState = (forge: Forge): ForgedState => forge.states.get(forge.latest!)!

it('what is told can be in any order, doubled, and with what is of no use', async () => {
  const forge = openRoom('order')
  const foreign = openRoom('foreign')
  home.answers(forge.answers())
  const state = latestState(forge)
  const message = forge.say(CREATOR, 'no state')
  const join = forge.member(home.user('ann'), 'join', { state })
  const { state: events, authChain } = forge.shown(state)
  const shown = {
    state: [...events.toReversed(), ...events, ...forge.raw([message]), ...foreign.shown(latestState(foreign)).state],
    authChain: [...authChain.toReversed(), { value: 'nonsense', offence: undefined }, ...events],
  }
  expect(await takeJoin(forge, join, shown)).toBe('accepted')
  expect((await home.view(forge.roomId)).state.size).toBe(state.size + 1)
  await home.audit(forge.roomId)
})

it('no create event, another version, or two for one key: nobody comes in', async () => {
  const forge = openRoom('refused')
  const state = latestState(forge)
  const renamed = forge.set(CREATOR, 'm.room.topic', { topic: '1' })
  const again = forge.set(CREATOR, 'm.room.topic', { topic: '2' })
  const join = forge.member(home.user('ann'), 'join', { state })
  const shown = forge.shown(state)
  const without = { ...shown, state: shown.state.slice(1) }
  expect(await takeJoin(forge, join, without)).toBe('the room is of another version')
  expect(await takeJoin(forge, join, shown, roomVersion('11')!)).not.toBe('accepted')
  const doubled = { ...shown, state: [...shown.state, ...forge.raw([renamed, again])] }
  expect(await takeJoin(forge, join, doubled)).toBe('the state of the room could not be had')
  expect((await home.sync('ann')).rooms?.join?.[forge.roomId]).toBeUndefined()
  await expect(home.say('ann', forge.roomId, 'hello')).rejects.toMatchObject({ status: 403 })
  expect(await home.kinds(forge, [renamed])).toEqual(['dropped'])
  // What was refused stands in nobody's way.
  expect(await takeJoin(forge, join, shown)).toBe('accepted')
  await home.audit(forge.roomId)
})

it('two users at once, and events that come meanwhile', async () => {
  const forge = openRoom('together')
  const state = latestState(forge)
  const first = forge.member(home.user('ann'), 'join', { state })
  const second = forge.member(home.user('ben'), 'join')
  const said = forge.say(GUEST, 'welcome')
  const shown = [forge.shown(state), forge.shown(forge.states.get(first)!)]
  const [one, two, events] = await Promise.all([
    takeJoin(forge, first, shown[0]!),
    takeJoin(forge, second, shown[1]!),
    home.kinds(forge, [said, second]),
  ])
  expect([one, two]).toEqual(['accepted', 'accepted'])
  if (events[0] === 'dropped') expect(await home.kinds(forge, [said])).toEqual(['accepted'])
  const view = await home.view(forge.roomId)
  expect(view.extremities).toEqual([said])
  for (const name of ['ann', 'ben']) {
    expect(view.members.get(home.user(name))).toMatch(/^join/)
    expect(idsIn((await home.sync(name)).rooms.join[forge.roomId].timeline)).toContain(said)
  }
  await home.audit(forge.roomId)
})

it('the same join twice at once', async () => {
  const forge = openRoom('twice')
  const state = latestState(forge)
  const join = forge.member(home.user('ann'), 'join', { state })
  const shown = forge.shown(state)
  const kinds = await Promise.all([
    takeJoin(forge, join, shown),
    takeJoin(forge, join, shown),
    takeJoin(forge, join, shown),
  ])
  expect(kinds.toSorted()).toEqual(['accepted', 'known', 'known'])
  await home.audit(forge.roomId)
})

it('a second user comes in through another server while we are in the room', async () => {
  const forge = openRoom('second')
  await home.takeJoin(forge, 'ann')
  const said = await home.say('ann', forge.roomId, 'before')
  await forge.catchUp(home.server)
  const state = forge.states.get(said)!
  const join = forge.member(home.user('ben'), 'join', { prev: [said] })
  expect(await takeJoin(forge, join, forge.shown(state))).toBe('accepted')
  const view = await home.view(forge.roomId)
  expect(view.extremities).toEqual([join])
  // All that it builds on is here: nothing is missing before it.
  const gaps = await home.server.db.query('SELECT missing_id FROM event_gap WHERE room_nid = $1 AND missing_id = $2', [
    view.roomNid,
    said,
  ])
  expect(gaps).toEqual([])
  await home.audit(forge.roomId)
})

it('a server that lets a second user in does not say what the state of a room is that we are in', async () => {
  const forge = openRoom('word')
  await home.takeJoin(forge, 'ann')
  const old = latestState(forge)
  const topic = forge.set(CREATOR, 'm.room.topic', { topic: 'new' })
  expect(await home.kinds(forge, [topic])).toEqual(['accepted'])
  const join = forge.member(home.user('ben'), 'join')
  expect(await takeJoin(forge, join, forge.shown(old))).toBe('accepted')
  expect((await home.view(forge.roomId)).state.get('m.room.topic ')).toBe(topic)
  await home.audit(forge.roomId)
})

it('coming back: what happened meanwhile is a gap, and those who stayed away are told all', async () => {
  const forge = openRoom('back')
  await home.takeJoin(forge, 'ann')
  await home.does('ann', (rooms, by) => rooms.leave(by, forge.roomId, {}))
  const left = await home.sync('ann', (await home.sync('ann')).next_batch)
  await forge.catchUp(home.server)
  const topic = forge.set(CREATOR, 'm.room.topic', { topic: 'meanwhile' })
  const state = latestState(forge)
  const join = forge.member(home.user('ann'), 'join', { state })
  expect(await takeJoin(forge, join, forge.shown(state))).toBe('accepted')
  const view = await home.view(forge.roomId)
  expect(view.extremities).toEqual([join])
  const shown = (await home.sync('ann', left.next_batch)).rooms.join[forge.roomId]
  expect(idsIn(shown.timeline)).toEqual([join])
  expect(shown.timeline.limited).toBe(true)
  expect(idsIn(shown.state)).toContain(topic)
  await home.audit(forge.roomId)
  expect(await home.kinds(forge, [topic])).toEqual(['accepted'])
  expect((await home.view(forge.roomId)).extremities).toEqual([join])
  await home.audit(forge.roomId)
})

it('a room of 5,000 members', async () => {
  const forge = openRoom('large')
  for (let n = 0; n < 5_000; n++) forge.member(`@m${n}:${EVIL}` as UserId, 'join', { prev: [forge.latest!] })
  const begun = performance.now()
  await home.takeJoin(forge, 'ann')
  expect(performance.now() - begun).toBeLessThan(30_000)
  const { rooms } = await home.sync('ann')
  expect(rooms.join[forge.roomId].summary['m.joined_member_count']).toBe(5_003)
  await home.server.restart()
  const again = await home.sync('ann')
  expect(again.rooms.join[forge.roomId].summary['m.joined_member_count']).toBe(5_003)
  expect((await home.view(forge.roomId)).state.size).toBe(5_006)
})
