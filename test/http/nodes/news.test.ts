import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { UserId } from '../../../src/core/ids.ts'
import { nodeProof } from '../../../src/core/signing/node-proof.ts'
import { createMetrics } from '../../../src/domain/metrics.ts'
import { createQuietSyncs, type QuietSyncs } from '../../../src/domain/standby/quiet-syncs.ts'
import type { AskedSync, SyncDesk, SyncFollower } from '../../../src/domain/standby/sync-desk.ts'
import { createConnections } from '../../../src/http/connections.ts'
import { type Front, openFront } from '../../../src/http/nodes/front.ts'
import { VERSION_PROTOCOL, versionPath } from '../../../src/http/nodes/news-frames.ts'
import { createNewsStream, type NewsStream } from '../../../src/http/nodes/news-stream.ts'
import { NODE_PROOF, passedOn } from '../../../src/http/nodes/node-listener.ts'
import { VersionLine } from '../../../src/http/nodes/version-line.ts'
import { type Cuttable, startCuttable } from '../../support/cuttable.ts'
import { waitUntil } from '../../support/wait.ts'

/** What one node hears of the other over a real connection, and what becomes of the syncs that it holds when it hears nothing. */

const SECRET = 'the secret of the nodes of this test'
const HELD_MS = 60_000
const USER = 7
const ROOM = 3
const log = pino({ level: 'silent' })
const listener: RequestListener = (_request, response) => void response.end()

/** News of one user in one room. */
function createDesk(): SyncDesk & {
  readonly followers: Set<SyncFollower>
  looks: number
  /** How often it was asked where the streams stand. */
  asked: number
  /** Whether there is more than an answer has. */
  hasMore: boolean
  position_: number
  say(): void
} {
  const followers = new Set<SyncFollower>()
  return {
    followers,
    looks: 0,
    asked: 0,
    hasMore: false,
    position_: 1,
    say() {
      this.position_ += 1
      for (const follower of followers) follower.room(ROOM)
    },
    position() {
      this.asked += 1
      return `s${this.position_}`
    },
    isGoingOn: async () => false,
    async look({ since, token }) {
      this.looks += 1
      if (token === 'unknown') return undefined
      const position = `s${this.position_}`
      const by = { userId: '@one:hs' as UserId, userNid: USER, deviceId: 'D', tokenNid: 1, isGuest: false }
      const body = JSON.stringify({ next_batch: position })
      const found = { by, isEmpty: since === position, position, endsAt: null, rooms: [ROOM], body }
      return this.hasMore ? found : { ...found, nothingNew: JSON.stringify({ next_batch: position, isNew: false }) }
    },
    follow(follower) {
      followers.add(follower)
      return () => void followers.delete(follower)
    },
  }
}

const asked = (since: string, token = 'known'): AskedSync => ({
  token,
  since,
  wish: { filter: undefined, stateAfter: undefined },
  presence: 'online',
  ip: '127.0.0.1',
  userAgent: undefined,
})

const nobody: SyncFollower = { room() {}, user() {}, began() {}, moved() {}, missed() {}, ended() {} }
const here = { aborted: false, addEventListener() {}, removeEventListener() {} }

let desk: ReturnType<typeof createDesk>
let front: Front
let line: Cuttable
/** The node that follows, and what leads the other one's thread to it. */
let standby: Front
let threadLine: Cuttable
let quiet: QuietSyncs
let news: NewsStream
let isHeld: boolean

const ask = (since: string, timeoutMs = HELD_MS) => quiet.answer(asked(since), timeoutMs, here)
const follows = () => waitUntil('it follows', () => desk.followers.size === 1)
const bodyOf = async (answer: ReturnType<typeof ask>) => (await answer)?.body.toString()

const portOf = ({ address }: Front) => Number(address.split(':')[1])

function open(): Promise<Front> {
  const connections = createConnections(
    { inAll: 100, perAddress: 100, trustedProxies: [] },
    { metrics: createMetrics({ version: '0', node: '' }).arrivals, log },
  )
  const answersItself = () => false
  return openFront({
    secret: SECRET,
    host: '127.0.0.1',
    port: 0,
    connections,
    now: Date.now,
    log,
    answersItself,
  })
}

