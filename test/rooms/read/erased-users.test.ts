import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Account, type Json, PASSWORD, sendText } from '../../support/api.ts'
import { type Neighbour, type Neighbourhood, openNeighbourhood } from '../../support/neighbours.ts'
import { openStranger, type Stranger } from '../../support/stranger.ts'

const enc = encodeURIComponent

let street: Neighbourhood
let home: Neighbour
let beta: Neighbour
let gamma: Neighbour
let stranger: Stranger
let mary: Account
let alice: Account
let between: Account
let later: Account
let room: string
let secret: string
let sinceStart: string

const at = (who: Account, method: string, path: string, body?: Json) =>
  home.api.call(method, path, { token: who.token, body })
const joinHere = (who: Account) => at(who, 'POST', `/join/${enc(room)}`, {})

beforeAll(async () => {
  street = openNeighbourhood()
  ;[home, beta, gamma] = await Promise.all([street.open(), street.open(), street.open()])
  stranger = await openStranger(street.authority)
  const people = await Promise.all(['mary', 'alice', 'between', 'later'].map(home.person))
  ;[mary, alice, between, later] = people as [Account, Account, Account, Account]
  const bob = await beta.person('bob')
  sinceStart = (await at(alice, 'GET', '/sync?timeout=0')).next_batch
  room = (await at(alice, 'POST', '/createRoom', { preset: 'public_chat' })).room_id
  await joinHere(mary)
  await beta.api.call('POST', `/join/${enc(room)}?server_name=${enc(home.name)}`, { token: bob.token, body: {} })
  await at(mary, 'PUT', `/profile/${enc(mary.userId)}/displayname`, { displayname: 'Mary of the Sea' })
  secret = await sendText(home.api, mary.token, room, '1', 'the secret of Mary')
  await sendText(home.api, alice.token, room, '1', 'what Alice said')
  await joinHere(between)
  const auth = { type: 'm.login.password', identifier: { type: 'm.id.user', user: mary.userId }, password: PASSWORD }
  await at(mary, 'POST', '/account/deactivate', { auth, erase: true })
})

afterAll(async () => {
  await stranger.close()
  await street.close()
})

/** Everything that a user can read of the message, by every reader there is. */
async function readings(who: Account): Promise<Record<string, Json>> {
  const path = `/rooms/${enc(room)}`
  const initial = await at(who, 'GET', '/sync?timeout=0&filter={"room":{"timeline":{"limit":50}}}')
  const federated = await at(
    who,
    'GET',
    `/sync?timeout=0&filter=${enc('{"event_format":"federation","room":{"timeline":{"limit":50}}}')}`,
  )
  const find = (events: Json[]) => events.find(({ event_id }) => event_id === secret)
  const { chunk } = await at(who, 'GET', `${path}/messages?dir=b&limit=100`)
  const context = await at(who, 'GET', `${path}/context/${enc(secret)}?limit=50`)
  return {
    sync: find(initial.rooms.join[room].timeline.events),
    'sync in the federation format': find(federated.rooms.join[room].timeline.events),
    messages: find(chunk),
    event: await at(who, 'GET', `${path}/event/${enc(secret)}`),
    context: context.event,
  }
}
const bodyIn = ({ content }: Json) => content.body

describe('a user who was erased', () => {
  it('is still read by who was in the room, and by who came before the erasure', async () => {
    for (const who of [alice, between]) {
      const seen = Object.entries(await readings(who)).map(([reader, event]) => [reader, bodyIn(event)])
      expect(seen.filter(([, body]) => body !== 'the secret of Mary')).toEqual([])
    }
  })

  it('is shown redacted to who comes later, by every reader', async () => {
    const since = (await at(later, 'GET', '/sync?timeout=0')).next_batch
    await joinHere(later)
    // A member's answer is made first: what is shared between readers must not be this.
    const shared = await at(alice, 'GET', `/sync?timeout=0&since=${sinceStart}`)
    expect(shared.rooms.join[room].timeline.events.length).toBe(10)
    expect(JSON.stringify(shared.rooms.join[room].timeline)).toContain('the secret of Mary')
    const fresh = await at(later, 'GET', `/sync?timeout=0&since=${since}`)
    expect(fresh.rooms.join[room].timeline.events.length).toBe(10)
    expect(JSON.stringify(fresh.rooms.join[room].timeline)).toContain('what Alice said')
    expect(JSON.stringify(fresh.rooms.join[room].timeline)).not.toContain('the secret of Mary')
    for (const [reader, event] of Object.entries(await readings(later))) {
      expect({ reader, content: event.content }).toEqual({ reader, content: {} })
    }
    const page = await at(later, 'GET', `/rooms/${enc(room)}/messages?dir=b&limit=100`)
    expect(JSON.stringify(page.chunk)).toContain('what Alice said')
    expect(JSON.stringify(page.chunk)).not.toMatch(/secret of Mary|Mary of the Sea/)
  })

  it('and nobody sent a redaction', async () => {
    const { chunk } = await at(alice, 'GET', `/rooms/${enc(room)}/messages?dir=b&limit=100`)
    expect(chunk.filter(({ type }: Json) => type === 'm.room.redaction')).toEqual([])
  })

  it('is told to other servers as to users: as it was to those that were there, redacted to those that come later', async () => {
    const carol = await gamma.person('carol')
    await gamma.api.call('POST', `/join/${enc(room)}?server_name=${enc(home.name)}`, { token: carol.token, body: {} })
    const ask = (who: Neighbour, uri: string) =>
      stranger.ask({ name: home.name, url: home.server.baseUrl }, 'GET', `/_matrix/federation/v1${uri}`, {
        origin: who.name,
        key: who.signingKey,
      })
    const contentsFor = async (who: Neighbour) => {
      const one = await ask(who, `/event/${enc(secret)}`)
      const newest = (await at(alice, 'GET', `/rooms/${enc(room)}/messages?dir=b&limit=1`)).chunk[0].event_id
      const many = await ask(who, `/backfill/${enc(room)}?v=${enc(newest)}&limit=100`)
      const contents = many.body.pdus.map(({ content }: Json) => content)
      return [one.body.pdus[0].content, ...contents.filter((content: Json) => content.msgtype !== undefined)]
    }
    const whole = { msgtype: 'm.text', body: 'the secret of Mary' }
    expect(await contentsFor(beta)).toEqual(expect.arrayContaining([whole, whole]))
    const [event, ...messages] = await contentsFor(gamma)
    expect(event).toEqual({})
    expect(messages.map(({ body }) => body)).toEqual(['what Alice said'])
  })

  it('stays erased over a restart', async () => {
    await home.server.restart()
    for (const event of Object.values(await readings(later))) expect(event.content).toEqual({})
    expect(bodyIn((await readings(alice)).event)).toBe('the secret of Mary')
  })
})
