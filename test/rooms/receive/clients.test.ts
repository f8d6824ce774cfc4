import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { MATCH_ALL } from '../../../src/core/filter.ts'
import type { EventId, RoomId, UserId } from '../../../src/core/ids.ts'
import { roomVersion } from '../../../src/core/room-version.ts'
import { Besieged, EVIL, idsIn } from '../besieged.ts'
import { Forge } from '../forge.ts'
import type { ForgedState } from '../forged-state.ts'

const CREATOR = `@creator:${EVIL}` as UserId
const GUEST = `@guest:${EVIL}` as UserId
const VERSION = roomVersion('10')!

let home: Besieged
beforeAll(async () => {
  home = await Besieged.open()
})
afterAll(() => home.close())

async function openRoom(name: string): Promise<{ forge: Forge; roomId: RoomId; state: ForgedState }> {
  const forge = Forge.open(VERSION, name, CREATOR)
  forge.member(GUEST, 'join')
  const state = forge.states.get(forge.latest!)!
  await home.takeJoin(forge, 'ann')
  home.answers(forge.answers())
  return { forge, roomId: forge.roomId, state }
}

const receipts = () => home.server.engine.services.receipts

async function unread(roomId: RoomId): Promise<[number, number]> {
  const { rooms } = await home.sync('ann')
  const { notification_count, highlight_count } = rooms.join[roomId].unread_notifications
  return [notification_count, highlight_count]
}

describe('events of those who have not heard of a join', () => {
  it('are for who joined, in a room that shares its history, wherever they look', async () => {
    const forge = Forge.open(VERSION, 'meanwhile', CREATOR)
    await home.takeJoin(forge, 'ann')
    await forge.catchUp(home.server)
    home.answers(forge.answers())
    const before = forge.say(CREATOR, 'before')
    expect(await home.kinds(forge, [before])).toEqual(['accepted'])
    await home.takeLocalJoin('bob', forge.roomId)
    const meanwhile = forge.say(CREATOR, 'meanwhile', { prev: [before] })
    expect(await home.kinds(forge, [meanwhile])).toEqual(['accepted'])
    const { rooms } = await home.sync('bob')
    expect(idsIn(rooms.join[forge.roomId].timeline)).toContain(meanwhile)
    const by = await home.server.as(home.user('bob'))
    const query = { from: undefined, to: undefined, direction: 'b', limit: 50, filter: MATCH_ALL } as const
    const page = await home.server.engine.services.roomReader.messages(by, forge.roomId, query)
    expect(page.toBuffer().toString()).toContain(meanwhile)
    await home.does('bob', (all, who) => all.leave(who, forge.roomId, {}))
    const late = forge.say(CREATOR, 'too late', { prev: [meanwhile] })
    expect(await home.kinds(forge, [late])).toEqual(['accepted'])
    const after = await home.server.engine.services.roomReader.messages(by, forge.roomId, query)
    expect(after.toBuffer().toString()).not.toContain(late)
  })
})

