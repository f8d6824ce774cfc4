import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Pdu, referencedId } from '../../src/core/event/format.ts'
import type { EventId, RoomId } from '../../src/core/ids.ts'
import type { JsonObject } from '../../src/core/json.ts'
import { roomVersion } from '../../src/core/room-version.ts'
import { eventIdOf } from '../../src/core/signing/event-hash.ts'
import { MAX_EVENTS_PER_ANSWER } from '../../src/domain/limits.ts'
import { forge, openStage, type Party, type Stage, setState, viewOf } from './party.ts'
import { parsed } from './run.ts'

let stage: Stage

beforeAll(async () => {
  stage = await openStage()
})
afterAll(() => stage.close())

function idsIn({ version }: Party, texts: readonly string[]): EventId[] {
  return texts.map((text) => eventIdOf(version, JSON.parse(text) as Pdu))
}

async function saySome({ run, roomId, ann }: Party, count: number): Promise<EventId[]> {
  const ids: EventId[] = []
  for (let said = 0; said < count; said++) ids.push(await run.say(ann, roomId, `${said}`))
  return ids
}

const idsOf = (events: readonly { readonly id: EventId }[]) => events.map(({ id }) => id)

const join = (user: Party['ann'], more: JsonObject = {}) =>
  ({ type: 'm.room.member', sender: user, stateKey: user, content: { membership: 'join', ...more } }) as const

