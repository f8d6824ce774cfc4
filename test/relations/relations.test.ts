import { afterAll, beforeAll, describe, expect, it, test } from 'vitest'
import { type House, inRoom, openHouse, type Person } from '../rooms/people.ts'
import type { Json } from '../support/api.ts'
import { bundleOf, edit, pagesOf, react, redact, relate, relationsAt, reply } from './people.ts'

let house: House
let alice: Person
let bob: Person
let room: string

beforeAll(async () => {
  house = await openHouse()
  alice = await house.person('alice')
  bob = await house.person('bob')
  room = await alice.createRoom({ preset: 'public_chat' })
  await bob.join(room)
})
afterAll(() => house.close())

const idsIn = ({ chunk }: Json): string[] => chunk.map(({ event_id }: Json) => event_id)

describe('the events that relate to an event', () => {
  it('are listed newest first, in pages without gap or repetition, both ways (CW#504, CW#556)', async () => {
    const root = await alice.say(room, 'root')
    const replies: string[] = []
    for (let number = 0; number < 11; number++) replies.push(await reply(number % 2 ? alice : bob, room, root))
    expect(await pagesOf(bob, relationsAt(room, root, '?limit=5'))).toEqual(replies.toReversed())
    expect(await pagesOf(bob, relationsAt(room, root, '?limit=5&dir=b'))).toEqual(replies.toReversed())
    expect(await pagesOf(bob, relationsAt(room, root, '/m.thread?limit=5&dir=f'))).toEqual(replies)
    expect(await pagesOf(bob, relationsAt(room, root, '/m.thread/m.room.message?limit=11&dir=f'))).toEqual(replies)
  })

  it('are chosen by how they relate and by their type', async () => {
    const target = await alice.say(room, 'target')
    const [edited, liked, noted] = [
      await edit(alice, room, target),
      await react(bob, room, target),
      await relate(bob, room, target, 'org.example.note', { type: 'org.example.event' }),
    ]
    const listed = async (rest: string) => idsIn(await bob.call('GET', relationsAt(room, target, rest)))
    expect(await listed('')).toEqual([noted, liked, edited])
    expect(await listed('/m.annotation')).toEqual([liked])
    expect(await listed('/m.annotation/m.reaction')).toEqual([liked])
    expect(await listed('/m.annotation/m.room.message')).toEqual([])
    expect(await listed('/org.example.note')).toEqual([noted])
    expect(await listed('/m.reference')).toEqual([])
  })

  it('are listed with those that relate to them, three relations deep', async () => {
    const root = await alice.say(room, 'root')
    const first = await reply(bob, room, root)
    const second = await relate(bob, room, first, 'm.reference')
    const third = await relate(bob, room, second, 'm.reference')
    await relate(bob, room, third, 'm.reference')
    expect(idsIn(await alice.call('GET', relationsAt(room, root)))).toEqual([first])
    const deep = await alice.call('GET', relationsAt(room, root, '?recurse=true'))
    expect(idsIn(deep)).toEqual([third, second, first])
    expect(deep.recursion_depth).toBe(3)
    expect(await pagesOf(alice, relationsAt(room, root, '?recurse=true&limit=1&dir=f'))).toEqual([first, second, third])
    // A filter applies to every event on the way.
    expect(idsIn(await alice.call('GET', relationsAt(room, root, '/m.thread?recurse=true')))).toEqual([first])
  })

  it('have tokens that messages, context and sync understand, and the other way round', async () => {
    const root = await alice.say(room, 'root')
    const [before, between, after] = [
      await reply(bob, room, root, 'before'),
      await reply(bob, room, root, 'between'),
      await reply(bob, room, root, 'after'),
    ]
    const context = await alice.call('GET', inRoom(room, `/context/${encodeURIComponent(between)}?limit=0`))
    const listed = async (query: string) => idsIn(await alice.call('GET', relationsAt(room, root, query)))
    expect(await listed(`?dir=b&from=${context.start}`)).toEqual([before])
    expect(await listed(`?dir=f&from=${context.end}`)).toEqual([after])
    const { next_batch } = await alice.sync()
    expect(await listed(`?dir=b&limit=2&from=${next_batch}`)).toEqual([after, between])
    const page = await alice.call('GET', relationsAt(room, root, '?dir=b&limit=1'))
    const { chunk } = await alice.call('GET', inRoom(room, `/messages?dir=b&limit=1&from=${page.next_batch}`))
    expect(chunk[0].event_id).toBe(between)
  })

  it('are none of a room that the user cannot see, of an unknown event, or of another room', async () => {
    const carol = await house.person('carol')
    const closed = await alice.createRoom()
    const hidden = await alice.say(closed, 'hidden')
    const refused = { status: 404, body: { errcode: 'M_NOT_FOUND' } }
    expect(await carol.ask('GET', relationsAt(closed, hidden))).toMatchObject(refused)
    expect(await alice.ask('GET', relationsAt(room, hidden))).toMatchObject(refused)
    expect(await alice.ask('GET', relationsAt(room, '$nothing'))).toMatchObject(refused)
    const alone = await alice.say(room, 'alone')
    expect(await alice.call('GET', relationsAt(room, alone))).toEqual({ chunk: [] })
    for (const query of ['?dir=x', '?limit=0', '?from=x', '?to=y', '?recurse=maybe']) {
      expect(await alice.ask('GET', relationsAt(room, alone, query))).toMatchObject({ status: 400 })
    }
  })

  it('end where the user left', async () => {
    const dave = await house.person('dave')
    await dave.join(room)
    const root = await alice.say(room, 'root')
    const seen = await reply(bob, room, root)
    await dave.leave(room)
    await reply(bob, room, root, 'later')
    expect(idsIn(await dave.call('GET', relationsAt(room, root)))).toEqual([seen])
    const bundle = await bundleOf(dave, room, root)
    expect(bundle['m.thread']).toMatchObject({ count: 1, latest_event: { event_id: seen } })
  })

  it('are without what was redacted; a redacted event keeps those that relate to it (S#5618)', async () => {
    const root = await alice.say(room, 'root')
    const [kept, gone] = [await reply(bob, room, root), await reply(bob, room, root)]
    await redact(bob, room, gone)
    expect(idsIn(await alice.call('GET', relationsAt(room, root)))).toEqual([kept])
    expect((await bundleOf(alice, room, root))['m.thread']).toMatchObject({
      count: 1,
      latest_event: { event_id: kept },
    })
    await redact(alice, room, root)
    expect(idsIn(await alice.call('GET', relationsAt(room, root)))).toEqual([kept])
    await redact(bob, room, kept)
    expect(await bundleOf(alice, room, root)).toBeUndefined()
  })
})

