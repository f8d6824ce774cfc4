import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { EVENTS_PURGED_AT_ONCE } from '../../../src/domain/limits/history-purges.ts'
import { type Account, createRoom, type Json, join, sendText, syncPath } from '../../support/api.ts'
import { openNeighbourhood } from '../../support/neighbours.ts'
import { waitUntil } from '../../support/wait.ts'
import { ADMIN, type Office, openOffice, registerBySecret, SECRET } from '../office.ts'

let office: Office
let alice: Account
let bob: Account
let sent = 0

beforeAll(async () => {
  office = await openOffice()
  alice = await office.person('alice')
  bob = await office.person('bob')
})

afterAll(() => office.close())

const enc = encodeURIComponent
const inRoom = (room: string, rest: string) => `/rooms/${enc(room)}${rest}`
const say = (who: Account, room: string, text: string) => sendText(office.api, who.token, room, `t${sent++}`, text)
const sql = (text: string, values: readonly (string | number)[] = []) =>
  office.server.database.db.tx((tx) => tx.query<Json>(text, values))

async function ended(id: string): Promise<Json> {
  return waitUntil('the end of a purge', async () => {
    const status = await office.call('GET', `/v1/purge_history_status/${id}`)
    return status.status !== 'active' && status
  })
}

async function purge(room: string, eventId: string, body: object = { delete_local_events: true }): Promise<Json> {
  const { purge_id } = await office.call('POST', `/v1/purge_history/${enc(room)}/${enc(eventId)}`, body)
  return ended(purge_id)
}

async function shared(texts: readonly string[]): Promise<{ room: string; ids: string[] }> {
  const room = await createRoom(office.api, alice.token, { preset: 'public_chat', name: 'Old' })
  await join(office.api, bob.token, room)
  const ids: string[] = []
  for (const text of texts) ids.push(await say(alice, room, text))
  return { room, ids }
}

/** Messages before all others of a room. */
const addOld = (room: string, count: number) =>
  sql(
    `INSERT INTO event (event_nid, room_nid, room_pos, sender_nid, origin_server_ts, notifiable, state_chain, state_seq,
       event_id, type, json)
     SELECT last_nid - 1000000 * room_nid - n, room_nid, -n, 1, 0, 0, state_chain, state_seq, '$' || room_nid || '-' || n, 'm.room.message',
       '{"content":{},"type":"m.room.message"}' FROM room, generate_series(1, $2) AS n WHERE room_id = $1`,
    [room, count],
  )

/** Pages to the end, backwards. */
async function pagedBy(who: Account, room: string, limit = 3): Promise<Json[]> {
  const found: Json[] = []
  for (let from = ''; ; ) {
    const path = inRoom(room, `/messages?dir=b&limit=${limit}${from && `&from=${enc(from)}`}`)
    const { chunk, end } = await office.api.call('GET', path, { token: who.token })
    found.push(...chunk)
    if (end === undefined) return found
    from = end
  }
}

const textsIn = (events: readonly Json[]) => events.flatMap(({ content }) => content.body ?? [])
const stored = async (room: string) =>
  sql('SELECT e.event_id, e.type, e.json FROM event e JOIN room USING (room_nid) WHERE room_id = $1', [room])
const jsonOf = async (room: string) => (await stored(room)).map(({ json }) => json).join()
const firstSync = (who: Account) => office.api.call('GET', syncPath({}), { token: who.token })
const unreadOf = async (who: Account, room: string) => {
  const { rooms } = await firstSync(who)
  return rooms.join[room].unread_notifications
}