beforeEach(async () => {
  desk = createDesk()
  isHeld = true
  front = await open()
  front.serve(listener, () => isHeld, desk)
  line = await startCuttable({ host: '127.0.0.1', port: portOf(front) })
  standby = await open()
  threadLine = await startCuttable({ host: '127.0.0.1', port: portOf(standby) })
  quiet = createQuietSyncs({ clock: Date })
  const ownAddress = `127.0.0.1:${threadLine.port}`
  news = createNewsStream({ secret: SECRET, now: Date.now, listener: quiet, ownAddress })
  void standby.readHere({
    enter: news.enter,
    servedBy() {},
    isAnywhere: () => false,
    isSlidingSync: () => false,
    takeSync: () => false,
    isBatched: () => false,
    inBatch: async () => undefined,
    routing() {},
  })
  news.servedBy(`127.0.0.1:${line.port}`)
  await follows()
})
afterEach(async () => {
  news.close()
  for (const { close, server } of [front, standby]) {
    close()
    server.close()
    server.closeAllConnections()
  }
  await line.close()
  await threadLine.close()
})

/** From now on the thread of the other node is asked whether anything has changed there. */
async function reachThread() {
  await waitUntil('its connection', async () => (await bodyOf(ask(desk.position(), 0))) !== undefined)
  await waitUntil('the thread', async () => {
    const before = desk.asked
    await ask(`s${desk.position_}`, 0)
    return desk.asked === before
  })
}

/** A sync that is held. */
async function hold() {
  await waitUntil('its connection', async () => (await bodyOf(ask(desk.position(), 0))) !== undefined)
  const answer = ask(desk.position())
  await waitUntil('a sync that is held', () => quiet.waiting() === 1)
  return answer
}

/** Wrapped, because what is awaited must not be the answer itself. */
const holding = async () => ({ answer: hold() })

