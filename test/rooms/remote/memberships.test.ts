import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { EventId, RoomId, UserId } from '../../../src/core/ids.ts'
import { roomVersion } from '../../../src/core/room-version.ts'
import type { Json } from '../../support/api.ts'
import { Besieged, EVIL, idsIn } from '../besieged.ts'
import { Forge } from '../forge.ts'

const ADMIN = `@admin:${EVIL}` as UserId
const MOD = `@mod:${EVIL}` as UserId

let home: Besieged
beforeAll(async () => {
  home = await Besieged.open()
})
afterAll(() => home.close())

/** A room of ours with people of another server in power. */
async function mixedRoom(id: string, name: string): Promise<{ forge: Forge; roomId: RoomId; fork: EventId }> {
  const version = roomVersion(id)!
  const roomId = await home.createRoom(`ann-${name}`, version, {
    power_level_content_override: {
      users: { ...(version.creatorsAreInfinite ? {} : { [home.user(`ann-${name}`)]: 100 }), [ADMIN]: 100, [MOD]: 50 },
    },
  })
  const forge = await Forge.of(home.server, version, roomId)
  home.answers(forge.answers())
  const joins = [forge.member(ADMIN, 'join'), forge.member(MOD, 'join')]
  expect(await home.kinds(forge, joins)).toEqual(['accepted', 'accepted'])
  return { forge, roomId, fork: joins[1]! }
}

function withoutModerator(forge: Forge, fork: EventId): EventId {
  const levels = forge.events.get(forge.states.get(fork)!.get('m.room.power_levels ')!)!.content
  const users = { ...(levels.users as Record<string, number>) }
  delete users[MOD]
  return forge.set(ADMIN, 'm.room.power_levels', { ...levels, users }, { prev: [fork] })
}

/** In shared history, what was said while a user was away is shown once they are back: in the timeline, or before it as state. */
const idsOf = (section: Json): string[] => [...idsIn(section.state), ...idsIn(section.timeline)]

describe.each(['2', '6', '10', '12'])('room version %s', (id) => {
  it('a user whose ban is taken back by another branch is told of the room again', async () => {
    const { forge, roomId } = await mixedRoom(id, `back${id}`)
    const ben = `ben-${id}`
    await home.does(ben, (rooms, by) => rooms.join(by, roomId, {}))
    await forge.catchUp(home.server)
    const fork = forge.latest!
    let { next_batch: since } = await home.sync(ben)
    const ban = forge.member(home.user(ben), 'ban', { sender: MOD })
    expect(await home.kinds(forge, [ban])).toEqual(['accepted'])
    const banned = await home.sync(ben, since)
    expect(idsIn(banned.rooms.leave[roomId].timeline)).toContain(ban)
    since = banned.next_batch
    const topic = await home.set(`ann-back${id}`, roomId, 'm.room.topic', { topic: 'while he was away' })
    since = (await home.sync(ben, since)).next_batch

    const waiting = home.sync(ben, since, { timeoutMs: 20_000 })
    expect(await home.kinds(forge, [withoutModerator(forge, fork)])).toEqual(['accepted'])
    const back = await waiting
    expect(Object.keys(back.rooms.join)).toEqual([roomId])
    expect(idsOf(back.rooms.join[roomId])).toContain(topic)
    expect((await home.view(roomId)).members.get(home.user(ben))).toMatch(/^join/)
    await home.say(ben, roomId, 'here again')
    await home.audit(roomId)
    await home.server.restart()
    const again = await home.sync(ben, since)
    expect(Object.keys(again.rooms.join)).toEqual([roomId])
    expect(idsOf(again.rooms.join[roomId])).toContain(topic)
  })

  it('a user whose join another branch undoes is told that they are out', async () => {
    const { forge, roomId, fork } = await mixedRoom(id, `out${id}`)
    const cat = `cat-${id}`
    await home.does(cat, (rooms, by) => rooms.join(by, roomId, {}))
    const seen = await home.sync(cat)
    expect(Object.keys(seen.rooms.join)).toContain(roomId)
    const waiting = home.sync(cat, seen.next_batch, { timeoutMs: 20_000 })
    const closed = forge.set(ADMIN, 'm.room.join_rules', { join_rule: 'invite' }, { prev: [fork] })
    expect(await home.kinds(forge, [closed])).toEqual(['accepted'])
    expect((await home.view(roomId)).state.has(`m.room.member ${home.user(cat)}`)).toBe(false)
    const shown = await waiting
    expect(shown.rooms.join).toEqual({})
    expect(Object.keys(shown.rooms.leave)).toEqual([roomId])
    expect((await home.view(roomId)).members.get(home.user(cat))).toMatch(/^leave/)
    await home.audit(roomId)
    await home.server.restart()
    const again = await home.sync(cat, seen.next_batch)
    expect(Object.keys(again.rooms.leave)).toEqual([roomId])
    expect((await home.sync(cat, shown.next_batch)).rooms).toBeUndefined()
  })
})