describe('history that was removed', () => {
  test('is gone from the database, and from all readers', async () => {
    const { room, ids } = await shared(['one', 'two', 'three', 'four'])
    const status = await purge(room, ids[2]!)
    expect(status).toEqual({ status: 'complete', events_removed: 2 })
    const rows = await stored(room)
    // Alice's newest message has to say how far she has read, and nothing else.
    expect(await jsonOf(room)).not.toMatch(/"(one|two)"/)
    expect(rows.map(({ event_id }) => event_id)).not.toContain(ids[0])
    // State stays.
    expect(rows.map(({ type }) => type)).toEqual(expect.arrayContaining(['m.room.create', 'm.room.name']))
    expect((await office.api.call('GET', inRoom(room, '/state'), { token: bob.token })).length).toBeGreaterThan(5)
    const gone = await office.api.request('GET', inRoom(room, `/event/${enc(ids[0]!)}`), { token: alice.token })
    expect([gone.status, gone.body.errcode]).toEqual([404, 'M_NOT_FOUND'])
    const paged = await pagedBy(bob, room)
    expect(textsIn(paged)).toEqual(['four', 'three'])
    expect(paged).toHaveLength(2)
    const forth = await office.api.call('GET', inRoom(room, '/messages?dir=f&limit=100'), { token: bob.token })
    expect(textsIn(forth.chunk)).toEqual(['three', 'four'])
    const { timeline, state } = (await firstSync(bob)).rooms.join[room]
    expect(textsIn(timeline.events)).toEqual(['three', 'four'])
    expect(state.events.map(({ type }: Json) => type)).toContain('m.room.create')
    await say(bob, room, 'five')
    expect(textsIn(await pagedBy(alice, room))).toEqual(['five', 'four', 'three'])
    await office.server.restart()
    expect(textsIn(await pagedBy(alice, room))).toEqual(['five', 'four', 'three'])
  })

  test('is shown to no first sync, whatever earlier ones have kept', async () => {
    const texts = Array.from({ length: 14 }, (_, index) => `text ${index}`)
    const { room, ids } = await shared(texts)
    const shown = async (times: number) => {
      const answers: Json[] = []
      for (let count = 0; count < times; count++) answers.push(await firstSync(bob))
      return answers.map(({ rooms }) => textsIn(rooms.join[room].timeline.events))
    }
    for (const each of await shown(3)) expect(each).toEqual(texts.slice(4))
    const body = { delete_local_events: true }
    const { purge_id } = await office.call('POST', `/v1/purge_history/${enc(room)}/${enc(ids[9]!)}`, body)
    // Some of it may be gone by now.
    await shown(3)
    expect(await ended(purge_id)).toMatchObject({ status: 'complete' })
    for (const each of await shown(3)) expect(each).toEqual(texts.slice(9))
  })

  test('is of local users only if that is said', async () => {
    const { room, ids } = await shared(['one', 'two', 'three'])
    expect(await purge(room, ids[2]!, {})).toEqual({ status: 'complete', events_removed: 0 })
    expect(await jsonOf(room)).toContain('"one"')
    expect(textsIn(await pagedBy(bob, room))).toEqual(['three'])
  })

  test('counts for nobody any more, and leaves receipts as they were', async () => {
    const { room, ids } = await shared(['one', 'two', 'three', 'four', 'five', 'six'])
    const read = (who: Account, id: string) =>
      office.api.call('POST', inRoom(room, `/receipt/m.read/${enc(id)}`), { token: who.token, body: {} })
    await read(bob, ids[2]!)
    const carol = await office.person(`carol${sent}`)
    await join(office.api, carol.token, room)
    await say(carol, room, 'mine')
    await say(alice, room, 'eight')
    const counts = async () => {
      const both = [await unreadOf(bob, room), await unreadOf(carol, room)]
      return both.map(({ notification_count }) => notification_count)
    }
    expect(await counts()).toEqual([5, 1])
    const redact = (id: string) =>
      office.api.call('PUT', inRoom(room, `/redact/${enc(id)}/t${sent++}`), { token: alice.token, body: {} })
    await redact(ids[4]!)
    expect(await counts()).toEqual([4, 1])
    // What is read makes no difference.
    await purge(room, ids[2]!)
    expect(await counts()).toEqual([4, 1])
    await purge(room, ids[5]!)
    expect(await counts()).toEqual([3, 1])
    const last = await say(alice, room, 'nine')
    const after = await say(alice, room, 'ten')
    expect(await counts()).toEqual([5, 3])
    await purge(room, last)
    for (const restart of [false, true]) {
      if (restart) await office.server.restart()
      expect(await counts()).toEqual([2, 2])
      const { ephemeral } = (await firstSync(bob)).rooms.join[room]
      const receipts = ephemeral.events.find(({ type }: Json) => type === 'm.receipt').content
      expect(receipts[ids[2]!]['m.read']).toHaveProperty([bob.userId])
    }
    // What marks how far somebody has read has no words any more.
    expect(await jsonOf(room)).not.toMatch(/"(three|mine|eight)"/)
    await redact(after)
    expect(await counts()).toEqual([1, 1])
    await say(alice, room, 'eleven')
    expect(await counts()).toEqual([2, 2])
    await read(bob, last)
    expect(await counts()).toEqual([1, 2])
  })

  test('leaves mentions that are still there, and no others', async () => {
    const { room, ids } = await shared(['one'])
    const mention = { msgtype: 'm.text', body: 'you', 'm.mentions': { user_ids: [bob.userId] } }
    const send = () =>
      office.api.call('PUT', inRoom(room, `/send/m.room.message/t${sent++}`), { token: alice.token, body: mention })
    await send()
    const { event_id } = await send()
    expect((await unreadOf(bob, room)).highlight_count).toBe(2)
    await purge(room, event_id)
    expect((await unreadOf(bob, room)).highlight_count).toBe(1)
    expect(ids).toHaveLength(1)
  })

  test('takes relations and threads with it', async () => {
    const { room, ids } = await shared(['old root', 'between', 'root'])
    const reply = (root: string, body: string) =>
      office.api.call('PUT', inRoom(room, `/send/m.room.message/t${sent++}`), {
        token: alice.token,
        body: { msgtype: 'm.text', body, 'm.relates_to': { rel_type: 'm.thread', event_id: root } },
      })
    await reply(ids[0]!, 'first of the old')
    await reply(ids[2]!, 'first')
    const { event_id: kept } = await reply(ids[2]!, 'second')
    await purge(room, ids[2]!)
    const threads = () =>
      sql('SELECT root_id, replies FROM thread JOIN room USING (room_nid) WHERE room_id = $1', [room])
    expect(await threads()).toEqual([{ root_id: ids[2], replies: 2 }])
    await purge(room, kept)
    expect(await threads()).toEqual([])
    const left = await sql('SELECT child_id FROM event_relation JOIN room USING (room_nid) WHERE room_id = $1', [room])
    expect(left.map(({ child_id }) => child_id)).toEqual([kept])
  })

  test('is removed in parts', async () => {
    const { room } = await shared([])
    await addOld(room, 2 * EVENTS_PURGED_AT_ONCE + 1)
    const last = await say(alice, room, 'last')
    expect(await purge(room, last)).toMatchObject({ events_removed: 2 * EVENTS_PURGED_AT_ONCE + 1 })
    expect((await stored(room)).filter(({ type }) => type === 'm.room.message')).toHaveLength(1)
  })
})

