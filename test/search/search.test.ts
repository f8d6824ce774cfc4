import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { SEARCH_BATCH } from '../../src/domain/limits/search.ts'
import { edit, redact } from '../relations/people.ts'
import { type House, inRoom, openHouse, type Person, textsOf } from '../rooms/people.ts'
import type { Json } from '../support/api.ts'
import { waitUntil } from '../support/wait.ts'

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

const ask = (who: Person, search_term: string, more: object = {}, from?: string) =>
  who.ask('POST', `/search${from === undefined ? '' : `?next_batch=${from}`}`, {
    search_categories: { room_events: { search_term, ...more } },
  })
async function search(who: Person, term: string, more: object = {}, from?: string): Promise<Json> {
  const { status, body } = await ask(who, term, more, from)
  expect([status, body.errcode]).toEqual([200, undefined])
  return body.search_categories.room_events
}
const found = ({ results }: Json): string[] => textsOf(results.map(({ result }: Json) => result))

/** Says something, and waits until it is indexed. */
async function say(who: Person, where: string, text: string): Promise<string> {
  const id = await who.say(where, text)
  await indexed(id)
  return id
}

const rowsOf = (id: string) =>
  house.server.database.db.query('SELECT 1 AS one FROM search_text JOIN event USING (event_nid) WHERE event_id = $1', [
    id,
  ])
const indexed = (id: string, is = true) =>
  waitUntil(`${id} to be indexed`, async () => (await rowsOf(id)).length > 0 === is)

