import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { waitUntil } from '../../support/wait.ts'
import { Connection, FORMS } from '../../sync/sliding/connection.ts'
import { type House, inRoom, openHouse, type Person, textsOf } from '../people.ts'

/** Who has what to do with the room: `early` were there from the start and until the time told by their name. */
const PEOPLE = ['stays', 'late', 'invited', 'rejects', 'leaves', 'kicked', 'banned', 'forgets', 'stranger'] as const
type Role = (typeof PEOPLE)[number]

const VISIBILITIES = ['world_readable', 'shared', 'invited', 'joined'] as const
type Visibility = (typeof VISIBILITIES)[number]

/** The room is told 1, then people are invited; 2; people go; 3; `late` joins; 4. */
const ALL = ['1', '2', '3', '4']

/** What each sees. Undefined: they may not read the room at all. */
const SEEN: Readonly<Record<Role, Readonly<Record<Visibility, readonly string[] | undefined>>>> = {
  stays: { world_readable: ALL, shared: ALL, invited: ALL, joined: ALL },
  late: { world_readable: ALL, shared: ALL, invited: ['4'], joined: ['4'] },
  invited: { world_readable: ALL, shared: [], invited: ['2', '3', '4'], joined: [] },
  rejects: { world_readable: ALL, shared: undefined, invited: undefined, joined: undefined },
  leaves: { world_readable: ALL, shared: ['1', '2'], invited: ['1', '2'], joined: ['1', '2'] },
  kicked: { world_readable: ALL, shared: ['1', '2'], invited: ['1', '2'], joined: ['1', '2'] },
  banned: { world_readable: ALL, shared: ['1', '2'], invited: ['1', '2'], joined: ['1', '2'] },
  forgets: { world_readable: ALL, shared: undefined, invited: undefined, joined: undefined },
  stranger: { world_readable: ALL, shared: undefined, invited: undefined, joined: undefined },
}

const IN_ROOM: readonly Role[] = ['stays', 'late']
const WERE_IN_ROOM: readonly Role[] = ['leaves', 'kicked', 'banned']

interface Stage {
  readonly room: string
  /** The ids of messages 1 to 4. */
  readonly messages: readonly string[]
  /** The id of a sticky event, sent before `late` joins. */
  readonly sticky: string
  readonly startedAt: number
}

const STICKY_FOR = 'org.matrix.msc4354.sticky_duration_ms'
const DELAY = 'org.matrix.msc4140.delay'
const LATER = 'said later'
const STICKY_EXTENSION = 'org.matrix.msc4354.sticky_events'

let house: House
let host: Person
/** A token from before all rooms. */
let beginning: string
const people = {} as Record<Role, Person>
const stages = {} as Record<Visibility, Stage>

beforeAll(async () => {
  house = await openHouse()
  host = await house.person('host')
  for (const role of PEOPLE) people[role] = await house.person(role)
  beginning = (await host.sync()).next_batch
  for (const visibility of VISIBILITIES) stages[visibility] = await play(visibility)
})

afterAll(() => house.close())

/** The messages after the first are replies in its thread. */
async function tellAfter(room: string, root: string, body: string): Promise<string> {
  const relation = { rel_type: 'm.thread', event_id: root }
  const content = { msgtype: 'm.text', body, 'm.relates_to': relation }
  return (await host.call('POST', inRoom(room, '/send/m.room.message'), content)).event_id
}

async function play(visibility: Visibility): Promise<Stage> {
  const startedAt = Date.now()
  const room = await host.createRoom({
    preset: 'public_chat',
    topic: 'before',
    initial_state: [{ type: 'm.room.history_visibility', content: { history_visibility: visibility } }],
  })
  const target = (role: Role) => ({ user_id: people[role].userId })
  for (const role of ['stays', 'leaves', 'kicked', 'banned', 'forgets'] as const) await people[role].join(room)
  const first = await host.say(room, '1')
  for (const role of ['invited', 'rejects'] as const) await host.invite(room, people[role])
  const second = await tellAfter(room, first, '2')
  await people.leaves.leave(room)
  await people.forgets.leave(room)
  await people.rejects.leave(room)
  await people.forgets.call('POST', inRoom(room, '/forget'), {})
  await host.call('POST', inRoom(room, '/kick'), target('kicked'))
  await host.call('POST', inRoom(room, '/ban'), target('banned'))
  const third = await tellAfter(room, first, '3')
  await host.setState(room, 'm.room.topic', { topic: 'after' })
  const stuck = await host.call('PUT', inRoom(room, `/send/org.example.note/s?${STICKY_FOR}=600000`), {})
  await people.late.join(room)
  await host.setState(room, 'm.room.join_rules', { join_rule: 'invite' })
  const fourth = await tellAfter(room, first, '4')
  await host.call('PUT', inRoom(room, `/send/m.room.message/later?${DELAY}=600000`), { msgtype: 'm.text', body: LATER })
  return { room, messages: [first, second, third, fourth], sticky: stuck.event_id, startedAt }
}