describe('an edit', () => {
  it('is bundled whole, the newest by time and then by id, whose sender and type are those of the event', async () => {
    const message = await alice.say(room, 'first')
    await edit(alice, room, message, 'second')
    const last = await edit(alice, room, message, 'third')
    await edit(bob, room, message, 'of another user')
    await relate(alice, room, message, 'm.replace', { type: 'org.example.other', 'm.new_content': {} })
    await relate(alice, room, message, 'm.replace')
    const event = await bob.call('GET', inRoom(room, `/event/${encodeURIComponent(message)}`))
    expect(event.content.body).toBe('first')
    expect(event.unsigned['m.relations']['m.replace']).toMatchObject({
      event_id: last,
      room_id: room,
      sender: alice.userId,
      type: 'm.room.message',
      content: { body: '* third', 'm.new_content': { body: 'third' } },
      unsigned: { age: expect.any(Number) },
    })
    await redact(alice, room, last)
    expect((await bundleOf(bob, room, message))['m.replace'].content.body).toBe('* second')
  })

  it('has no edits, nor has an annotation, a state event or a redacted event', async () => {
    const message = await alice.say(room, 'first')
    const edited = await edit(alice, room, message)
    await edit(alice, room, edited, 'of an edit')
    expect(await bundleOf(bob, room, edited)).toBeUndefined()
    const liked = await react(alice, room, message)
    await edit(alice, room, liked)
    expect(await bundleOf(bob, room, liked)).toBeUndefined()
    const state = await alice.setState(room, 'org.example.state', {})
    await edit(alice, room, state)
    expect(await bundleOf(bob, room, state)).toBeUndefined()
    await redact(alice, room, message)
    expect(await bundleOf(bob, room, message)).toBeUndefined()
  })

  it('of an encrypted event is bundled though nobody sees its new content (MS#1299)', async () => {
    const cipher = { type: 'm.room.encrypted', algorithm: 'm.megolm.v1.aes-sha2', ciphertext: 'x' }
    const { type, ...content } = cipher
    const path = inRoom(room, `/send/${type}/encrypted`)
    const { event_id } = await alice.call('PUT', path, content)
    const edited = await relate(alice, room, event_id, 'm.replace', cipher)
    expect((await bundleOf(bob, room, event_id))['m.replace'].event_id).toBe(edited)
  })

  it('is bundled with the newest reply of a thread (S#12270)', async () => {
    const root = await alice.say(room, 'root')
    const last = await reply(bob, room, root)
    const edited = await edit(bob, room, last)
    const { 'm.thread': thread } = await bundleOf(alice, room, root)
    expect(thread.latest_event.event_id).toBe(last)
    expect(thread.latest_event.unsigned['m.relations']['m.replace'].event_id).toBe(edited)
  })
})