describe('events that are no part of a room', () => {
  it('are news for nobody, but followers hear that the stream has moved', async () => {
    const { forge, state } = await openRoom('quiet')
    const first = forge.say(CREATOR, 'first')
    const ban = forge.member(GUEST, 'ban', { sender: CREATOR, prev: [first] })
    expect(await home.kinds(forge, [first, ban])).toEqual(['accepted', 'accepted'])
    const heard: string[] = []
    const hear = (what: string) => () => void heard.push(what)
    const unfollow = home.server.engine.notifier.follow({
      room: hear('room'),
      user: hear('user'),
      began: hear('began'),
      missed: hear('missed'),
      moved: hear('moved'),
    })
    const softFailed = forge.say(GUEST, 'too late', { prev: [first], state })
    expect(await home.kinds(forge, [softFailed])).toEqual(['soft-failed'])
    unfollow()
    expect(heard).toEqual(['moved'])
  })

  it('show nowhere', async () => {
    const { forge, roomId, state } = await openRoom('hidden')
    const first = forge.say(CREATOR, 'first')
    const ban = forge.member(GUEST, 'ban', { sender: CREATOR, prev: [first] })
    const softFailed = forge.say(GUEST, 'too late', { prev: [first], state })
    const softState = forge.set(GUEST, 'test.open', { late: true }, { prev: [first], state, state_key: GUEST })
    const rejected = forge.set(GUEST, 'm.room.topic', { topic: 'mine' }, { prev: [first], state })
    forge.latest = ban
    const last = forge.say(CREATOR, 'last')
    const ids = [first, ban, softFailed, softState, rejected, last]
    expect(await home.kinds(forge, ids)).toEqual([
      'accepted',
      'accepted',
      'soft-failed',
      'rejected',
      'rejected',
      'accepted',
    ])
    const view = await home.view(roomId)
    expect(view.extremities).toEqual([last])
    const outlier = view.state.get('m.room.power_levels ')!
    const by = await home.server.as(home.user('ann'))
    const { roomReader } = home.server.engine.services
    const query = { limit: 100, filter: MATCH_ALL }
    const messages = JSON.parse(
      (await roomReader.messages(by, roomId, { ...query, direction: 'b', from: undefined, to: undefined }))
        .toBuffer()
        .toString(),
    )
    const shown = [last, ban, first]
    expect(messages.chunk.map((event: { event_id: EventId }) => event.event_id).slice(0, 3)).toEqual(shown)
    for (const id of [softFailed, softState, rejected, outlier]) {
      expect(messages.chunk.some((event: { event_id: EventId }) => event.event_id === id)).toBe(false)
      await expect(roomReader.event(by, roomId, id)).rejects.toMatchObject({ errcode: 'M_NOT_FOUND' })
      await expect(roomReader.context(by, roomId, id, query)).rejects.toMatchObject({ errcode: 'M_NOT_FOUND' })
      await expect(home.inRun(() => receipts().mark(by, roomId, 'm.read', id))).rejects.toMatchObject({
        errcode: 'M_NOT_FOUND',
      })
      await expect(home.inRun(() => receipts().mark(by, roomId, 'm.fully_read', id))).rejects.toMatchObject({
        errcode: 'M_NOT_FOUND',
      })
      const redacting = home.does('ann', (rooms, who) =>
        rooms.redact(who, roomId, id, { content: {}, offence: undefined }, { txnId: id, path: id }),
      )
      await expect(redacting).rejects.toMatchObject({ errcode: 'M_NOT_FOUND' })
      const ts = Number(forge.events.get(id)!.origin_server_ts)
      for (const direction of ['f', 'b'] as const) {
        const found = await roomReader.eventAtTime(by, roomId, ts, direction).catch(() => undefined)
        expect(found?.event_id).not.toBe(id)
      }
    }
    const context = JSON.parse((await roomReader.context(by, roomId, ban, query)).toBuffer().toString())
    const around = [...context.events_before, ...context.events_after].map(
      (event: { event_id: EventId }) => event.event_id,
    )
    expect(around).not.toContain(softFailed)
    const state2 = JSON.parse((await roomReader.state(by, roomId)).toBuffer().toString())
    expect(state2.map((event: { event_id: EventId }) => event.event_id)).not.toContain(softState)
    const { rooms } = await home.sync('ann')
    const synced = [...idsIn(rooms.join[roomId].timeline), ...idsIn(rooms.join[roomId].state)]
    for (const id of [softFailed, softState, rejected]) expect(synced).not.toContain(id)
    expect(synced).toContain(outlier)
    await home.audit(roomId)
  })

  it('a room that was joined elsewhere says that there is more before', async () => {
    const { roomId } = await openRoom('before')
    const { rooms } = await home.sync('ann')
    expect(rooms.join[roomId].timeline.limited).toBe(true)
  })
})