describe('a purge', () => {
  test('that an operator asks for waits for no room with much that is over by its age', async () => {
    const [large, small, first] = [
      await shared(['one']),
      await shared(['two', 'three']),
      await shared(['four', 'five']),
    ]
    await addOld(large.room, 40 * EVENTS_PURGED_AT_ONCE)
    await sql(
      `INSERT INTO history_purge (purge_id, room_nid, up_to_pos, up_to_nid, with_local, asked_at, is_by_age)
       SELECT 'by-age', room_nid, -1, 0, true, 0, true FROM room WHERE room_id = $1`,
      [large.room],
    )
    const byAge = async () => (await sql(`SELECT removed FROM history_purge WHERE purge_id = 'by-age'`))[0]
    await purge(first.room, first.ids[1]!)
    await waitUntil('the beginning', async () => (await byAge())?.removed > 0)
    await purge(small.room, small.ids[1]!)
    expect(textsIn(await pagedBy(bob, small.room))).toEqual(['three'])
    expect(await byAge()).toBeDefined()
    await waitUntil('the end of what is over', async () => (await byAge()) === undefined)
  })

  test('may name a time, and an event in its body', async () => {
    const { room, ids } = await shared(['one', 'two', 'three'])
    const at = Date.now()
    await waitUntil('another millisecond', () => Date.now() > at)
    await say(alice, room, 'four')
    const path = `/v1/purge_history/${enc(room)}`
    const byId = await office.call('POST', path, { purge_up_to_event_id: ids[1], delete_local_events: true })
    expect(await ended(byId.purge_id)).toMatchObject({ events_removed: 1 })
    const byTime = await office.call('POST', path, { purge_up_to_ts: at, delete_local_events: true })
    await ended(byTime.purge_id)
    expect(textsIn(await pagedBy(bob, room))).toEqual(['four', 'three'])
  })

  test('up to a time is not more because an event lies about its time', async () => {
    const { room, ids } = await shared(['one', 'two'])
    const at = Date.now()
    await waitUntil('another millisecond', () => Date.now() > at)
    await say(alice, room, 'three')
    const liar = await say(alice, room, 'from long ago')
    await say(alice, room, 'four')
    await sql('UPDATE event SET origin_server_ts = 1 WHERE event_id = $1', [liar])
    await office.server.restart()
    const path = `/v1/purge_history/${enc(room)}`
    const { purge_id } = await office.call('POST', path, { purge_up_to_ts: at, delete_local_events: true })
    expect(await ended(purge_id)).toMatchObject({ events_removed: 1 })
    expect(textsIn(await pagedBy(bob, room))).toEqual(['four', 'from long ago', 'three', 'two'])
    expect(ids).toHaveLength(2)
  })

  test('is refused in words while the room is being joined, and nothing of it is done', async () => {
    const { room, ids } = await shared(['one', 'two'])
    // Its members come from a server that is away.
    await sql(
      `INSERT INTO room_filling (room_nid, resident, servers, join_event_id, since)
       SELECT room_nid, '127.0.0.1:1', '{127.0.0.1:1}', e.event_id, 0 FROM room JOIN event e USING (room_nid)
       WHERE room_id = $1 AND e.type = 'm.room.member' ORDER BY event_nid DESC LIMIT 1`,
      [room],
    )
    await office.server.restart()
    for (const body of [{}, { purge_up_to_ts: Date.now(), delete_local_events: true }]) {
      const path = 'purge_up_to_ts' in body ? '' : `/${enc(ids[1]!)}`
      const refused = await office.ask('POST', `/v1/purge_history/${enc(room)}${path}`, body)
      expect([refused.status, refused.body.errcode, refused.body.error]).toEqual([
        400,
        'M_UNKNOWN',
        expect.stringContaining('still joining'),
      ])
    }
    expect(await jsonOf(room)).toContain('"one"')
    await sql('DELETE FROM room_filling')
    await office.server.restart()
    expect(await purge(room, ids[1]!)).toMatchObject({ status: 'complete', events_removed: 1 })
  })

  test('of a room that is gone keeps no other waiting', async () => {
    const { room, ids } = await shared(['one', 'two'])
    await sql(
      `INSERT INTO history_purge (purge_id, room_nid, up_to_pos, up_to_nid, with_local, asked_at)
       VALUES ('orphan', 999999999, 5, 5, true, 0)`,
    )
    expect(await purge(room, ids[1]!)).toMatchObject({ status: 'complete' })
    expect(await ended('orphan')).toMatchObject({ status: 'failed', error: 'The room itself was removed.' })
  })

  test.each<[number, string, (room: string, other: string) => [string, object]]>([
    [404, 'M_NOT_FOUND', () => [enc('!none:localhost'), { purge_up_to_ts: 1 }]],
    [404, 'M_NOT_FOUND', (room) => [enc(room), { purge_up_to_event_id: '$none' }]],
    [404, 'M_NOT_FOUND', (room) => [enc(room), { purge_up_to_ts: 1 }]],
    [400, 'M_INVALID_PARAM', (room, other) => [enc(room), { purge_up_to_event_id: other }]],
    [400, 'M_INVALID_PARAM', (room) => [enc(room), { purge_up_to_event_id: 'nonsense' }]],
    [400, 'M_BAD_JSON', (room) => [enc(room), {}]],
    [400, 'M_INVALID_PARAM', (room) => [enc(room), { purge_up_to_ts: -1 }]],
  ])('that cannot be is refused with %s %s', async (status, errcode, of) => {
    const [{ room }, { ids }] = [await shared(['x']), await shared(['y'])]
    const [path, body] = of(room, ids[0]!)
    const answer = await office.ask('POST', `/v1/purge_history/${path}`, body)
    expect([answer.status, answer.body.errcode]).toEqual([status, errcode])
  })

  test('is for administrators, one at a time, and not known under other ids', async () => {
    const { room, ids } = await shared(['one', 'two'])
    const path = `/v1/purge_history/${enc(room)}/${enc(ids[1]!)}`
    expect((await office.ask('POST', path, {}, alice.token)).status).toBe(403)
    const unknown = await office.ask('GET', '/v1/purge_history_status/none')
    expect([unknown.status, unknown.body.errcode]).toEqual([404, 'M_NOT_FOUND'])
    const answers = await Promise.all(Array.from({ length: 4 }, () => office.ask('POST', path, {})))
    for (const { status, body } of answers) {
      if (status === 200) await ended(body.purge_id)
      else expect([status, body.errcode]).toEqual([400, 'M_UNKNOWN'])
    }
    expect(answers.some(({ status }) => status === 200)).toBe(true)
  })

  test('that an earlier process began is completed', async () => {
    const { room, ids } = await shared(['one', 'two', 'three'])
    // What a process leaves that dies between two parts.
    await sql(
      `INSERT INTO history_purge (purge_id, room_nid, up_to_pos, up_to_nid, with_local, done_pos, removed, asked_at)
       SELECT 'begun', room_nid, e.room_pos - 1, e.event_nid, true, first.room_pos - 1, 7, 0
       FROM room JOIN event e USING (room_nid) JOIN event first USING (room_nid)
       WHERE room_id = $1 AND e.event_id = $2 AND first.event_id = $3`,
      [room, ids[2]!, ids[0]!],
    )
    await office.server.restart()
    expect(await ended('begun')).toEqual({ status: 'complete', events_removed: 9 })
    expect(await jsonOf(room)).not.toMatch(/"(one|two)"/)
  })
})

