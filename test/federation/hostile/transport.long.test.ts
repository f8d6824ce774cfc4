import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { Agent, request } from 'undici'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../src/core/json.ts'
import { type Account, createRoom, register, sendText } from '../../support/api.ts'
import { type Authority, createAuthority } from '../../support/certificate.ts'
import { freePort } from '../../support/free-port.ts'
import { type House, openHouse } from '../../support/house.ts'
import { json, startTlsServer, type TlsServer } from '../../support/tls-server.ts'
import { waitUntil } from '../../support/wait.ts'
import { MANNERS } from './manners.ts'
import { goes, type Home, openPeer, type Peer, proposed, questionsTo } from './peer.ts'
import { type HostilePeer, type HostileServers, PROGRAM, startHostileServers } from './process.ts'

/**
 * Servers that answer slowly, without end, or from elsewhere, while another one is talked with. Each in a process of its own: the
 * server, those that are hostile to it with the users who have them asked, and here the one that is not.
 * `HOSTILE_ROUNDS=400 HOSTILE_PEERS=100 npx vitest run test/federation/hostile/transport.long.test.ts` measures in earnest, on a quiet
 * machine: the 99th percentile of a healthy peer's requests with the attack is then to be within 10% of that without.
 */
const ROUNDS = Number(process.env.HOSTILE_ROUNDS ?? 20)
const PEERS = Number(process.env.HOSTILE_PEERS ?? 8)
const IS_IN_EARNEST = process.env.HOSTILE_ROUNDS !== undefined
const TURNS = IS_IN_EARNEST ? 7 : 1
/** Until all have been given up that do not answer. */
const LEAST_TURN_MS = IS_IN_EARNEST ? 12_000 : 0
const MOST_MORE = 1.1

const enc = encodeURIComponent
const PUBLIC_ROOMS = '/_matrix/federation/v1/publicRooms'

let authority: Authority
let house: House
let home: Home
let metricsPort: number
let hostile: HostileServers
let healthy: Peer
let alice: Account
let room: string
let treasure: TlsServer

beforeAll(async () => {
  authority = createAuthority()
  hostile = startHostileServers(authority)
  metricsPort = await freePort()
  house = await openHouse(authority, { HEARTH__METRICS__PORT: String(metricsPort) })
  home = { name: house.name, url: house.child.baseUrl }
  healthy = await openPeer(authority)
  alice = await register(house.api, 'alice')
  room = await createRoom(house.api, alice.token, { preset: 'public_chat', room_version: '11' })
  await goes(healthy, home, 'join', room)
  treasure = await startTlsServer(authority.issue(['localhost']), json({ gold: 1 }))
})
afterAll(async () => {
  await hostile?.close()
  await Promise.all([healthy?.close(), treasure?.close()])
  await house?.close()
  authority?.remove()
})

async function openWith(manner: string): Promise<HostilePeer> {
  const peer = await hostile.open()
  await peer.lie('*', manner, `https://localhost:${treasure.port}/_matrix/secret`)
  return peer
}

describe('an answer', () => {
  it.each(Object.keys(MANNERS).filter((manner) => /^(with|that)/.test(manner) && !manner.includes('logs us out')))(
    '%s is no answer, whatever was asked',
    async (manner) => {
      const peer = await openWith(manner)
      const begun = performance.now()
      const answers = await Promise.all([
        ...questionsTo(peer, house.api, alice.token),
        peer.ask(home, 'GET', PUBLIC_ROOMS),
      ])
      for (const { status, body } of answers) {
        expect([400, 401, 404, 502]).toContain(status)
        expect(JSON.stringify(body)).not.toContain('gold')
      }
      expect(performance.now() - begun).toBeLessThan(9_000)
      expect(treasure.requests).toEqual([])
      await peer.close()
    },
  )

  it('without end is read as far as it may be long, and no further', async () => {
    // Five questions, of a megabyte at most, and what was under way.
    const poured = await hostile.poured()
    expect(poured).toBeGreaterThan(0)
    expect(poured).toBeLessThan(64 * 1024 * 1024)
  })
})

