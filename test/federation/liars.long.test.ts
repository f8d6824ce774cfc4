import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type BuiltEvent, buildEvent } from '../../src/core/event/build.ts'
import type { Pdu } from '../../src/core/event/format.ts'
import type { EventId } from '../../src/core/ids.ts'
import { encodeCanonical } from '../../src/core/signing/canonical-json.ts'
import { MAX_CLAIMED_STATES, MAX_FETCHED_AUTH_EVENTS, MAX_FETCHES } from '../../src/domain/limits.ts'
import { forge, openStage, type Party, type Stage, setState, textOf, viewOf } from './party.ts'
import { type Answers, honestAnswers } from './world.ts'

let stage: Stage

beforeAll(async () => {
  stage = await openStage()
})
afterAll(() => stage.close())

const SILENT: Answers = {
  missingEvents: async () => [],
  stateIds: async () => undefined,
  events: async () => [],
}

/** The room as alpha has it, all its rows of events included. */
async function shapeOf(party: Party): Promise<unknown> {
  const { extremities, state, members, events } = await viewOf(party, party.alpha)
  return { extremities, state, members, events: [...events].map(([id, { standing }]) => [id, standing]) }
}

/** What alpha holds of the room for true: what came besides is rejected, soft-failed or has no place. */
async function truthOf(party: Party): Promise<unknown> {
  const { extremities, state, members, events } = await viewOf(party, party.alpha)
  const accepted = [...events.values()].filter(({ standing }) => standing === null).map(({ id }) => id)
  return { extremities, state, members, accepted }
}

/** Alpha is sent something by beta, which answers questions in its own way. */
async function lieTo(party: Party, answers: Partial<Answers>, texts: readonly string[]) {
  const { run, roomId, alpha, beta } = party
  run.lies.set(beta.name, { ...SILENT, ...answers })
  const before = run.questions.length
  const received = await run.receive(alpha, beta.name, roomId, texts)
  const asked = run.questions.slice(before)
  const count = (wanted: string): number => asked.filter(({ kind }) => kind === wanted).length
  return {
    kinds: received.map(({ kind }) => kind),
    asked: { missingEvents: count('missingEvents'), stateIds: count('stateIds'), events: count('events') },
  }
}

const UNKNOWN = '$nobody-has-ever-seen-this-event-before-000000' as EventId