describe('a server that is asked about a room', () => {
  it.each(['1', '12'])('tells what lies between some events, oldest first, in room version %s', (version) =>
    stage.play(version, async (party) => {
      const { roomId, alpha } = party
      const ids = await saySome(party, 12)
      const { resident } = alpha.engine
      const between = async (earliest: EventId[], latest: EventId[], limit: number) =>
        idsOf(await resident.missingEvents(roomId, { earliest, latest, limit }))
      expect(await between([ids[2]!], [ids[9]!], 50)).toEqual(ids.slice(3, 9))
      expect(await between([ids[2]!], [ids[9]!], 2)).toEqual(ids.slice(7, 9))
      const aroundOne = await between([ids[2]!], [ids[9]!, ids[5]!], 50)
      expect(aroundOne.sort()).toEqual([...ids.slice(3, 5), ...ids.slice(6, 9)].sort())
      expect(await between([], [ids[0]!], 1)).toHaveLength(1)
      expect(await between([], ['$unknown' as EventId], 50)).toEqual([])
      const all = await between([], [ids[11]!], Number.MAX_SAFE_INTEGER)
      expect(all.slice(-11)).toEqual(ids.slice(0, 11))
      expect(idsOf(await resident.backfill(roomId, [ids[11]!], 3))).toEqual(ids.slice(9).toReversed())
    }),
  )

  it('tells no more at once than a cap allows', () =>
    stage.play('12', async (party) => {
      const { roomId, alpha } = party
      const ids = await saySome(party, MAX_EVENTS_PER_ANSWER + 5)
      const { resident } = alpha.engine
      const latest = [ids.at(-1)!]
      const between = { earliest: [], latest, limit: Number.POSITIVE_INFINITY }
      expect(await resident.missingEvents(roomId, between)).toHaveLength(MAX_EVENTS_PER_ANSWER)
      expect(await resident.backfill(roomId, latest, 1_000_000)).toHaveLength(MAX_EVENTS_PER_ANSWER)
      expect(await resident.events(roomId, ids)).toHaveLength(MAX_EVENTS_PER_ANSWER)
    }))

  it('tells nothing of another room, and no rejected event', () =>
    stage.play('10', async (party) => {
      const { run, roomId, alpha, beta, ann, bob } = party
      const request = { preset: 'public_chat', room_version: '10' } as const
      const other = await alpha.engine.services.rooms.create(await alpha.as(ann), request, undefined)
      const [said] = await saySome(party, 1)
      const levels = { type: 'm.room.power_levels', stateKey: '', content: { users: { [bob]: 100 } } }
      const { eventId: rejected, json } = await forge(party, bob, beta, levels)
      expect(await run.receive(alpha, beta.name, roomId, [json])).toMatchObject([{ kind: 'rejected' }])
      const { resident } = alpha.engine
      expect(await resident.events(roomId, [said!])).toMatchObject([{ type: 'm.room.message' }])
      for (const [room, id] of [
        [other.roomId, said!],
        ['!nowhere:alpha.test' as RoomId, said!],
        [roomId, rejected],
      ] as const) {
        expect(await resident.events(room, [id])).toEqual([])
        expect(await resident.stateIds(room, id)).toBe(undefined)
        expect(await resident.joinAnswer(room, id)).toBe(undefined)
        expect((await resident.backfill(room, [id], 1)).map((event) => event.json)).not.toContain(json)
        const between = { earliest: [], latest: [id], limit: 100 }
        if (room !== roomId) expect(await resident.missingEvents(room, between)).toEqual([])
      }
    }))

  it.each(['2', '11', '12'])('tells the state before an event with its auth chain, in room version %s', (version) =>
    stage.play(version, async (party) => {
      const { roomId, alpha, ann } = party
      const topic = await setState(party, ann, 'm.room.topic', { topic: 'one' })
      const [said] = await saySome(party, 1)
      const { resident } = alpha.engine
      const [before, after] = [await resident.stateIds(roomId, topic), await resident.stateIds(roomId, said!)]
      expect(before!.state).not.toContain(topic)
      expect([...after!.state].sort()).toEqual([...(await viewOf(party, alpha)).state.values()].sort())
      const { state, authChain } = (await resident.joinAnswer(roomId, said!))!
      expect(idsIn(party, state).sort()).toEqual([...after!.state].sort())
      expect(idsIn(party, authChain).sort()).toEqual([...after!.authChain].sort())
      const cited = [...state, ...authChain].flatMap((text) => (JSON.parse(text) as Pdu).auth_events.map(referencedId))
      // In version 12 nothing cites the create event, which authorises all the same.
      const create = (await viewOf(party, alpha)).state.get('m.room.create ')!
      expect(new Set([...cited, create])).toEqual(new Set(after!.authChain))
    }),
  )

  it.each(['2', '11', '12'])('leaves members out where that is wanted, in room version %s', (version) =>
    stage.play(version, async (party) => {
      const { roomId, alpha, ann } = party
      const { resident } = alpha.engine
      const [said] = await saySome(party, 1)
      const whole = (await resident.joinAnswer(roomId, said!))!
      const typesOf = (texts: readonly string[]) => texts.map((text) => (JSON.parse(text) as Pdu).type)
      const isMember = (type: string) => type === 'm.room.member'
      const others = typesOf(whole.state).filter((type) => !isMember(type))
      const nameless = (await resident.joinAnswer(roomId, said!, true))!
      // Without a name it is named after its members.
      expect(typesOf(nameless.state).filter(isMember).length).toBeGreaterThan(0)
      await setState(party, ann, 'm.room.name', { name: 'a party' })
      const [later] = await saySome(party, 1)
      const named = (await resident.joinAnswer(roomId, later!, true))!
      expect(typesOf(named.state).sort()).toEqual([...others, 'm.room.name'].sort())
      expect(named.areMembersOmitted).toBe(true)
      const ids = idsIn(party, [...named.state, ...named.authChain])
      expect(new Set(ids).size).toBe(ids.length)
      const texts = [...named.state, ...named.authChain]
      const cited = texts.flatMap((text) => (JSON.parse(text) as Pdu).auth_events.map(referencedId))
      expect(cited.filter((id) => !ids.includes(id))).toEqual([])
    }),
  )
})