const CASES = VISIBILITIES.flatMap((visibility) =>
  PEOPLE.map((role) => ({ visibility, role, seen: SEEN[role][visibility] })),
)

const isOpen = (visibility: Visibility) => visibility === 'world_readable'

describe.each(CASES)('$visibility history, somebody who $role', ({ visibility, role, seen }) => {
  const of = () => ({ person: people[role], ...stages[visibility] })

  it('pages through what they may see, in both directions', async () => {
    const { person, room } = of()
    const back = await person.ask('GET', inRoom(room, '/messages?dir=b&limit=100'))
    const forth = await person.ask('GET', inRoom(room, '/messages?dir=f&limit=100'))
    // The merely invited page through nothing that the world does not.
    if (seen === undefined || (role === 'invited' && !isOpen(visibility))) {
      expect([back.status, forth.status]).toEqual([403, 403])
      expect(back.body.errcode).toBe('M_FORBIDDEN')
    } else {
      expect(textsOf(back.body.chunk)).toEqual(seen.toReversed())
      expect(textsOf(forth.body.chunk)).toEqual(seen)
    }
  })

  it('gets single events and their context, or no word of their existence', async () => {
    const { person, room, messages } = of()
    for (const [index, id] of messages.entries()) {
      const isSeen = seen?.includes(ALL[index]!) ?? false
      const event = await person.ask('GET', inRoom(room, `/event/${encodeURIComponent(id)}`))
      expect([event.status, event.body.errcode]).toEqual(isSeen ? [200, undefined] : [404, 'M_NOT_FOUND'])
      const context = await person.ask('GET', inRoom(room, `/context/${encodeURIComponent(id)}?limit=100`))
      expect(context.status).toBe(isSeen ? 200 : seen === undefined ? 403 : 404)
      if (!isSeen) continue
      expect(event.body).toMatchObject({ event_id: id, room_id: room, content: { body: ALL[index] } })
      const { events_before, event: middle, events_after } = context.body
      expect(textsOf([...events_before.toReversed(), middle, ...events_after])).toEqual(seen)
    }
  })

  it('previews the room by what clients used before sync', async () => {
    const { person, room, messages } = of()
    const preview = await person.ask('GET', inRoom(room, '/initialSync?limit=100'))
    const events = await person.ask(
      'GET',
      `/events?room_id=${encodeURIComponent(room)}&from=${encodeURIComponent(beginning)}`,
    )
    if (seen === undefined || (role === 'invited' && !isOpen(visibility))) {
      expect([preview.status, events.status]).toEqual([403, 403])
    } else {
      expect(textsOf(preview.body.messages.chunk)).toEqual(seen)
      expect(textsOf(events.body.chunk)).toEqual(seen)
      const isNow = IN_ROOM.includes(role) || (isOpen(visibility) && !WERE_IN_ROOM.includes(role))
      const topic = preview.body.state.find((event: { type: string }) => event.type === 'm.room.topic')
      expect(topic.content.topic).toBe(isNow ? 'after' : 'before')
    }
    for (const [index, id] of messages.entries()) {
      const { status } = await person.ask('GET', `/events/${encodeURIComponent(id)}`)
      expect(status).toBe(seen?.includes(ALL[index]!) ? 200 : 404)
    }
    const { rooms } = await person.call('GET', '/initialSync?limit=100&archived=true')
    const own = rooms.find((entry: { room_id: string }) => entry.room_id === room)
    if (role === 'invited') expect(own).toMatchObject({ membership: 'invite', invite: { type: 'm.room.member' } })
    else if ([...IN_ROOM, ...WERE_IN_ROOM].includes(role)) expect(textsOf(own.messages.chunk)).toEqual(seen)
    else if (!isOpen(visibility)) expect(own).toBeUndefined()
  })

  it.each(FORMS)('gets of it by sliding sync what they saw while they were in it (%s form)', async (form) => {
    const { person, room } = of()
    const rooms = { [room]: { limit: 100, state: [['m.room.topic', ''] as const] } }
    const { rooms: shown } = await new Connection(person, form, 'matrix').next({ lists: { all: {} }, rooms })
    if (role === 'invited') {
      expect(Object.keys(shown[room])).not.toContain('timeline')
      expect(JSON.stringify(shown[room])).not.toContain('m.room.message')
    } else if (IN_ROOM.includes(role) || WERE_IN_ROOM.includes(role)) {
      expect(textsOf(shown[room].timeline)).toEqual(IN_ROOM.includes(role) ? seen : ['1', '2'])
      expect(
        shown[room].required_state.find(({ type }: { type: string }) => type === 'm.room.topic').content.topic,
      ).toBe(IN_ROOM.includes(role) ? 'after' : 'before')
    } else expect(shown[room]).toBeUndefined()
  })

  it('gets of it by sync what they saw while they were in it', async () => {
    const { person, room } = of()
    const filter = { room: { rooms: [room], include_leave: true, timeline: { limit: 100 } } }
    const { rooms } = await person.call('GET', `/sync?filter=${encodeURIComponent(JSON.stringify(filter))}`)
    const { timeline } = rooms?.join?.[room] ?? rooms?.leave?.[room] ?? {}
    const expected = IN_ROOM.includes(role) ? seen : WERE_IN_ROOM.includes(role) ? ['1', '2'] : []
    expect(textsOf(timeline?.events ?? [])).toEqual(expected)
    expect(rooms?.invite?.[room] !== undefined).toBe(role === 'invited')
    expect(JSON.stringify(rooms?.invite ?? {})).not.toContain('m.room.message')
  })

  it('is delivered what is sticky only while they are in it', async () => {
    const { person, room, sticky } = of()
    const filter = { room: { rooms: [room], include_leave: true, timeline: { limit: 0 } } }
    const whole = await person.call('GET', `/sync?filter=${encodeURIComponent(JSON.stringify(filter))}`)
    const extensions = { [STICKY_EXTENSION]: { enabled: true } }
    const list = { lists: { all: { limit: 0 } }, rooms: { [room]: { limit: 0 } }, extensions }
    const sliding = await new Connection(person, 'unstable', 'sticky').next(list)
    const isDelivered = IN_ROOM.includes(role)
    expect([whole, sliding].map((answer) => JSON.stringify(answer).includes(sticky))).toEqual([
      isDelivered,
      isDelivered,
    ])
  })

  it('lists notifications of what was sent while they are in the room, and no others', async () => {
    const { person, room } = of()
    const { notifications } = await person.call('GET', '/notifications?limit=500')
    const found = notifications.filter((one: { room_id: string }) => one.room_id === room)
    const events = found.map(({ event }: { event: object }) => event)
    expect(textsOf(events)).toEqual(role === 'stays' ? ALL.toReversed() : role === 'late' ? ['4'] : [])
    const invitation = { type: 'm.room.member', state_key: person.userId, content: { membership: 'invite' } }
    if (role === 'invited') expect(events).toMatchObject([invitation])
    else if (!IN_ROOM.includes(role)) expect(events).toEqual([])
  })

  it('gets what relates to an event they see, and the thread as far as they see it', async () => {
    const { person, room, messages } = of()
    const root = messages[0]!
    const path = (rest: string) => `/_matrix/client/v1${inRoom(room, rest)}`
    const related = await person.ask('GET', path(`/relations/${encodeURIComponent(root)}?limit=10`))
    const deep = await person.ask('GET', path(`/relations/${encodeURIComponent(root)}/m.thread?limit=10&recurse=true`))
    const threads = await person.ask('GET', path('/threads'))
    if (!seen?.includes('1')) {
      expect([related.status, deep.status]).toEqual([404, 404])
      expect(threads.body.chunk ?? []).toEqual([])
      return
    }
    const replies = seen.slice(1).toReversed()
    expect([textsOf(related.body.chunk), textsOf(deep.body.chunk)]).toEqual([replies, replies])
    const bundle = { count: replies.length, latest_event: { content: { body: replies[0] } } }
    const listed = { event_id: root, unsigned: { 'm.relations': { 'm.thread': bundle } } }
    expect(threads.body.chunk).toMatchObject([listed])
    expect(await person.call('GET', inRoom(room, `/event/${encodeURIComponent(root)}`))).toMatchObject(listed)
  })

  it('finds what they saw while they are or were in the room, by its words', async () => {
    const { person, room } = of()
    const isSearched = IN_ROOM.includes(role) || WERE_IN_ROOM.includes(role)
    const expected = isSearched ? (seen ?? []) : []
    for (const text of ALL) {
      const room_events = { search_term: text, order_by: 'recent', filter: { rooms: [room] } }
      const found = async () => {
        const answer = await person.call('POST', '/search', { search_categories: { room_events } })
        return textsOf(answer.search_categories.room_events.results.map(({ result }: { result: object }) => result))
      }
      if (expected.includes(text)) await waitUntil(`${text} to be indexed`, async () => (await found()).length > 0)
      expect(await found()).toEqual(expected.includes(text) ? [text] : [])
    }
  })

  it('finds events by their time', async () => {
    const { person, room, startedAt } = of()
    const path = (ts: number, dir: string) =>
      `/_matrix/client/v1${inRoom(room, `/timestamp_to_event?ts=${ts}&dir=${dir}`)}`
    const last = await person.ask('GET', path(Date.now() + 60_000, 'b'))
    if (seen === undefined) {
      expect(last.status).toBe(403)
      expect((await person.ask('GET', path(startedAt, 'f'))).status).toBe(403)
      return
    }
    if (role === 'invited' && !isOpen(visibility)) return void expect([200, 404]).toContain(last.status)
    const all = await person.call('GET', inRoom(room, '/messages?dir=b&limit=100'))
    const newest = all.chunk[0]?.event_id
    expect(last).toMatchObject(
      newest === undefined ? { status: 404, body: { errcode: 'M_NOT_FOUND' } } : { body: { event_id: newest } },
    )
  })

  it('reads state: as it is, as it was when they left, or not at all', async () => {
    const { person, room } = of()
    const topic = await person.ask('GET', inRoom(room, '/state/m.room.topic'))
    const state = await person.ask('GET', inRoom(room, '/state'))
    const members = await person.ask('GET', inRoom(room, '/members'))
    const isNow = IN_ROOM.includes(role) || (isOpen(visibility) && !WERE_IN_ROOM.includes(role))
    if (!isNow && !WERE_IN_ROOM.includes(role)) {
      expect([topic.status, state.status, members.status]).toEqual([403, 403, 403])
      return
    }
    const expected = isNow ? 'after' : 'before'
    const late = [state.body, members.body.chunk].map((events) =>
      events.some((event: { state_key?: string }) => event.state_key === people.late.userId),
    )
    expect(topic.body.topic).toBe(expected)
    expect(state.body.find((event: { type: string }) => event.type === 'm.room.topic').content.topic).toBe(expected)
    expect(late).toEqual([isNow, isNow])
  })

  it('is told who is in the room and what it is called when they are in it', async () => {
    const { person, room } = of()
    const joined = await person.ask('GET', inRoom(room, '/joined_members'))
    const aliases = await person.ask('GET', inRoom(room, '/aliases'))
    expect(joined.status).toBe(IN_ROOM.includes(role) ? 200 : 403)
    expect(aliases.status).toBe(IN_ROOM.includes(role) || isOpen(visibility) ? 200 : 403)
  })

  it('is shown what the room is, alone or in the hierarchy of spaces, when they are in it, are invited or everybody may look', async () => {
    const { person, room } = of()
    const isShown = IN_ROOM.includes(role) || role === 'invited' || isOpen(visibility)
    const summary = await person.ask('GET', `/_matrix/client/v1/room_summary/${encodeURIComponent(room)}`)
    const hierarchy = await person.ask('GET', `/_matrix/client/v1${inRoom(room, '/hierarchy')}`)
    if (isShown) {
      const shown = { room_id: room, topic: 'after', num_joined_members: 3 }
      expect([summary.body, hierarchy.body.rooms[0]]).toMatchObject([shown, shown])
    } else {
      expect([summary.status, hierarchy.status]).toEqual([404, 403])
      expect(JSON.stringify([summary.body, hierarchy.body])).not.toContain('after')
    }
  })

  it('has the room in common with others when they are in it', async () => {
    const { person, room } = of()
    const path = `/_matrix/client/v1/mutual_rooms?user_id=${encodeURIComponent(host.userId)}`
    const { joined } = await person.call('GET', path)
    expect(joined.includes(room)).toBe(IN_ROOM.includes(role))
    // Neither is what others will say shown to anybody.
    expect(JSON.stringify(await person.call('GET', '/_matrix/client/v1/delayed_events'))).not.toContain(LATER)
    expect(JSON.stringify(await host.call('GET', '/_matrix/client/v1/delayed_events'))).toContain(LATER)
  })

  it('marks as read only what they can see, from within the room', async () => {
    const { person, room, messages } = of()
    const last = await person.ask('POST', inRoom(room, `/receipt/m.read/${encodeURIComponent(messages[3]!)}`), {})
    const first = await person.ask('POST', inRoom(room, `/receipt/m.read/${encodeURIComponent(messages[0]!)}`), {})
    expect(last.status).toBe(IN_ROOM.includes(role) ? 200 : 403)
    expect(first.status).toBe(IN_ROOM.includes(role) ? (seen?.includes('1') ? 200 : 404) : 403)
  })
})