describe('what is bundled', () => {
  it('comes with every reader of a timeline, and with a limited sync', async () => {
    const fresh = await alice.createRoom({ preset: 'public_chat' })
    await bob.join(fresh)
    const { next_batch: since } = await bob.sync()
    const root = await alice.say(fresh, 'root')
    const last = await reply(alice, fresh, root)
    const reference = await relate(bob, fresh, root, 'm.reference')
    const bundle = {
      'm.thread': {
        latest_event: expect.objectContaining({ event_id: last }),
        count: 1,
        current_user_participated: false,
      },
      'm.reference': { chunk: [{ event_id: reference }] },
    }
    const shownIn = (events: readonly Json[]) =>
      events.find(({ event_id }) => event_id === root)?.unsigned['m.relations']
    const { chunk } = await bob.call('GET', inRoom(fresh, '/messages?dir=b'))
    expect(shownIn(chunk)).toEqual(bundle)
    const context = await bob.call('GET', inRoom(fresh, `/context/${encodeURIComponent(root)}`))
    expect(shownIn([context.event])).toEqual(bundle)
    const around = await bob.call('GET', inRoom(fresh, `/context/${encodeURIComponent(last)}`))
    expect(shownIn(around.events_before)).toEqual(bundle)
    expect(await bundleOf(bob, fresh, root)).toEqual(bundle)
    const timelineOf = async (query: string) => (await bob.sync(query)).rooms.join[fresh].timeline
    const filter = (limit: number) => `&filter=${JSON.stringify({ room: { timeline: { limit } } })}`
    const limited = await timelineOf(filter(3))
    expect([limited.limited, shownIn(limited.events)]).toEqual([true, bundle])
    expect(shownIn((await timelineOf(`&since=${since}${filter(3)}`)).events)).toBeUndefined()
  })

  it('says whether the reader took part: by a reply, or by the root', async () => {
    const root = await alice.say(room, 'root')
    const carol = await house.person('carla')
    await carol.join(room)
    await reply(bob, room, root)
    const participated = async (who: Person) => (await bundleOf(who, room, root))['m.thread'].current_user_participated
    expect(await Promise.all([alice, bob, carol].map(participated))).toEqual([true, true, false])
  })

  it('is the same when it is read again, for each reader, until it changes', async () => {
    const root = await alice.say(room, 'root')
    const edited = await edit(alice, room, root)
    const newest = await reply(bob, room, root)
    await edit(bob, room, newest, 'said better')
    await relate(alice, room, root, 'm.reference', { type: 'org.example.note' })
    // Ages go on.
    const read = async (who: Person) =>
      JSON.parse(JSON.stringify(await bundleOf(who, room, root)).replace(/"age":\d+/g, '"age":0'))
    for (const who of [alice, bob]) {
      const first = await read(who)
      expect(Object.keys(first).sort()).toEqual(['m.reference', 'm.replace', 'm.thread'])
      expect(first['m.thread'].latest_event.unsigned['m.relations']['m.replace'].content.body).toBe('* said better')
      expect([await read(who), await read(who)]).toEqual([first, first])
    }
    await redact(alice, room, edited)
    const again = await reply(alice, room, root)
    for (const who of [alice, bob, alice]) {
      const now = await read(who)
      expect(now['m.replace']).toBeUndefined()
      expect(now['m.thread']).toMatchObject({ count: 2, latest_event: { event_id: again } })
    }
  })

  it('is what it was after a restart', async () => {
    const root = await alice.say(room, 'root')
    await reply(bob, room, root)
    const before = await bundleOf(alice, room, root)
    await house.restart()
    expect(before['m.thread'].count).toBe(1)
    const after = await bundleOf(alice, room, root)
    expect(after['m.thread'].latest_event.event_id).toBe(before['m.thread'].latest_event.event_id)
  })

  it('is no annotation', async () => {
    const message = await alice.say(room, 'liked')
    await react(bob, room, message)
    expect(await bundleOf(alice, room, message)).toBeUndefined()
  })
})

