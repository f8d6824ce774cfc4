import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { EventId, RoomId, UserId } from '../../../src/core/ids.ts'
import { roomVersion } from '../../../src/core/room-version.ts'
import { MAX_APPEALS_PER_ROOM } from '../../../src/domain/limits/sticky-events.ts'
import { waitUntil } from '../../support/wait.ts'
import { Besieged, EVIL } from '../besieged.ts'
import { Forge } from '../forge.ts'
import type { ForgedState } from '../forged-state.ts'

/** Sticky events that the state of a room excluded, and a later one does not (MSC4354). */

const CREATOR = `@creator:${EVIL}` as UserId
const WARDEN = `@warden:${EVIL}` as UserId
const GUEST = `@guest:${EVIL}` as UserId
const VERSION = roomVersion('10')!
const STICKY = { stickyMs: 600_000 }

let home: Besieged
beforeAll(async () => {
  home = await Besieged.open()
})
afterAll(() => home.close())

interface Scene {
  readonly forge: Forge
  readonly roomId: RoomId
  readonly first: EventId
  readonly ban: EventId
  /** What the room was before anybody was banned. */
  readonly state: ForgedState
}

/** A room in which a guest was banned by a warden, and then a sticky event of the guest came that does not know of it. */
async function open(name: string): Promise<Scene> {
  const forge = Forge.open(VERSION, name, CREATOR, { users: { [WARDEN]: 50 } })
  forge.member(WARDEN, 'join')
  forge.member(GUEST, 'join')
  await home.takeJoin(forge, 'ann')
  home.answers(forge.answers())
  const first = forge.say(CREATOR, 'first')
  const state = forge.states.get(first)!
  const ban = forge.member(GUEST, 'ban', { sender: WARDEN, prev: [first] })
  expect(await home.kinds(forge, [first, ban])).toEqual(['accepted', 'accepted'])
  return { forge, roomId: forge.roomId, first, ban, state }
}

const late = ({ forge, first, state }: Scene, body: string, more = STICKY): EventId =>
  forge.say(GUEST, body, { prev: [first], state, ...more })

/** The warden is out, before they could ban anybody: both happened at once, and the creator has more power. */
async function undo({ forge, first, state }: Scene): Promise<void> {
  const kick = forge.member(WARDEN, 'leave', { sender: CREATOR, prev: [first], state })
  expect(await home.kinds(forge, [kick])).toEqual(['accepted'])
}

async function standings({ roomId }: Scene, ids: readonly EventId[]): Promise<(string | undefined)[]> {
  const view = await home.view(roomId)
  return ids.map((id) => home.standing(view, id))
}

const untilAccepted = (scene: Scene, ids: readonly EventId[]): Promise<unknown> =>
  waitUntil('the events to be accepted', async () => (await standings(scene, ids)).every((each) => each === 'accepted'))

// biome-ignore lint/suspicious/noExplicitAny: what a client is answered
const shownIn = ({ rooms }: any, roomId: RoomId): EventId[] => {
  const room = rooms?.join?.[roomId]
  const events = [...(room?.timeline.events ?? []), ...(room?.msc4354_sticky?.events ?? [])]
  return events.map(({ event_id }: { event_id: EventId }) => event_id)
}

describe('a soft-failed sticky event', () => {
  it('is delivered once the state that excluded it was rolled back, and only then', async () => {
    const scene = await open('rolled')
    const { next_batch: since } = await home.sync('ann')
    const [sticky, plain] = [late(scene, 'sticky'), late(scene, 'plain', {} as never)]
    expect(await home.kinds(scene.forge, [sticky, plain])).toEqual(['soft-failed', 'soft-failed'])
    expect(shownIn(await home.sync('ann', since), scene.roomId)).not.toContain(sticky)
    await undo(scene)
    await untilAccepted(scene, [sticky])
    const answer = await home.sync('ann', since)
    expect(shownIn(answer, scene.roomId)).toContain(sticky)
    expect(await standings(scene, [plain])).toEqual(['soft-failed'])
    // It is sent once, and is the extremity of nothing.
    expect(shownIn(await home.sync('ann', answer.next_batch), scene.roomId)).toEqual([])
    expect((await home.view(scene.roomId)).extremities).not.toContain(sticky)
    await home.audit(scene.roomId)
  })

  it('is delivered when its sender is back', async () => {
    const scene = await open('back')
    const sticky = late(scene, 'sticky')
    expect(await home.kinds(scene.forge, [sticky])).toEqual(['soft-failed'])
    const { forge, ban } = scene
    const unban = forge.member(GUEST, 'leave', { sender: WARDEN, prev: [ban] })
    const back = forge.member(GUEST, 'join', { prev: [unban] })
    expect(await home.kinds(forge, [unban, back])).toEqual(['accepted', 'accepted'])
    await untilAccepted(scene, [sticky])
    await home.say('ann', scene.roomId, 'so you are here')
    await home.audit(scene.roomId)
  })

  it('stays out while the state still excludes it, and when it is no longer sticky', async () => {
    const scene = await open('out')
    const [sticky, over] = [late(scene, 'sticky'), late(scene, 'over', { stickyMs: 0 })]
    expect(await home.kinds(scene.forge, [sticky, over])).toEqual(['soft-failed', 'soft-failed'])
    await home.set('ann', scene.roomId, 'm.room.member', { membership: 'join', displayname: 'Ann' }, home.user('ann'))
    const other = late(scene, 'another')
    expect(await home.kinds(scene.forge, [other])).toEqual(['soft-failed'])
    expect(await standings(scene, [sticky, over, other])).toEqual(['soft-failed', 'soft-failed', 'soft-failed'])
    await undo(scene)
    await untilAccepted(scene, [sticky, other])
    expect(await standings(scene, [over])).toEqual(['soft-failed'])
  })

  it('is judged again after a restart', async () => {
    const scene = await open('restart')
    const sticky = late(scene, 'sticky')
    expect(await home.kinds(scene.forge, [sticky])).toEqual(['soft-failed'])
    await home.server.restart()
    home.answers(scene.forge.answers())
    await undo(scene)
    await untilAccepted(scene, [sticky])
  })

  it('is one of a bounded number: the newest are judged again', async () => {
    const scene = await open('many')
    const many = Array.from({ length: MAX_APPEALS_PER_ROOM + 3 }, (_, n) => late(scene, `sticky ${n}`))
    const kinds = await home.kinds(scene.forge, many)
    expect(new Set(kinds)).toEqual(new Set(['soft-failed']))
    await undo(scene)
    const [oldest, newest] = [many.slice(0, 3), many.slice(3)]
    await untilAccepted(scene, newest)
    expect(await standings(scene, oldest)).toEqual(['soft-failed', 'soft-failed', 'soft-failed'])
    await home.audit(scene.roomId)
  })
})