describe('a server that helps others in', () => {
  it('gives templates for what the rules allow, as long as it is in the room', () =>
    stage.play('7', async (party) => {
      const { run, roomId, alpha, beta, gamma, ann, bob, cid } = party
      const { resident } = alpha.engine
      const dan = run.user('dan', gamma)
      const { roomVersion: id, event } = await resident.template(roomId, join(dan))
      const { extremities } = await viewOf(party, alpha)
      expect(id).toBe('7')
      expect(event).toMatchObject({ room_id: roomId, sender: dan, prev_events: extremities })
      expect([event.hashes, event.signatures]).toEqual([undefined, undefined])

      await run.does(ann, roomId, (rooms, by) => rooms.ban(by, roomId, dan, {}))
      await expect(resident.template(roomId, join(dan))).rejects.toMatchObject({ errcode: 'M_FORBIDDEN' })
      const knock = { ...join(cid), content: { membership: 'knock' } }
      await expect(resident.template(roomId, knock)).rejects.toMatchObject({ errcode: 'M_FORBIDDEN' })
      const leave = { ...join(cid), content: { membership: 'leave' } }
      expect((await resident.template(roomId, leave)).event.content).toEqual({ membership: 'leave' })

      await run.network.settle()
      await run.does(bob, roomId, (rooms, by) => rooms.leave(by, roomId, {}))
      const erin = run.user('erin', gamma)
      await expect(beta.engine.resident.template(roomId, join(erin))).rejects.toMatchObject({ errcode: 'M_NOT_FOUND' })
      const nowhere = '!nowhere:alpha.test' as RoomId
      await expect(resident.template(nowhere, join(erin))).rejects.toMatchObject({ errcode: 'M_NOT_FOUND' })
    }))

  it.each(['8', '12'])('signs restricted joins that it would let in, and nothing else, in room version %s', (version) =>
    stage.play(version, async (lobby) => {
      const { run, alpha, beta, ann, bob } = lobby
      const { rooms } = alpha.engine.services
      const allow = [{ type: 'm.room_membership', room_id: lobby.roomId }]
      const rule = { type: 'm.room.join_rules', content: { join_rule: 'restricted', allow } }
      const request = { room_version: version, initial_state: [rule] }
      const { roomId } = await rooms.create(await alpha.as(ann), request, undefined)
      const party = { ...lobby, roomId, version: roomVersion(version)! }
      const { resident } = alpha.engine
      const { event } = await resident.template(roomId, join(bob))
      expect(event.content).toEqual({ membership: 'join', join_authorised_via_users_server: ann })

      const admitted = { join_authorised_via_users_server: ann }
      const wanted = (user: typeof bob, content: JsonObject = { membership: 'join', ...admitted }) =>
        forge(party, user, alpha, { type: 'm.room.member', stateKey: user, content })
      const honest = parsed((await wanted(bob)).json)
      const signed = (await resident.countersign(roomId, honest)).value as Pdu
      expect(Object.keys(signed.signatures).sort()).toEqual([alpha.name, beta.name])

      const stranger = run.user('stranger', beta)
      await expect(resident.template(roomId, join(stranger))).rejects.toMatchObject({ errcode: 'M_FORBIDDEN' })
      const tampered = { ...(honest.value as JsonObject), content: { membership: 'join', ...admitted, extra: 1 } }
      const elsewhere = { ...(honest.value as JsonObject), room_id: lobby.roomId }
      const refused = [
        (await wanted(stranger)).json,
        (await wanted(bob, { membership: 'ban', ...admitted })).json,
        (await forge(party, bob, alpha, { type: 'm.room.message', content: { membership: 'join', ...admitted } })).json,
        JSON.stringify(tampered),
        JSON.stringify(elsewhere),
        '{}',
      ]
      for (const text of refused) await expect(resident.countersign(roomId, parsed(text))).rejects.toThrow()
      const unasked = parsed((await wanted(bob, { membership: 'join' })).json)
      expect(await resident.countersign(roomId, unasked)).toBe(unasked)
    }),
  )
})