describe('an event that is sent', () => {
  const send = (by: Person, relation: object, type = 'm.room.message') =>
    by.ask('POST', inRoom(room, `/send/${type}`), { body: 'x', 'm.relates_to': relation })

  test.each([
    ['to an event of another room', async () => alice.say(await alice.createRoom(), 'elsewhere')],
    ['to an unknown event', async () => '$nothing'],
  ])('may not relate %s', async (_what, target) => {
    const event_id = await target()
    for (const rel_type of ['m.thread', 'm.replace', 'm.reference', 'm.annotation', 'org.example.x']) {
      const refused = { status: 400, body: { errcode: 'M_INVALID_PARAM' } }
      expect(await send(alice, { rel_type, event_id, key: 'x' })).toMatchObject(refused)
    }
  })

  it('may be no second annotation of the same kind, also at once and until the first is redacted', async () => {
    const event_id = await alice.say(room, 'liked')
    const like = (key = '👍', type = 'm.reaction') => send(bob, { rel_type: 'm.annotation', event_id, key }, type)
    const outcomes = await Promise.all([like(), like(), like()])
    expect(outcomes.map(({ status }) => status).sort()).toEqual([200, 400, 400])
    expect(await like()).toMatchObject({ status: 400, body: { errcode: 'M_DUPLICATE_ANNOTATION' } })
    expect((await like('👎')).status).toBe(200)
    expect((await like('👍', 'org.example.vote')).status).toBe(200)
    expect((await send(alice, { rel_type: 'm.annotation', event_id, key: '👍' }, 'm.reaction')).status).toBe(200)
    await redact(bob, room, outcomes.find(({ status }) => status === 200)!.body.event_id)
    expect((await like()).status).toBe(200)
  })

  it('is answered with the first event when its request is repeated, also after a restart', async () => {
    const event_id = await alice.say(room, 'liked once')
    const body = { 'm.relates_to': { rel_type: 'm.annotation', event_id, key: '👍' } }
    const again = () => bob.call('PUT', inRoom(room, '/send/m.reaction/repeated'), body)
    const first = await again()
    expect(await again()).toEqual(first)
    await house.restart()
    expect(await again()).toEqual(first)
  })

  it('needs a key of at most 500 characters to annotate', async () => {
    const event_id = await alice.say(room, 'liked')
    const rel_type = 'm.annotation'
    for (const relation of [
      { rel_type, event_id },
      { rel_type, event_id, key: 7 },
      { rel_type, key: 'x' },
    ]) {
      expect(await send(bob, relation, 'm.reaction')).toMatchObject({
        status: 400,
        body: { errcode: 'M_INVALID_PARAM' },
      })
    }
    expect((await send(bob, { rel_type, event_id, key: 'x'.repeat(501) }, 'm.reaction')).status).toBe(400)
    expect((await send(bob, { rel_type, event_id, key: 'x'.repeat(500) }, 'm.reaction')).status).toBe(200)
  })

  it('begins no thread within a thread', async () => {
    const root = await alice.say(room, 'root')
    const inside = await reply(bob, room, root)
    const refused = { status: 400, body: { errcode: 'M_UNKNOWN' } }
    expect(await send(alice, { rel_type: 'm.thread', event_id: inside })).toMatchObject(refused)
  })

  it('may relate as it likes where it only looks like a relation', async () => {
    const root = await alice.say(room, 'root')
    // Servers accept U+0000 in contents. Postgres cannot hold it in a text.
    const malformed = [
      { rel_type: 'm.thread', event_id: '$\0' },
      { rel_type: 'm.reference', event_id: '$\0' },
      { rel_type: 'x\0', event_id: root },
      { event_id: '$x' },
      { rel_type: 7, event_id: '$x' },
      { rel_type: '', event_id: '$x' },
      'text',
      [],
      null,
    ]
    for (const relation of malformed) expect((await send(alice, relation as object)).status).toBe(200)
    expect((await send(alice, { rel_type: 'm.annotation', event_id: root, key: '\0' })).status).toBe(400)
    // A reply of before threads.
    expect((await send(alice, { 'm.in_reply_to': { event_id: '$x' } })).status).toBe(200)
  })
})

