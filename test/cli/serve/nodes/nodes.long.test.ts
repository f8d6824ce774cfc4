import { rm, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import {
  type Account,
  type Api,
  createRoom,
  join as joinRoom,
  openApi,
  register,
  syncPath,
} from '../../../support/api.ts'
import { type ChildServer, isAlive, startChildServer } from '../../../support/child-server.ts'
import { familyLog } from '../../../support/family.ts'
import { freePort } from '../../../support/free-port.ts'
import { messagesOf, startInsistentSenders, startWanderer } from '../../../support/insistent.ts'
import { withAllBelow } from '../../../support/process-tree.ts'
import { waitUntil } from '../../../support/wait.ts'

/** Nodes of one machine, over their own Postgres. `FAMILY_KILLS=20` for more. */
const NODES = 3
const KILLS = Number(process.env.FAMILY_KILLS ?? 3)
const SENDERS = 3

let server: ChildServer
let api: Api
let people: Account[]
let room: string
let metricsPort: number

beforeEach(async () => {
  metricsPort = await freePort()
  server = await startChildServer({
    args: ['--nodes', `${NODES}`],
    env: {
      HEARTH__REGISTRATION__ENABLED: 'true',
      HEARTH__RATE_LIMITS__ENABLED: 'false',
      HEARTH__METRICS__PORT: `${metricsPort}`,
      HEARTH__PASSWORDS__SCRYPT__LOG2_COST: '4',
    },
  })
  api = openApi(server.baseUrl, { connections: 64 })
  people = []
  for (let n = 0; n < SENDERS; n++) people.push(await register(api, `sender${n}`))
  room = await createRoom(api, people[0]!.token, { preset: 'public_chat' })
  for (const { token } of people.slice(1)) await joinRoom(api, token, room)
  await allBegun()
})
afterEach(async () => {
  await api?.close()
  await server?.dispose()
})

const log = () => familyLog(server)
const pids = () => [...log().pids().values()]

/** All nodes take requests. */
const allBegun = () =>
  waitUntil('all nodes', async () => {
    const standing = new Set(
      [...server.output().matchAll(/"node":(\d+)[^\n]*(?:stands by|"msg":"ready")/g)].map(([, node]) => node),
    )
    return standing.size === NODES
  })

/** A request on a connection of its own, without any second try. @returns the status, or the code of the error */
function ask(method: string, path: string, { token }: Account, body?: object): Promise<number | string> {
  return new Promise((resolve) => {
    const asked = request(`${server.baseUrl}/_matrix/client/v3${path}`, {
      method,
      agent: false,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    })
    asked.once('error', ({ code = '' }: NodeJS.ErrnoException) => resolve(code))
    asked.once('response', (answer) => {
      answer.resume().once('end', () => resolve(answer.statusCode ?? 0))
    })
    asked.end(body && JSON.stringify(body))
  })
}

/** Sends, and holds syncs, without any patience, until it is told to end. */
function startStrict(until: AbortSignal) {
  const answers: (number | string)[] = []
  const work = people.map(async (person, sender) => {
    for (let n = 0; !until.aborted; n++) {
      const path = `/rooms/${encodeURIComponent(room)}/send/m.room.message/${sender}-${n}`
      answers.push(await ask('PUT', path, person, { msgtype: 'm.text', body: `${sender}-${n}` }))
      await pause(20)
    }
  })
  const waiting = (async () => {
    while (!until.aborted) answers.push(await ask('GET', '/sync?timeout=2000', people[0]!))
  })()
  return { answers, done: Promise.all([...work, waiting]) }
}

test(`${KILLS} times kill -9 of the node that serves: another one has its place at once, and nothing acknowledged is lost`, {
  timeout: 120_000 + KILLS * 30_000,
}, async () => {
  const reader = people[0]!
  const { next_batch } = await api.call('GET', syncPath({}), { token: reader.token })
  const wanderer = startWanderer([api], reader, next_batch)
  const senders = startInsistentSenders({ apis: [api], people, rooms: [room], listener: reader, pauseMs: 10 })
  const gaps: number[] = []
  for (let kill = 0; kill < KILLS; kill++) {
    const serving = log().serving()!
    const pid = log().pids().get(serving)!
    await pause(3_000 * (kill / KILLS))
    process.kill(pid, 'SIGKILL')
    const killed = performance.now()
    await waitUntil('the next one', () => senders.times.some((at) => at > killed + 50))
    gaps.push(Math.round(senders.times.find((at) => at > killed + 50)! - killed))
    await waitUntil('its own next process', () => log().pids().get(serving) !== pid)
    const count = senders.acknowledged.size
    await waitUntil('more messages', () => senders.acknowledged.size > count + 60)
  }
  await senders.stop()
  await wanderer.finish()
  const { acknowledged, delivered } = senders
  const stored = await messagesOf(api, reader, room)
  expect(new Map(stored.map(({ id, text }) => [text, id]))).toEqual(acknowledged)
  expect(stored).toHaveLength(acknowledged.size)
  expect(wanderer.seen.get(room)).toEqual(stored.map(({ id }) => id))
  expect(wanderer.received.toSorted()).toEqual([...delivered].toSorted())
  // A lease is renewed every 2 s for 10 s, and nobody waited for it.
  expect(Math.max(...gaps)).toBeLessThan(7_000)
  console.log(`${acknowledged.size} messages; no answer for ${gaps.join(', ')} ms`)
})

test('a node that ends again and again is started later each time', async () => {
  const standing = [...log().pids().keys()].find((node) => node !== log().serving())!
  for (const expected of [[100], [100, 200], [100, 200, 400]]) {
    const pid = log().pids().get(standing)!
    process.kill(pid, 'SIGKILL')
    await waitUntil('the next one', () => log().pids().get(standing) !== pid)
    expect(log().waitsMs()).toEqual(expected)
  }
  expect(await ask('GET', '/account/whoami', people[0]!)).toBe(200)
})

test('SIGUSR2 restarts all nodes in turn: no client meets an error', { timeout: 180_000 }, async () => {
  const before = pids()
  const end = new AbortController()
  const strict = startStrict(end.signal)
  process.kill(server.pid(), 'SIGUSR2')
  await waitUntil('the last restart', () => server.output().includes('all nodes were restarted'), {
    timeoutMs: 120_000,
  })
  const count = strict.answers.length
  await waitUntil('what comes after', () => strict.answers.length > count + 50)
  end.abort()
  await strict.done
  expect(strict.answers.filter((answer) => answer !== 200)).toEqual([])
  expect(before.filter(isAlive)).toEqual([])
  expect(pids()).toHaveLength(NODES)
  expect(log().waitsMs()).toEqual([])
  expect(server.output()).not.toContain('ended by itself')
})

test('a configuration that is wrong ends no more than one node; when it is right again, the restart goes on', {
  timeout: 120_000,
}, async () => {
  const file = join(server.dataDir, 'hearth.yaml')
  const before = pids()
  await writeFile(file, 'limits: {nonsense: 1}')
  process.kill(server.pid(), 'SIGUSR2')
  await waitUntil('three tries', () => log().waitsMs().length >= 2)
  expect(before.filter(isAlive)).toHaveLength(NODES - 1)
  expect(await ask('GET', '/account/whoami', people[0]!)).toBe(200)
  await rm(file)
  await waitUntil('the last restart', () => server.output().includes('all nodes were restarted'))
  expect(before.filter(isAlive)).toEqual([])
  expect(await ask('GET', '/account/whoami', people[0]!)).toBe(200)
})

test('SIGTERM answers all that was begun, and leaves nothing', { timeout: 120_000 }, async () => {
  const postmaster = server.postmasterPid()!
  const children = pids()
  const end = new AbortController()
  const strict = startStrict(end.signal)
  await waitUntil('a load', () => strict.answers.length > 100)
  const begun = performance.now()
  await server.kill('SIGTERM')
  expect(performance.now() - begun).toBeLessThan(15_000)
  end.abort()
  await strict.done
  const others = strict.answers.filter((answer) => answer !== 200 && answer !== 'ECONNREFUSED')
  // A connection that waits to be accepted at the moment of the end is reset by the system, as with a process alone.
  expect(others.filter((answer) => answer !== 'ECONNRESET')).toEqual([])
  expect(others.length).toBeLessThanOrEqual(SENDERS + 1)
  expect([postmaster, ...children].filter(isAlive)).toEqual([])
})

test('kill -9 of the process that started them ends all; the next start is at once, and has everything', {
  timeout: 120_000,
}, async () => {
  const postmaster = server.postmasterPid()!
  const children = pids()
  const senders = startInsistentSenders({ apis: [api], people, rooms: [room], listener: people[0]!, pauseMs: 10 })
  await waitUntil('messages', () => senders.acknowledged.size > 100)
  // One of them hangs, and keeps the port, until it goes on.
  const frozen = children[1]!
  process.kill(frozen, 'SIGSTOP')
  await server.kill('SIGKILL')
  await waitUntil('the end of the nodes', () => children.every((pid) => pid === frozen || !isAlive(pid)))
  await waitUntil('the end of Postgres', () => !isAlive(postmaster))
  process.kill(frozen, 'SIGCONT')
  await waitUntil('its end', () => !isAlive(frozen))
  const said = server.output().length
  await server.start()
  // It does not wait for the lease of the one that served: the first node serves without standing by for anybody.
  const first = server.output().slice(said)
  expect(first).toMatch(/"node":1,[^\n]*"msg":"ready"/)
  expect(first).not.toMatch(/"node":1,[^\n]*stands by/)
  const count = senders.acknowledged.size
  await waitUntil('more messages', () => senders.acknowledged.size > count + 30)
  await senders.stop()
  const stored = await messagesOf(api, people[0]!, room)
  expect(new Map(stored.map(({ id, text }) => [text, id]))).toEqual(senders.acknowledged)
  expect(stored).toHaveLength(senders.acknowledged.size)
})

test('while the database stands still, health says so of all nodes', { timeout: 120_000 }, async () => {
  const health = async () => {
    const answer = await fetch(`http://127.0.0.1:${metricsPort}/health/ready`)
    return [answer.status, ((await answer.json()) as { reason?: string }).reason]
  }
  await waitUntil('health', async () => (await health())[0] === 200)
  const stopped = withAllBelow(server.postmasterPid()!)
  for (const pid of stopped) process.kill(pid, 'SIGSTOP')
  try {
    // The nodes wait for it as long as for any answer. On a busy machine one of them may be late once.
    await waitUntil('the reason', async () => {
      const [status, reason] = await health()
      return status === 503 && (reason === 'the database does not answer' || reason === 'no node serves')
    })
  } finally {
    for (const pid of stopped) process.kill(pid, 'SIGCONT')
  }
  await waitUntil('health again', async () => (await health())[0] === 200)
})