describe('a search', () => {
  it('finds messages, room names and topics that have all words, in any case and without accents', async () => {
    const own = await alice.createRoom()
    await say(alice, own, 'The Zephyr blew over the café')
    await say(alice, own, 'a zephyr of spring')
    await indexed(await alice.setState(own, 'm.room.name', { name: 'Zephyr lovers' }))
    const parts = [{ mimetype: 'text/html', body: '<b>x</b>' }, { body: 'All about the zephyr' }]
    await indexed(await alice.setState(own, 'm.room.topic', { topic: 'zephyr', 'm.topic': { 'm.text': parts } }))
    const all = await search(alice, 'ZEPHYR')
    expect(all.count).toBe(4)
    expect(all.highlights).toEqual(['zephyr'])
    expect(found(await search(alice, 'cafe zephyr'))).toEqual(['The Zephyr blew over the café'])
    const typesBy = async (keys: string[]) =>
      (await search(alice, 'zephyr', { keys })).results.map(({ result }: Json) => result.type)
    expect(await typesBy(['content.name'])).toEqual(['m.room.name'])
    expect(await typesBy(['content.topic'])).toEqual(['m.room.topic'])
    expect(await typesBy(['content.body'])).toEqual(['m.room.message', 'm.room.message'])
    expect(found(await search(bob, 'zephyr'))).toEqual([])
    expect((await search(alice, 'zephyr nothing')).results).toEqual([])
    expect((await search(alice, '?!')).results).toEqual([])
  })

  it('finds words in the middle of sentences without spaces (S#901)', async () => {
    await say(bob, room, '昨日東京へ行きました')
    await say(bob, room, 'ฉันรักประเทศไทยมาก')
    expect(found(await search(alice, '東京'))).toEqual(['昨日東京へ行きました'])
    expect(found(await search(alice, 'ประเทศ'))).toEqual(['ฉันรักประเทศไทยมาก'])
  })

  it('does not find what was redacted or edited away, and finds the edit (CVE-2024-6300)', async () => {
    const secret = await say(alice, room, 'quokka secret')
    await redact(alice, room, secret)
    expect(found(await search(bob, 'quokka'))).toEqual([])
    await indexed(secret, false)
    const typo = await say(alice, room, 'wombta')
    const edited = await edit(alice, room, typo, 'wombat')
    await edit(bob, room, typo, 'forged wombat')
    await waitUntil('the edit', async () => found(await search(bob, 'wombat')).length === 1)
    const [{ result }] = (await search(bob, 'wombat')).results
    expect([result.event_id, result.unsigned['m.relations']['m.replace'].event_id]).toEqual([typo, edited])
    expect(found(await search(bob, 'wombta'))).toEqual([])
    expect(found(await search(bob, 'forged'))).toEqual([])
    await redact(alice, room, edited)
    await waitUntil('the first text', async () => found(await search(bob, 'wombta')).length === 1)
    expect(found(await search(bob, 'wombat'))).toEqual([])
  })

  it('shows what the user saw of rooms that they left, and nothing of others’', async () => {
    const carol = await house.person('carol')
    const shared = await alice.createRoom({ preset: 'public_chat' })
    await carol.join(shared)
    await say(alice, shared, 'ocelot while there')
    await carol.leave(shared)
    await say(alice, shared, 'ocelot after that')
    expect(found(await search(carol, 'ocelot'))).toEqual(['ocelot while there'])
    expect(found(await search(alice, 'ocelot', { order_by: 'recent' }))).toEqual([
      'ocelot after that',
      'ocelot while there',
    ])
    await carol.call('POST', inRoom(shared, '/forget'), {})
    expect(found(await search(carol, 'ocelot'))).toEqual([])
    const late = await house.person('late')
    await alice.setState(shared, 'm.room.history_visibility', { history_visibility: 'joined' })
    await say(alice, shared, 'ocelot hidden')
    await late.join(shared)
    await say(alice, shared, 'ocelot seen')
    expect(found(await search(late, 'ocelot', { order_by: 'recent' }))[0]).toBe('ocelot seen')
    expect(found(await search(late, 'hidden'))).toEqual([])
  })

  it('is the same once all is indexed anew, also by an edit that is read much later than its event', async () => {
    const own = await alice.createRoom()
    const typo = await say(alice, own, 'a narwahl')
    for (let n = 0; n <= SEARCH_BATCH; n++) await alice.say(own, `narwahl ${n}`)
    await edit(alice, own, typo, 'a narwhal')
    const hits = async () => (await search(alice, 'narwhal')).results.map(({ result }: Json) => result.event_id)
    await waitUntil('the edit', async () => (await hits()).length === 1)
    const { search: index } = house.server.services.admin
    await index.rebuild()
    await waitUntil('the end of it', async () => (await index.progress()).is_done === true)
    expect(await hits()).toEqual([typo])
    expect((await search(alice, 'narwahl')).count).toBe(SEARCH_BATCH + 1)
  })

  it('finds for those who left nothing by the text of later edits', async () => {
    const dora = await house.person('dora')
    const shared = await alice.createRoom({ preset: 'public_chat' })
    await dora.join(shared)
    const first = await say(alice, shared, 'ibis at first')
    const early = await edit(alice, shared, first, 'ibis soon')
    await waitUntil('the edit', async () => found(await search(alice, 'ibis soon')).length === 1)
    expect(early).toEqual(expect.any(String))
    const other = await say(alice, shared, 'plain')
    await dora.leave(shared)
    await edit(alice, shared, other, 'ibis later')
    await waitUntil('the later edit', async () => found(await search(alice, 'ibis')).length === 2)
    expect(found(await search(dora, 'ibis'))).toEqual(['ibis at first'])
    expect(found(await search(dora, 'later'))).toEqual([])
  })

  it('pages by rank through what there was at first', async () => {
    const own = await alice.createRoom()
    for (let number = 0; number < 8; number++) await say(alice, own, `crane number ${number}`)
    const more = { order_by: 'rank', filter: { limit: 3 } }
    const seen: string[] = []
    for (let from: string | undefined, isFirst = true; isFirst || from !== undefined; isFirst = false) {
      const page = await search(alice, 'crane', more, from)
      seen.push(...found(page))
      from = page.next_batch
      await say(alice, own, 'crane crane meanwhile')
    }
    expect(seen.toSorted()).toEqual(Array.from({ length: 8 }, (_, number) => `crane number ${number}`))
  })

  it('finds nothing of encrypted events, odd bodies and ignored users', async () => {
    const own = await bob.createRoom({ preset: 'public_chat' })
    const troll = await house.person('troll')
    await troll.join(own)
    const send = (type: string, content: object) => bob.call('POST', inRoom(own, `/send/${type}`), content)
    await send('m.room.encrypted', { body: 'axolotl', algorithm: 'm.megolm.v1.aes-sha2', ciphertext: 'x' })
    for (const body of [['axolotl'], { axolotl: 1 }, 7, null, true])
      await send('m.room.message', { msgtype: 'm.text', body })
    await send('m.room.message', { msgtype: 'm.text', body: 'axolotl\u0000 \u0001 \ud800' }).catch(() => {})
    await send('m.room.message', { msgtype: 'm.text', body: 'x '.repeat(25_000) })
    const insult = await say(troll, own, 'axolotl insult')
    await say(bob, own, 'axolotl kind')
    const list = `/user/${encodeURIComponent(bob.userId)}/account_data/m.ignored_user_list`
    expect(found(await search(bob, 'axolotl')).sort()).toContain('axolotl insult')
    await bob.call('PUT', list, { ignored_users: { [troll.userId]: {} } })
    const now = found(await search(bob, 'axolotl'))
    expect([now.includes('axolotl kind'), now.includes('axolotl insult')]).toEqual([true, false])
    await bob.call('PUT', list, {})
    expect(insult).toEqual(expect.any(String))
  })

  it('comes in pages, by time and by rank, without gap or repetition', async () => {
    const own = await alice.createRoom()
    const texts = Array.from({ length: 23 }, (_, number) => `pelican number ${number}`)
    for (const text of texts) await alice.say(own, text)
    await say(alice, own, 'pelican pelican pelican the last')
    const filter = { limit: 5 }
    for (const order_by of ['recent', 'rank']) {
      const seen: string[] = []
      let from: string | undefined
      do {
        const page = await search(alice, 'pelican', { order_by, filter }, from)
        expect(page.results.length).toBeLessThanOrEqual(5)
        seen.push(...found(page))
        from = page.next_batch
      } while (from !== undefined)
      expect(new Set(seen).size).toBe(24)
      expect(seen).toHaveLength(24)
      if (order_by === 'recent') expect(seen.slice(1)).toEqual(texts.toReversed())
    }
    expect(await ask(alice, 'pelican', {}, 'nonsense')).toMatchObject({
      status: 400,
      body: { errcode: 'M_INVALID_PARAM' },
    })
  })

  it('is put into groups, each of which goes on by itself', async () => {
    const [one, two] = [
      await alice.createRoom({ preset: 'public_chat' }),
      await alice.createRoom({ preset: 'public_chat' }),
    ]
    await bob.join(one)
    for (let number = 0; number < 4; number++) {
      await alice.say(one, `ibex ${number}`)
      await bob.say(one, `ibex of bob ${number}`)
      await say(alice, two, `ibex elsewhere ${number}`)
    }
    const groupings = { group_by: [{ key: 'room_id' }, { key: 'sender' }] }
    const { groups } = await search(alice, 'ibex', { order_by: 'recent', filter: { limit: 6 }, groupings })
    expect(Object.keys(groups.room_id).sort()).toEqual([one, two].sort())
    expect(Object.keys(groups.sender).sort()).toEqual([alice.userId, bob.userId].sort())
    expect(groups.room_id[one].results).toHaveLength(4)
    expect(
      Object.values(groups.room_id)
        .map(({ order }: Json) => order)
        .sort(),
    ).toEqual([1, 2])
    const rest = await search(alice, 'ibex', { order_by: 'recent' }, groups.room_id[two].next_batch)
    expect(found(rest)).toEqual(['ibex elsewhere 1', 'ibex elsewhere 0'])
    const bobs = await search(alice, 'ibex', { order_by: 'recent' }, groups.sender[bob.userId].next_batch)
    expect(found(bobs)).toEqual(['ibex of bob 1', 'ibex of bob 0'])
    const whole = await search(alice, 'ibex', { order_by: 'recent', filter: { limit: 50 }, groupings })
    expect(Object.values(whole.groups.room_id).every(({ next_batch }: Json) => next_batch === undefined)).toBe(true)
  })

  it('shows what is around a result, who wrote it, and the state of its room', async () => {
    const name = `/profile/${encodeURIComponent(alice.userId)}/displayname`
    await alice.call('PUT', name, { displayname: 'Before' })
    const own = await alice.createRoom({ name: 'Context' })
    for (const text of ['1', '2', 'a lemming', '3', '4']) await alice.say(own, text)
    await waitUntil('the lemming', async () => found(await search(alice, 'lemming')).length === 1)
    await alice.call('PUT', name, { displayname: 'Later' })
    const event_context = { before_limit: 1, after_limit: 1, include_profile: true }
    const answer = await search(alice, 'lemming', { event_context, include_state: true })
    const [{ context, result, rank }] = answer.results
    expect([textsOf(context.events_before), textsOf(context.events_after)]).toEqual([['2'], ['3']])
    expect([result.room_id, typeof rank]).toEqual([own, 'number'])
    expect(context.profile_info).toEqual({ [alice.userId]: { displayname: 'Before' } })
    const before = await alice.call('GET', inRoom(own, `/messages?dir=b&limit=1&from=${context.start}`))
    expect(textsOf(before.chunk)).toEqual(['1'])
    const after = await alice.call('GET', inRoom(own, `/messages?dir=f&limit=1&from=${context.end}`))
    expect(textsOf(after.chunk)).toEqual(['4'])
    expect(answer.state[own].some(({ type }: Json) => type === 'm.room.name')).toBe(true)
    expect((await search(alice, 'lemming')).results[0].context).toBeUndefined()
  })

  it('honours the filter', async () => {
    const own = await alice.createRoom({ preset: 'public_chat' })
    await bob.join(own)
    await say(alice, own, 'gecko of alice')
    await say(bob, own, 'gecko of bob')
    await say(alice, room, 'gecko elsewhere')
    const by = async (filter: object) => found(await search(alice, 'gecko', { filter })).sort()
    expect(await by({ rooms: [own] })).toEqual(['gecko of alice', 'gecko of bob'])
    expect(await by({ not_rooms: [own] })).toEqual(['gecko elsewhere'])
    expect(await by({ senders: [bob.userId] })).toEqual(['gecko of bob'])
    expect(await by({ types: ['m.room.name'] })).toEqual([])
  })

  it.each([
    [{ search_categories: { room_events: { search_term: 'x'.repeat(1_001) } } }],
    [{ search_categories: { room_events: { search_term: 7 } } }],
    [{ search_categories: { room_events: {} } }],
    [{ search_categories: { room_events: { search_term: 'x', keys: ['content.secret'] } } }],
    [{ search_categories: { room_events: { search_term: 'x', order_by: 'luck' } } }],
    [{ search_categories: { room_events: { search_term: 'x', filter: { limit: 'many' } } } }],
    [{ search_categories: { room_events: { search_term: 'x', groupings: { group_by: [{ key: 'day' }] } } } }],
    [{}],
  ])('refuses %j', async (body) => {
    expect(await alice.ask('POST', '/search', body)).toMatchObject({ status: 400 })
  })

  it('refuses a term of a megabyte without looking at it', async () => {
    expect([400, 413]).toContain((await ask(alice, 'x'.repeat(1 << 20))).status)
  })

  it('takes terms as words, whatever they hold', async () => {
    for (const term of ["' & !x | <-> (:*", "''''", '\\', '%_', '\u0000\u0001', ':*', 'a'.repeat(1_000)]) {
      expect((await ask(alice, term)).status).toBe(200)
    }
  })

  it('finds after a restart what was said before it', async () => {
    await say(alice, room, 'platypus')
    await house.restart()
    expect(found(await search(bob, 'platypus'))).toEqual(['platypus'])
    await say(bob, room, 'platypus again')
    expect(found(await search(alice, 'platypus', { order_by: 'recent' }))).toEqual(['platypus again', 'platypus'])
  })
})