describe('a node that follows', () => {
  it('has each client looked at once while there is no news, and again when there is', async () => {
    await waitUntil('its connection', async () => (await bodyOf(ask('s1', 0))) !== undefined)
    const before = desk.looks
    for (let times = 0; times < 5; times++) expect(await bodyOf(ask('s1', 0))).toBe('{"next_batch":"s1"}')
    expect(desk.looks).toBe(before)
    desk.say()
    expect(await bodyOf(ask('s1', 0))).toBe('{"next_batch":"s2"}')
    expect(desk.looks).toBe(before + 1)
  })

  it('looks no second time at one whose time is almost up', async () => {
    // Timers come early by this clock.
    const begun = performance.now()
    const slow = createQuietSyncs({ clock: { now: () => begun + (performance.now() - begun) / 2 } })
    slow.began({
      look: async (sync) => ({ ...(await desk.look(sync, nobody))!, after: 0 }),
      position: async () => desk.position(),
      isGoingOn: async () => true,
    })
    expect((await slow.answer(asked('s1'), 50, here))?.body).toBe('{"next_batch":"s1"}')
    expect(desk.looks).toBe(1)
  })

  it('wakes what it holds', async () => {
    const { answer } = await holding()
    await waitUntil('a sync that is held', () => quiet.waiting() === 1)
    desk.say()
    expect(await bodyOf(answer)).toBe('{"next_batch":"s2"}')
  })

  it('has a client that got news looked at again only when there is more', async () => {
    await waitUntil('its connection', async () => (await bodyOf(ask('s1', 0))) !== undefined)
    const before = desk.looks
    for (let times = 1; times <= 3; times++) {
      desk.say()
      expect(await bodyOf(ask(`s${times}`))).toBe(`{"next_batch":"s${times + 1}"}`)
      expect(await bodyOf(ask(`s${times + 1}`, 0))).toBe(`{"next_batch":"s${times + 1}","isNew":false}`)
      expect(desk.looks).toBe(before + times)
    }
    const answer = ask('s4')
    await waitUntil('a sync that is held', () => quiet.waiting() === 1)
    expect(desk.looks).toBe(before + 3)
    desk.say()
    expect(await bodyOf(answer)).toBe('{"next_batch":"s5"}')
  })

  it('has a client that got news looked at again if there may be more', async () => {
    await waitUntil('its connection', async () => (await bodyOf(ask('s1', 0))) !== undefined)
    desk.say()
    desk.hasMore = true
    const before = desk.looks
    expect(await bodyOf(ask('s1'))).toBe('{"next_batch":"s2"}')
    expect(await bodyOf(ask('s2', 0))).toBe('{"next_batch":"s2"}')
    expect(desk.looks).toBe(before + 2)
  })

  it('has a client that lost its news look again from where it was', async () => {
    await waitUntil('its connection', async () => (await bodyOf(ask('s1', 0))) !== undefined)
    desk.say()
    for (let times = 0; times < 2; times++) expect(await bodyOf(ask('s1', 0))).toBe('{"next_batch":"s2"}')
  })

  it('passes on what the other one cannot look at', async () => {
    await waitUntil('its connection', async () => (await bodyOf(ask('s1', 0))) !== undefined)
    expect(await quiet.answer(asked('s1', 'unknown'), 0, here)).toBe(undefined)
  })

  it('goes on following while more is answered than fits', async () => {
    await waitUntil('its connection', async () => (await bodyOf(ask('s1', 0))) !== undefined)
    const [follower] = desk.followers
    const long = 'x'.repeat(250_000)
    const look = desk.look
    desk.look = async (sync, from) => ({ ...(await look.call(desk, sync, from))!, isEmpty: false, body: long })
    const answers = await Promise.all(Array.from({ length: 400 }, () => bodyOf(ask('s0'))))
    // How many are passed on depends on how fast the line is.
    expect(answers.filter((answer) => answer !== undefined && answer !== long)).toEqual([])
    expect(answers).toContain(long)
    expect([...desk.followers]).toEqual([follower])
  })

  const ENDS: readonly (readonly [string, () => void])[] = [
    ['the other one serves no more', () => void front.retire()],
    ['the other one has lost its place', () => (isHeld = false)],
    ['the line is silent', () => line.cut()],
    ['another one serves', () => news.servedBy('127.0.0.1:1')],
    ['none serves', () => news.servedBy(undefined)],
  ]
  it.each(ENDS)('passes everything on when %s', async (_, end) => {
    const { answer } = await holding()
    await waitUntil('a sync that is held', () => quiet.waiting() === 1)
    end()
    expect(await answer).toBe(undefined)
    await waitUntil('nothing is answered', async () => (await ask('s1', 0)) === undefined)
  })

  it('passes on what it holds when commits were missed there, and goes on', async () => {
    const { answer } = await holding()
    await waitUntil('a sync that is held', () => quiet.waiting() === 1)
    for (const follower of desk.followers) follower.missed()
    expect(await answer).toBe(undefined)
    await waitUntil('it follows again', async () => (await bodyOf(ask('s1', 0))) === '{"next_batch":"s1"}')
  })

  it('goes on when the line is mended', async () => {
    const { answer } = await holding()
    await waitUntil('a sync that is held', () => quiet.waiting() === 1)
    line.cut()
    expect(await answer).toBe(undefined)
    line.mend()
    await waitUntil('it follows again', async () => (await bodyOf(ask('s1', 0))) === '{"next_batch":"s1"}')
  })

  it('ends a sync whose session has ended', async () => {
    const { answer } = await holding()
    await waitUntil('a sync that is held', () => quiet.waiting() === 1)
    for (const follower of desk.followers) follower.ended(USER, 'D')
    await expect(answer).rejects.toThrow('ended')
    expect(quiet.ended.withSession).toBe(1)
  })
})