describe('a server that lies about what is missing', () => {
  it.each(['3', '12'])('with events of another room gets nothing in, in room version %s', (version) =>
    stage.play(version, async (party) => {
      const { alpha, beta, bob } = party
      const request = { preset: 'public_chat', room_version: version } as const
      const other = await beta.engine.services.rooms.create(await beta.as(bob), request, undefined)
      const elsewhere = await viewOf({ roomId: other.roomId }, beta)
      const ids = [...elsewhere.events.keys()]
      const texts = await honestAnswers(beta.engine.resident).events(other.roomId, ids)
      const event = await forge(party, bob, beta, { prev: [ids.at(-1)!] })
      const before = await shapeOf(party)
      const { kinds, asked } = await lieTo(
        party,
        {
          missingEvents: async () => texts,
          stateIds: async () => ({ state: ids, authChain: ids }),
          events: async () => texts,
        },
        [event.json],
      )
      expect(kinds).toEqual(['dropped'])
      expect(asked.missingEvents + asked.stateIds + asked.events).toBeLessThan(5)
      expect(await shapeOf(party)).toEqual(before)
      expect(await alpha.db.query('SELECT 1 FROM event WHERE event_id = ANY($1::text[])', [ids])).toEqual([])
    }),
  )

  it('with events of a room that is known here as well gets nothing in', () =>
    stage.play('10', async (party) => {
      const { run, alpha, beta, ann, bob } = party
      const request = { preset: 'public_chat', room_version: '10' } as const
      const other = await alpha.engine.services.rooms.create(await alpha.as(ann), request, undefined)
      const elsewhere = await viewOf({ roomId: other.roomId }, alpha)
      const event = await forge(party, bob, beta, { prev: [...elsewhere.extremities] })
      const before = await shapeOf(party)
      expect((await lieTo(party, {}, [event.json])).kinds).toEqual(['dropped'])
      const state = [...elsewhere.state.values()]
      const queries = { stateIds: async () => ({ state, authChain: state }) }
      const unplaced = await forge(party, bob, beta, { prev: [UNKNOWN] })
      expect((await lieTo(party, queries, [unplaced.json])).kinds).toEqual(['dropped'])
      expect(await shapeOf(party)).toEqual(before)
      expect(run.trace.join('\n')).toContain('another room')
    }))

  it.each(['1', '4', '12'])('with forged events gets nothing in, in room version %s', (version) =>
    stage.play(version, async (party) => {
      const { ann, bob, beta } = party
      const missing = await forge(party, bob, beta, { content: { msgtype: 'm.text', body: 'as it was' } })
      const event = await forge(party, bob, beta, { prev: [missing.eventId] })
      const { signatures, ...unsigned } = missing.pdu
      const [[keyId, signature]] = Object.entries(signatures[beta.name]!) as [[string, string]]
      const forgeries = [
        { ...unsigned, signatures: {} },
        {
          ...unsigned,
          signatures: { [beta.name]: { [keyId]: `${signature[0] === 'A' ? 'B' : 'A'}${signature.slice(1)}` } },
        },
        { ...unsigned, signatures, sender: ann },
        { ...unsigned, signatures, room_id: '!other:beta.test' },
        { ...unsigned, signatures, depth: -1 },
        { ...unsigned, signatures, prev_events: 'none' },
      ]
      const texts = forgeries.map((forgery) => encodeCanonical(forgery))
      const before = await shapeOf(party)
      const { kinds } = await lieTo(party, { missingEvents: async () => texts, events: async () => texts }, [
        event.json,
        ...texts,
      ])
      expect(kinds).toEqual(['dropped', ...texts.map(() => 'dropped')])
      expect(await shapeOf(party)).toEqual(before)
    }),
  )

  it('without an end is not listened to for long', () =>
    stage.play('12', async (party) => {
      const { bob, beta } = party
      let made = 0
      // Each answer is a well-formed event after one that is missing as well.
      const chain = [await forge(party, bob, beta, { prev: [UNKNOWN] })]
      for (let level = 0; level < 2 * MAX_FETCHES; level++) {
        chain.push(await forge(party, bob, beta, { prev: [chain.at(-1)!.eventId], content: { level } }))
      }
      const newest = chain.pop()!
      const before = await shapeOf(party)
      const { kinds, asked } = await lieTo(
        party,
        { missingEvents: async () => [chain[chain.length - ++made]?.json ?? newest.json] },
        [newest.json],
      )
      expect(kinds).toEqual(['dropped'])
      expect(asked.missingEvents).toBeLessThanOrEqual(MAX_FETCHES)
      expect(asked.stateIds).toBeLessThanOrEqual(MAX_CLAIMED_STATES)
      expect(await shapeOf(party)).toEqual(before)
    }))

  it('that tells one event at a time is followed for ten levels', () =>
    stage.play('6', async (party) => {
      const { run, roomId, alpha, beta, bob } = party
      run.network.part([[alpha.name], [beta.name]])
      const ids: EventId[] = []
      for (let level = 0; level <= 10; level++) ids.push(await run.say(bob, roomId, `${level}`))
      run.network.heal()
      const honest = honestAnswers(beta.engine.resident)
      const slowly: Partial<Answers> = {
        missingEvents: async (id, between) => (await honest.missingEvents(id, between)).slice(-1),
      }
      const { kinds, asked } = await lieTo(party, slowly, [await textOf(party, beta, ids.at(-1)!)])
      expect(kinds).toEqual(['accepted'])
      expect(asked).toEqual({ missingEvents: 10, stateIds: 0, events: 0 })
      const { events } = await viewOf(party, alpha)
      expect(ids.map((id) => events.get(id)?.standing)).toEqual(ids.map(() => null))
    }))

  it('about what authorises an event is not listened to without end', () =>
    stage.play('12', async (party) => {
      const { bob, beta, version } = party
      const member = { type: 'm.room.member', stateKey: bob, content: { membership: 'join' } }
      const first = await forge(party, bob, beta, member)
      const made = new Map<string, string>()
      let cited = UNKNOWN
      for (let level = 0; level < 1.5 * MAX_FETCHED_AUTH_EVENTS; level++) {
        const event = rebuilt(party, first.pdu, cited, level)
        made.set(event.eventId, event.json)
        cited = event.eventId
      }
      const newest = rebuilt(party, first.pdu, cited, -1)
      const before = await shapeOf(party)
      const { kinds, asked } = await lieTo(
        party,
        { events: async (_, ids) => ids.flatMap((id) => made.get(id) ?? []) },
        [newest.json],
      )
      expect(version.createIsAuthEvent).toBe(false)
      expect(kinds).toEqual(['dropped'])
      expect(asked.events).toBeLessThanOrEqual(MAX_FETCHED_AUTH_EVENTS)
      expect(await shapeOf(party)).toEqual(before)
    }))
})