it('is started by hand as well, and lies as it is told to', async () => {
  const child = spawn(process.execPath, ['--import', 'tsx', PROGRAM, 'make_join=another type'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [words] = await once(child.stdout, 'data')
  const [, server, lair, file] = /server (\S+)\nroom (\S+)\nauthority (\S+)/.exec(String(words))!
  const dispatcher = new Agent({ connect: { ca: readFileSync(file!) } })
  const answer = await request(`https://${server}/_matrix/federation/v1/make_join/${enc(lair!)}/@a:b`, { dispatcher })
  expect(await answer.body.json()).toMatchObject({ event: { type: 'm.room.power_levels', sender: '@a:b' } })
  await dispatcher.close()
  child.kill()
  await once(child, 'exit')
})

/** What the healthy peer says next in the room. */
async function talker(): Promise<() => JsonObject> {
  const { body } = await proposed(healthy, home, 'leave', room)
  const { content: _, state_key: __, ...place } = body.event
  let draft = { ...place, type: 'm.room.message' }
  return () => {
    const text = { msgtype: 'm.text', body: 'hello' }
    const { pdu, eventId } = healthy.sign('11', { ...draft, content: text, origin_server_ts: Date.now() })
    draft = { ...draft, prev_events: [eventId], depth: draft.depth + 1 }
    return pdu as JsonObject
  }
}

/** Of a turn of so many rounds at least: their times, and what the server's process did meanwhile, a round. All in milliseconds. */
interface Turn {
  readonly p50: number
  readonly p99: number
  readonly cpu: number
  /** 99th percentile of how late its event loop was. */
  readonly lag: number
}

async function metrics(): Promise<{ cpu: number; lag: number }> {
  const text = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text()
  const of = (name: string) => Number(new RegExp(`^${name} (\\S+)`, 'm').exec(text)?.[1]) * 1000
  return { cpu: of('process_cpu_seconds_total'), lag: of('nodejs_eventloop_lag_p99_seconds') }
}

/** What a healthy peer asks and sends, and what is asked of it, in turns. */
async function turn(name: string, next: () => JsonObject): Promise<Turn> {
  const times: number[] = []
  const before = await metrics()
  const end = performance.now() + LEAST_TURN_MS
  for (let round = 0; round < ROUNDS || performance.now() < end; round++) {
    const begun = performance.now()
    const profile = `/_matrix/federation/v1/query/profile?user_id=${enc(alice.userId)}`
    expect((await healthy.ask(home, 'GET', profile)).status).toBe(200)
    const body = { origin: healthy.name, origin_server_ts: 1, pdus: [next()], edus: [] }
    const sent = await healthy.ask(home, 'PUT', `/_matrix/federation/v1/send/${name}-${round}`, { body })
    expect([sent.status, Object.values(sent.body.pdus)]).toEqual([200, [{}]])
    const alias = `/directory/room/${enc(`#nothing:${healthy.name}`)}`
    expect((await house.api.request('GET', alias, { token: alice.token })).status).toBe(404)
    times.push(performance.now() - begun)
  }
  const { cpu, lag } = await metrics()
  const sorted = times.toSorted((one, other) => one - other)
  const at = (share: number) => sorted[Math.floor(sorted.length * share)]!
  return { p50: at(0.5), p99: at(0.99), cpu: (cpu - before.cpu) / times.length, lag }
}

/** Has every one of so many servers hang on to what it is asked; gives how to let go. */
async function besiege(): Promise<() => Promise<void>> {
  const peers = await Promise.all(
    Array.from({ length: PEERS }, (_, count) => openWith(count % 2 === 0 ? 'drips' : 'is silent')),
  )
  const asked: Promise<unknown>[] = []
  for (const peer of peers) asked.push(peer.haveAsked(home, alice.token), peer.asks(home, 'GET', PUBLIC_ROOMS))
  const settled = Promise.allSettled(asked)
  // Who has answered nothing is asked no more at once.
  await waitUntil('all of them to be asked', async () => (await hostile.askedAtLeast()) >= 2, {
    timeoutMs: 60_000,
    everyMs: 100,
  })
  return async () => {
    await Promise.all(peers.map((peer) => peer.close()))
    await settled
  }
}

/** Somebody of whom nothing is known yet. */
async function expectWelcome(newcomer: Peer): Promise<void> {
  const begun = performance.now()
  expect((await newcomer.ask(home, 'GET', PUBLIC_ROOMS)).status).toBe(200)
  expect(performance.now() - begun).toBeLessThan(5_000)
  await newcomer.close()
}

const median = (values: readonly number[]) => values.toSorted((one, other) => one - other)[values.length >> 1]!

it('peers that answer a byte a second, or never, hold up nobody else', async () => {
  const next = await talker()
  // Before there are others, whose names nobody else is to have: who does not tell its keys is not asked for them again so soon.
  const newcomers = await Promise.all(Array.from({ length: TURNS }, () => openPeer(authority)))
  await turn('warm', next)
  const turns: { calm: Turn; besieged: Turn }[] = []
  for (let count = 0; count < TURNS; count++) {
    const calm = await turn(`calm${count}`, next)
    const release = await besiege()
    await metrics()
    turns.push({ calm, besieged: await turn(`besieged${count}`, next) })
    await expectWelcome(newcomers[count]!)
    if (count === TURNS - 1) {
      await sendText(house.api, alice.token, room, 'still', 'still')
      await waitUntil('the healthy peer to hear of it', () =>
        healthy.front.requests.some(({ body }) => body.includes('still')),
      )
    }
    await release()
  }
  const figures = (['p50', 'p99', 'cpu', 'lag'] as const).map((of) => {
    const [usual, now] = [median(turns.map(({ calm }) => calm[of])), median(turns.map(({ besieged }) => besieged[of]))]
    return `${of} ${usual.toFixed(2)} -> ${now.toFixed(2)} ms`
  })
  const more = median(turns.map(({ calm, besieged }) => besieged.p99 / calm.p99))
  console.info(`a healthy peer beside ${PEERS} that do not answer: ${figures.join(', ')}; p99 times ${more.toFixed(2)}`)
  // A few rounds on a busy machine tell no tenth; that nobody waits for the others they do tell.
  if (IS_IN_EARNEST) expect(more).toBeLessThan(MOST_MORE)
  else expect(turns[0]!.besieged.p99).toBeLessThan(5_000)
}, 600_000)