test('relations that go in a circle are listed once each', async () => {
  const first = await alice.say(room, 'first')
  const second = await relate(bob, room, first, 'm.reference')
  // An event names others by hashes, so that only older room versions have circles.
  await house.server.database.db.tx((tx) =>
    tx.query(
      `INSERT INTO event_relation SELECT r.room_nid, r.child_id, 'm.reference', first.room_pos, first.event_nid, first.event_id, r.child_type,
         r.sender, r.ts, NULL, false, true FROM event_relation r JOIN event first ON first.event_id = r.target_id WHERE r.target_id = $1`,
      [first],
    ),
  )
  await house.server.database.db.tx((tx) =>
    tx.query('UPDATE event_relation SET has_children = true WHERE target_id = $1', [first]),
  )
  const { chunk } = await alice.call('GET', relationsAt(room, first, '?recurse=true&limit=50'))
  expect(chunk.map(({ event_id }: Json) => event_id)).toEqual([second, first])
})

test('10,000 annotations of one event are read in pages, each quickly', async () => {
  const message = await alice.say(room, 'popular')
  await react(bob, room, message, 'first')
  await house.server.database.db.tx((tx) =>
    tx.query(
      `INSERT INTO event_relation SELECT room_nid, target_id, rel_type, pos - n * 1000, child_nid, child_id, child_type,
         '@x' || n || ':localhost', ts, 'key' || n, false
       FROM event_relation, generate_series(1, 10000) AS n WHERE target_id = $1`,
      [message],
    ),
  )
  // The best of some rounds: others use this machine too.
  const rounds: number[] = []
  for (let round = 0; round < 3; round++) {
    const begun = performance.now()
    const { chunk, next_batch } = await alice.call('GET', relationsAt(room, message, '?limit=50'))
    expect(chunk).toHaveLength(50)
    expect(next_batch).toEqual(expect.any(String))
    await alice.call('GET', relationsAt(room, message, '?recurse=true&limit=50'))
    expect(await bundleOf(alice, room, message)).toBeUndefined()
    rounds.push(performance.now() - begun)
  }
  expect(Math.min(...rounds)).toBeLessThan(2_000)
})