describe('history whose visibility changes', () => {
  it('is seen by the rule that held at each event', async () => {
    const room = await host.createRoom({ preset: 'public_chat' })
    const set = (history_visibility: string) => host.setState(room, 'm.room.history_visibility', { history_visibility })
    await host.say(room, 'shared')
    await set('joined')
    await host.say(room, 'joined')
    const opening = await set('world_readable')
    await host.say(room, 'open')
    const closing = await set('joined')
    await host.say(room, 'closed')
    await people.stranger.join(room)
    const { chunk } = await people.stranger.call('GET', inRoom(room, '/messages?dir=f&limit=100'))
    expect(textsOf(chunk)).toEqual(['shared', 'open'])
    // An event that changes the visibility is seen when either side of it lets it be.
    const ids = chunk.map(({ event_id }: { event_id: string }) => event_id)
    expect(ids).toEqual(expect.arrayContaining([opening, closing]))
    // One's own joining is seen, from after it.
    expect(chunk.at(-1)).toMatchObject({ type: 'm.room.member', state_key: people.stranger.userId })
    await people.stranger.leave(room)
  })

  it('stays closed where it was, when it opens later', async () => {
    const room = await host.createRoom({ preset: 'public_chat' })
    const set = (history_visibility: string) => host.setState(room, 'm.room.history_visibility', { history_visibility })
    await set('invited')
    await host.say(room, 'closed')
    await set('shared')
    await host.say(room, 'shared')
    await people.stranger.join(room)
    const { chunk } = await people.stranger.call('GET', inRoom(room, '/messages?dir=f&limit=100'))
    expect(textsOf(chunk)).toEqual(['shared'])
    expect(textsOf((await host.call('GET', inRoom(room, '/messages?dir=f&limit=100'))).chunk)).toEqual([
      'closed',
      'shared',
    ])
    await people.stranger.leave(room)
  })

  it('of two stays shows both and not what was between', async () => {
    const room = await host.createRoom({
      preset: 'public_chat',
      initial_state: [{ type: 'm.room.history_visibility', content: { history_visibility: 'joined' } }],
    })
    const guest = people.stranger
    await guest.join(room)
    await host.say(room, 'first stay')
    await guest.leave(room)
    await host.say(room, 'between')
    await guest.join(room)
    await host.say(room, 'second stay')
    const path = inRoom(room, '/messages?dir=f&limit=100')
    expect(textsOf((await guest.call('GET', path)).chunk)).toEqual(['first stay', 'second stay'])
    await guest.leave(room)
    await host.say(room, 'afterwards')
    expect(textsOf((await guest.call('GET', path)).chunk)).toEqual(['first stay', 'second stay'])
  })

  it('says the same of rooms that exist and rooms that do not', async () => {
    const path = (room: string) => inRoom(room, '/messages?dir=b')
    const secret = await host.createRoom({ preset: 'private_chat' })
    const unknown = '!nothing-is-here:localhost'
    expect(await people.stranger.ask('GET', path(secret))).toEqual(await people.stranger.ask('GET', path(unknown)))
  })

  it('never shows an event through another room', async () => {
    const [one, other] = [await host.createRoom(), await host.createRoom()]
    const id = encodeURIComponent(await host.say(one, 'here'))
    for (const [method, rest] of [
      ['GET', `/event/${id}`],
      ['GET', `/context/${id}`],
      ['POST', `/receipt/m.read/${id}`],
    ] as const) {
      const body = method === 'POST' ? {} : undefined
      expect((await host.ask(method, inRoom(one, rest), body)).status).toBe(200)
      expect(await host.ask(method, inRoom(other, rest), body)).toMatchObject({
        status: 404,
        body: { errcode: 'M_NOT_FOUND' },
      })
    }
    const redaction = await host.ask('PUT', inRoom(other, `/redact/${id}/txn`), {})
    expect(redaction.status).toBe(404)
  })
})