describe('a node that asks the thread of the other one', () => {
  beforeEach(reachThread)

  it('asks the other one itself only when something has changed there', async () => {
    let { asked, looks } = desk
    for (let times = 0; times < 5; times++) expect(await bodyOf(ask('s1', 0))).toBe('{"next_batch":"s1"}')
    expect([desk.asked, desk.looks]).toEqual([asked, looks])
    desk.say()
    expect(await bodyOf(ask('s1', 0))).toBe('{"next_batch":"s2"}')
    await ask('s2', 0)
    ;({ asked, looks } = desk)
    for (let times = 0; times < 5; times++) expect(await bodyOf(ask('s2', 0))).toContain('{"next_batch":"s2"')
    expect([desk.asked, desk.looks]).toEqual([asked, looks])
  })

  it('asks once for many', async () => {
    const { asked } = desk
    for (const follower of desk.followers) follower.moved()
    const answers = await Promise.all(Array.from({ length: 100 }, () => bodyOf(ask('s1', 0))))
    expect([new Set(answers), desk.asked]).toEqual([new Set(['{"next_batch":"s1"}']), asked + 1])
  })

  it.each([
    ['a stream has moved', (follower: SyncFollower) => follower.moved()],
    ['a room was woken', (follower: SyncFollower) => follower.room(ROOM + 1)],
    ['a user was woken', (follower: SyncFollower) => follower.user(USER + 1)],
    ['a session has ended', (follower: SyncFollower) => follower.ended(USER + 1, undefined)],
    ['a connection has a newer request', (follower: SyncFollower) => follower.began('another')],
  ] as const)('asks the other one itself when %s', async (_, happen) => {
    const { asked } = desk
    for (const follower of desk.followers) happen(follower)
    expect(await bodyOf(ask('s1', 0))).toBe('{"next_batch":"s1"}')
    expect(desk.asked).toBe(asked + 1)
  })

  it('sees what moves while there is no thread', async () => {
    threadLine.cut()
    await ask('s1', 0)
    threadLine.mend()
    await waitUntil('the end of the thread', () => desk.followers.size === 1)
    desk.position_ += 1
    expect(await bodyOf(ask('s1', 0))).toBe('{"next_batch":"s2"}')
  })

  it('asks the other one itself when the thread is silent', async () => {
    const { asked } = desk
    threadLine.cut()
    const answers = await Promise.all([bodyOf(ask('s1', 0)), bodyOf(ask('s1', 0))])
    expect(answers).toEqual(['{"next_batch":"s1"}', '{"next_batch":"s1"}'])
    expect(desk.asked).toBe(asked + 1)
  })

  it('passes everything on when the other one has lost its place', async () => {
    isHeld = false
    await waitUntil('nothing is answered', async () => (await ask('s1', 0)) === undefined)
    // Its thread has ended too.
    await waitUntil('no follower', () => desk.followers.size === 0)
  })

  it('has a thread that does not get through try later each time', async () => {
    let tries = 0
    const unreached = new VersionLine('127.0.0.1:1', () => void tries++)
    const beatsBefore: number[] = []
    for (let beats = 0; beatsBefore.length < 4; beats++) {
      const before = tries
      expect(await unreached.position(async () => ({ position: 's1' }))).toBe('s1')
      if (tries > before) beatsBefore.push(beats)
      unreached.beat()
    }
    expect(beatsBefore).toEqual([0, 20, 60, 140])
  })

  it('is not told by another thread', async () => {
    const url = versionPath('a guess')
    const proof = nodeProof(SECRET, passedOn({ method: 'GET', url, headers: {} }), Date.now())
    const headers = { [NODE_PROOF]: proof, connection: 'upgrade', upgrade: VERSION_PROTOCOL }
    const guess = request({ host: '127.0.0.1', port: portOf(standby), path: url, headers })
    const [response] = (await once(guess.end(), 'response')) as [IncomingMessage]
    expect(response.statusCode).toBe(503)
  })
})

describe('a node of an earlier release that serves', () => {
  it('is asked later each time, until it knows what is asked for', async () => {
    const SOONEST_MS = 10
    const asked: number[] = []
    // As a release does that does not know it.
    const old = createServer((_request, response) => {
      asked.push(performance.now())
      response.writeHead(404).end()
    })
    await new Promise<void>((resolve) => old.listen(0, '127.0.0.1', resolve))
    const { port } = old.address() as AddressInfo
    let began = 0
    const patient = createNewsStream({
      secret: SECRET,
      now: Date.now,
      listener: { began: () => void began++, woken() {}, lost() {} },
      retryMs: SOONEST_MS,
    })
    patient.servedBy(`127.0.0.1:${port}`)
    await waitUntil('some tries', () => asked.length > 4)
    // Timers may come a millisecond early.
    for (const [n, at] of asked.slice(1, 5).entries())
      expect(at - asked[n]!).toBeGreaterThan(SOONEST_MS * 2 ** (n + 1) - 2)
    patient.servedBy(front.address)
    await waitUntil('its connection', () => began === 1)
    patient.close()
    old.close()
    old.closeAllConnections()
  })
})

describe('a node that serves', () => {
  it('tells nothing to whom it does not know as a node', async () => {
    const stranger = createQuietSyncs({ clock: Date })
    const other = createNewsStream({ secret: 'another secret', now: Date.now, listener: stranger })
    const { port } = new URL(`http://${front.address}`)
    other.servedBy(`127.0.0.1:${port}`)
    // It tries more than once meanwhile.
    const { answer } = await holding()
    await waitUntil('a sync that is held', () => quiet.waiting() === 1)
    desk.say()
    await answer
    expect(desk.followers.size).toBe(1)
    expect(await stranger.answer(asked('s1'), 0, here)).toBe(undefined)
    other.close()
  })
})