test('history of other servers is removed, and not fetched again', async () => {
  const street = openNeighbourhood()
  try {
    const [alpha, beta] = await Promise.all([street.open({ registration: { shared_secret: SECRET } }), street.open()])
    const boss = await registerBySecret(alpha.api, 'boss', true)
    const near = await alpha.person('near')
    const far = await beta.person('far')
    const room = await createRoom(beta.api, far.token, { preset: 'public_chat' })
    await sendText(beta.api, far.token, room, 'before', 'before the join')
    await alpha.api.call('POST', `/join/${enc(room)}?server_name=${enc(beta.name)}`, { token: near.token, body: {} })
    const path = (query: string) => inRoom(room, `/messages?dir=b&limit=100${query}`)
    const textsAt = async () => textsIn((await alpha.api.call('GET', path(''), { token: near.token })).chunk)
    await waitUntil('history', async () => (await textsAt()).includes('before the join'))
    await sendText(beta.api, far.token, room, 'f1', 'from afar')
    await waitUntil('a message', async () => (await textsAt()).includes('from afar'))
    await sendText(alpha.api, near.token, room, 'n1', 'from here')
    const last = await sendText(alpha.api, near.token, room, 'n2', 'last')
    const call = { token: boss.token, body: {} }
    const { purge_id } = await alpha.api.call('POST', `${ADMIN}/v1/purge_history/${enc(room)}/${enc(last)}`, call)
    await waitUntil('the end', async () => {
      const status = await alpha.api.call('GET', `${ADMIN}/v1/purge_history_status/${purge_id}`, { token: boss.token })
      return status.status === 'complete'
    })
    const asked = beta.front.requests.length
    expect(await textsAt()).toEqual(['last'])
    expect(beta.front.requests.slice(asked).filter(({ url }) => url.includes('backfill'))).toEqual([])
    const rows = await alpha.server.database.db.query<{ json: string }>('SELECT json FROM event')
    const all = rows.map(({ json }) => json).join()
    expect(all).not.toContain('from afar')
    expect(all).not.toContain('before the join')
    expect(all).toContain('from here')
    await sendText(beta.api, far.token, room, 'f2', 'and on')
    await waitUntil('the next message', async () => (await textsAt()).includes('and on'))
  } finally {
    await street.close()
  }
})