/** An event as it was, but for what it cites. */
function rebuilt({ beta, version }: Party, pdu: Pdu, cited: EventId, level: number): BuiltEvent {
  const { hashes: _, signatures: __, ...draft } = pdu
  const content = { ...pdu.content, level }
  return buildEvent(version, { ...draft, content, auth_events: [cited] }, beta.name, beta.signingKey)
}

describe('a server that lies about the state', () => {
  it.each(['2', '10', '12'])('does not undo a ban, in room version %s', (version) =>
    stage.play(version, async (party) => {
      const { run, roomId, alpha, beta, ann, bob } = party
      const permitted = await viewOf(party, beta)
      run.network.part([[alpha.name], [beta.name]])
      await run.does(ann, roomId, (rooms, by) => rooms.ban(by, roomId, bob, {}))
      run.network.heal()
      const event = await forge(party, bob, beta, { prev: [UNKNOWN] })
      const state = [...permitted.state.values()]
      const before = await truthOf(party)
      const { kinds } = await lieTo(party, { stateIds: async () => ({ state, authChain: state }) }, [event.json])
      expect(kinds).toEqual(['soft-failed'])
      expect(await truthOf(party)).toEqual(before)
    }),
  )

  it('does not give its users power', () =>
    stage.play('11', async (party) => {
      const { beta, ann, bob } = party
      const view = await viewOf(party, beta)
      const levels = { users: { [bob]: 100 } }
      const crown = await forge(party, bob, beta, { type: 'm.room.power_levels', stateKey: '', content: levels })
      const kick = { type: 'm.room.member', stateKey: ann, content: { membership: 'leave' }, prev: [UNKNOWN] }
      const event = await forge(party, bob, beta, kick)
      const state = [...view.state].map(([key, id]) => (key === 'm.room.power_levels ' ? crown.eventId : id))
      const before = await truthOf(party)
      const { kinds } = await lieTo(
        party,
        {
          stateIds: async () => ({ state, authChain: [...view.state.values()] }),
          events: async (_, ids) => (ids.includes(crown.eventId) ? [crown.json] : []),
        },
        [event.json],
      )
      expect(kinds).toEqual(['rejected'])
      expect(await truthOf(party)).toEqual(before)
    }))

  it('that names two events for one key, or what it cannot show, is not believed', () =>
    stage.play('9', async (party) => {
      const { run, alpha, beta, ann, bob } = party
      const first = (await viewOf(party, beta)).state
      await setState(party, ann, 'm.room.topic', { topic: 'one' })
      const older = await setState(party, ann, 'm.room.topic', { topic: 'two' })
      await setState(party, ann, 'm.room.topic', { topic: 'three' })
      await run.network.settle()
      const view = await viewOf(party, alpha)
      const before = await shapeOf(party)
      const states = [
        [...view.state.values(), older],
        [...first.values(), UNKNOWN],
      ]
      for (const state of states) {
        const event = await forge(party, bob, beta, { prev: [UNKNOWN] })
        const { kinds } = await lieTo(party, { stateIds: async () => ({ state, authChain: [] }) }, [event.json])
        expect(kinds).toEqual(['dropped'])
      }
      expect(await shapeOf(party)).toEqual(before)
    }))
})

describe('events in a circle', () => {
  it.each(['1', '2'])('are dropped, sent together or one by one, in room version %s', (version) =>
    stage.play(version, async (party) => {
      const { bob, beta } = party
      const [one, other] = ['$one:beta.test', '$other:beta.test'] as [EventId, EventId]
      const circle = [
        await forge(party, bob, beta, { eventId: one, prev: [other] }),
        await forge(party, bob, beta, { eventId: other, prev: [one] }),
        await forge(party, bob, beta, { eventId: '$self:beta.test', prev: ['$self:beta.test' as EventId] }),
      ].map(({ json }) => json)
      const before = await shapeOf(party)
      expect((await lieTo(party, {}, circle)).kinds).toEqual(['dropped', 'dropped', 'dropped'])
      const answers = { missingEvents: async () => circle, events: async () => circle }
      for (const text of circle) {
        const { kinds, asked } = await lieTo(party, answers, [text])
        expect(kinds).toEqual(['dropped'])
        expect(asked.missingEvents).toBeLessThanOrEqual(2)
      }
      expect(await shapeOf(party)).toEqual(before)
    }),
  )
})