describe('what syncs are told', () => {
  it('of a gap: limited, with the state that changed in it, and of what fills it once', async () => {
    const { forge, roomId } = await openRoom('gaps')
    const [one, two] = [await home.sync('ann'), await home.sync('ann')]
    const topic = forge.set(CREATOR, 'm.room.topic', { topic: 'missed' })
    const said = forge.say(CREATOR, 'after')
    home.answers(forge.answers({ missingEvents: async () => [] }))
    const waiting = [one, two].map(({ next_batch }) => home.sync('ann', next_batch, { timeoutMs: 20_000 }))
    expect(await home.kinds(forge, [said])).toEqual(['accepted'])
    const woken = await Promise.all(waiting)
    for (const answer of woken) {
      const room = answer.rooms.join[roomId]
      expect([idsIn(room.timeline), room.timeline.limited, idsIn(room.state)]).toEqual([[said], true, [topic]])
    }
    const since = woken[0]!.next_batch
    const partialState = [since, since].map((token) => home.sync('ann', token, { timeoutMs: 20_000 }))
    expect(await home.kinds(forge, [topic])).toEqual(['accepted'])
    for (const answer of await Promise.all(partialState)) {
      expect(idsIn(answer.rooms.join[roomId].timeline)).toEqual([topic])
      expect((await home.sync('ann', answer.next_batch)).rooms).toBeUndefined()
    }
    await home.audit(roomId)
  })

  it('of what was said beside our join, and of nothing from before it', async () => {
    const forge = Forge.open(VERSION, 'beside', CREATOR)
    forge.member(GUEST, 'join')
    const old = [forge.say(CREATOR, 'old'), forge.say(CREATOR, 'older')]
    const fork = forge.latest!
    const join = await home.takeJoin(forge, 'ann')
    // Whoever asks is answered with all that lies behind, whatever it asked for.
    home.answers(forge.answers())
    const { next_batch: since } = await home.sync('ann')
    const beside = [forge.say(GUEST, 'one', { prev: [fork] })]
    for (const text of ['two', 'three']) beside.push(forge.say(GUEST, text))
    expect(await home.kinds(forge, beside.slice(2))).toEqual(['accepted'])
    forge.latest = join
    const after = [forge.say(CREATOR, 'four'), forge.say(CREATOR, 'five')]
    expect(await home.kinds(forge, after.slice(1))).toEqual(['accepted'])
    const { timeline } = (await home.sync('ann', since)).rooms.join[forge.roomId]
    expect(idsIn(timeline)).toEqual([...beside, ...after])
    const view = await home.view(forge.roomId)
    for (const id of old) expect(view.events.has(id)).toBe(false)
    await home.audit(forge.roomId)
  })

  it('of state that branches settle', async () => {
    const { forge, roomId } = await openRoom('settled')
    const fork = forge.latest!
    const mine = await home.set('ann', roomId, 'test.open', { n: 1 }, home.user('ann')).catch(() => undefined)
    expect(mine).toBeUndefined()
    const name = forge.set(CREATOR, 'm.room.name', { name: 'left' }, { prev: [fork] })
    const left = forge.set(CREATOR, 'm.room.topic', { topic: 'left' }, { prev: [name], ts: 1_900_000_000_002 })
    expect(await home.kinds(forge, [name, left])).toEqual(['accepted', 'accepted'])
    const { next_batch: since } = await home.sync('ann')
    const right = forge.set(CREATOR, 'm.room.topic', { topic: 'right' }, { prev: [fork], ts: 1_900_000_000_001 })
    expect(await home.kinds(forge, [right])).toEqual(['accepted'])
    const view = await home.view(roomId)
    expect(view.state.get('m.room.topic ')).toBe(left)
    const after = (await home.sync('ann', since, { after: true })).rooms.join[roomId]
    expect(idsIn(after.timeline)).toEqual([right])
    // Clients that take state from there alone know that nothing changed.
    expect(idsIn(after.state_after)).toEqual([])
    const before = (await home.sync('ann', since)).rooms.join[roomId]
    expect(idsIn(before.timeline)).toEqual([right])
  })

  it('of messages of others: unread counts and highlights', async () => {
    const { forge, roomId } = await openRoom('counts')
    const { next_batch: since } = await home.sync('ann')
    const content = { msgtype: 'm.text', body: 'hello', 'm.mentions': { user_ids: [home.user('ann')] } }
    const ids = [forge.say(CREATOR, 'hello all'), forge.say(GUEST, '', { content })]
    const waiting = home.sync('ann', since, { timeoutMs: 20_000 })
    await home.kinds(forge, ids)
    const answer = await waiting
    expect(idsIn(answer.rooms.join[roomId].timeline)).toEqual(ids)
    expect(await unread(roomId)).toEqual([2, 1])
    await home.server.restart()
    expect(await unread(roomId)).toEqual([2, 1])
    const by = await home.server.as(home.user('ann'))
    await home.inRun(() => receipts().mark(by, roomId, 'm.read', ids[1]!))
    expect(await unread(roomId)).toEqual([0, 0])
    await home.server.restart()
    expect(await unread(roomId)).toEqual([0, 0])
  })

  it('of what was numbered before it took its place: unread until it is read', async () => {
    const { forge, roomId } = await openRoom('numbered')
    const calling = forge.set(CREATOR, 'test.call', { body: 'ann', 'm.mentions': { user_ids: [home.user('ann')] } })
    const said = forge.say(CREATOR, 'after')
    home.answers(forge.answers({ missingEvents: async () => [] }))
    expect(await home.kinds(forge, [said])).toEqual(['accepted'])
    expect(home.standing(await home.view(roomId), calling)).toBe('outlier')
    const by = await home.server.as(home.user('ann'))
    await home.inRun(() => receipts().mark(by, roomId, 'm.read', said))
    expect(await unread(roomId)).toEqual([0, 0])
    expect(await home.kinds(forge, [calling])).toEqual(['accepted'])
    const counted = await unread(roomId)
    expect(counted[1]).toBe(1)
    await home.server.restart()
    expect(await unread(roomId)).toEqual(counted)
    await home.inRun(() => receipts().mark(by, roomId, 'm.read', calling))
    expect(await unread(roomId)).toEqual([0, 0])
    await home.server.restart()
    expect(await unread(roomId)).toEqual([0, 0])
  })
})

it('messages of rooms that are written at once have their numbers in the order in which they are written', async () => {
  const rooms = [await openRoom('one of two'), await openRoom('two of two')]
  const said = rooms.map(({ forge }) =>
    Array.from({ length: 20 }, (_, n) => forge.say(n % 2 ? CREATOR : GUEST, `message ${n}`)),
  )
  const kinds = await Promise.all(rooms.map(({ forge }, room) => home.kinds(forge, said[room]!)))
  expect(new Set(kinds.flat())).toEqual(new Set(['accepted']))
  const rows = await home.server.db.query<{ event_id: EventId; stream_pos: number | null }>(
    'SELECT event_id, stream_pos FROM event WHERE event_id = ANY($1) ORDER BY event_nid',
    [said.flat()],
  )
  // None of them needs another place in the stream.
  expect(rows.filter(({ stream_pos }) => stream_pos !== null)).toEqual([])
  for (const ids of said) {
    const own = rows.filter(({ event_id }) => ids.includes(event_id)).map(({ event_id }) => event_id)
    expect(own).toEqual(ids)
  }
})
