import { copyFile, mkdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findNode } from '../../src/store/cluster/nodes.ts'
import { WRITER } from '../../src/store/db/writer-lock.ts'
import { type Account, type Api, createRoom, type Json, openApi, register, sendText } from '../support/api.ts'
import { type ChildServer, prepareChildServer } from '../support/child-server.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { messagesOf } from '../support/insistent.ts'
import { waitUntil } from '../support/wait.ts'

const SECRET = 'a secret of the two nodes of this test'

let database: TestDatabase
let nodes: readonly ChildServer[]
let apis: readonly Api[]
let alice: Account
let room: string

const prepare = (env: Record<string, string> = {}) =>
  prepareChildServer({
    env: {
      HEARTH__DATABASE__URL: database.url,
      HEARTH__CLUSTER__SECRET: SECRET,
      HEARTH__CLUSTER__PORT: '0',
      HEARTH__REGISTRATION__ENABLED: 'true',
      HEARTH__RATE_LIMITS__ENABLED: 'false',
      ...env,
    },
  })

/** Nodes of a cluster have the same keys, and keep files in one place. */
async function copyKeys(from: ChildServer, to: ChildServer): Promise<void> {
  await mkdir(join(to.dataDir, 'data'), { recursive: true, mode: 0o700 })
  for (const name of ['signing.key', 'identity.key'])
    await copyFile(join(from.dataDir, 'data', name), join(to.dataDir, 'data', name))
  await symlink(join(from.dataDir, 'data/media'), join(to.dataDir, 'data/media'))
}

/** What the room holds so far. */
let bodies: string[] = []

const newBodies = (news: Json): string[] =>
  news.rooms.join[room].timeline.events.map(({ content }: { content: { body: string } }) => content.body)

/** Sends one message after another, until it is stopped. Every one must be acknowledged. */
function sendAllAlong(api: Api, name: string) {
  const sent: string[] = []
  const tookMs: number[] = []
  let isOver = false
  const sending = (async () => {
    for (let count = 0; !isOver; count++) {
      const begun = performance.now()
      await sendText(api, alice.token, room, `${name}${count}`, `${name}${count}`)
      tookMs.push(performance.now() - begun)
      sent.push(`${name}${count}`)
    }
  })()
  return {
    sent,
    tookMs,
    async stop() {
      // One more, which begins now.
      const soFar = sent.length
      await Promise.race([sending, waitUntil('one more', () => sent.length > soFar + 1)])
      isOver = true
      await sending
    },
  }
}

const standsBy = (node: ChildServer) => waitUntil('standing by', () => node.output().includes('this one stands by'))

const bodiesIn = async (api: Api) => (await messagesOf(api, alice, room)).map(({ text }) => text)

beforeAll(async () => {
  database = await createTestDatabase()
  nodes = [await prepare(), await prepare()]
  apis = nodes.map(({ baseUrl }) => openApi(baseUrl))
  await nodes[0]!.start()
  await copyKeys(nodes[0]!, nodes[1]!)
  alice = await register(apis[0]!, 'alice')
  room = await createRoom(apis[0]!, alice.token)
})

afterAll(async () => {
  for (const api of apis) await api.close()
  for (const node of nodes) {
    // Nobody is to take its place.
    await node.kill('SIGKILL')
    await node.dispose()
  }
  await database.drop()
})

describe('two processes over one database', () => {
  it('the second one stands by, passes requests on, and serves as soon as the first one stops', async () => {
    const [first, second] = nodes as [ChildServer, ChildServer]
    await sendText(apis[0]!, alice.token, room, 'one', 'one')
    const { next_batch: since } = await apis[0]!.call('GET', '/sync', { token: alice.token })
    second.begin()
    await second.waitReady()
    expect(second.output()).toContain('this one stands by')
    expect(await sendText(apis[1]!, alice.token, room, 'one', 'one')).toMatch(/^\$/)
    const waiting = apis[1]!.call('GET', `/sync?timeout=30000&since=${encodeURIComponent(since)}`, {
      token: alice.token,
    })
    await sendText(apis[0]!, alice.token, room, 'two', 'two')
    expect(newBodies(await waiting)).toEqual(['two'])

    const sending = sendAllAlong(apis[1]!, 'by')
    await first.kill('SIGTERM')
    await sending.stop()
    expect(Math.max(...sending.tookMs)).toBeLessThan(10_000)
    expect(await bodiesIn(apis[1]!)).toEqual(['one', 'two', ...sending.sent])
    const news = await apis[1]!.call('GET', `/sync?since=${encodeURIComponent(since)}`, { token: alice.token })
    expect(newBodies(news).at(-1)).toBe(sending.sent.at(-1))
    bodies = ['one', 'two', ...sending.sent]
  })

  it('a node that is killed is replaced when its lease has ended', { timeout: 90_000 }, async () => {
    const [first, second] = nodes as [ChildServer, ChildServer]
    first.begin()
    await first.waitReady()
    await sendText(apis[1]!, alice.token, room, 'three', 'three')
    await second.kill('SIGKILL')
    // It waits for the next node that serves.
    await sendText(apis[0]!, alice.token, room, 'four', 'four')
    bodies.push('three', 'four')
    expect(await bodiesIn(apis[0]!)).toEqual(bodies)
  })

  it('a node that was stopped for longer than its lease writes nothing when it goes on, and ends', {
    timeout: 90_000,
  }, async () => {
    const [first, second] = nodes as [ChildServer, ChildServer]
    const before = await findNode(database.db, WRITER)
    second.begin()
    await second.waitReady()
    process.kill(first.pid(), 'SIGSTOP')
    // They wait in its socket, and it reads them first when it goes on.
    const late = Array.from({ length: 8 }, (_, n) =>
      sendText(apis[0]!, alice.token, room, `late${n}`, 'late').then(
        () => 'sent',
        () => 'refused',
      ),
    )
    // This one is passed on to the node that does not answer, and taken back.
    await sendText(apis[1]!, alice.token, room, 'five', 'five')
    expect((await findNode(database.db, WRITER))?.fence).toBe(before!.fence + 1)
    process.kill(first.pid(), 'SIGCONT')
    await waitUntil('the end of the process', () => !first.isRunning())
    expect(first.output()).toContain('another node took the place of this one')
    expect(await Promise.all(late)).toEqual(Array(8).fill('refused'))
    await sendText(apis[1]!, alice.token, room, 'six', 'six')
    bodies.push('five', 'six')
    expect(await bodiesIn(apis[1]!)).toEqual(bodies)
    const forks = await database.db.query('SELECT extremities FROM room WHERE cardinality(extremities) > 1')
    expect(forks).toEqual([])
  })

  it('a process with another secret or other keys ends, and says what to do', async () => {
    const strangers = [
      await prepare({ HEARTH__CLUSTER__SECRET: 'a guess at the secret of those nodes' }),
      await prepare(),
    ]
    for (const [stranger, advice] of [
      [strangers[0]!, 'give all nodes the same one'],
      [strangers[1]!, 'copy signing.key and identity.key'],
    ] as const) {
      stranger.begin()
      await waitUntil('its end', () => !stranger.isRunning())
      expect(stranger.output()).toContain(advice)
      await stranger.dispose()
    }
    expect(nodes[1]!.isRunning()).toBe(true)
  })

  it('a node that stands by stops when it is asked to', async () => {
    const third = await prepare()
    await copyKeys(nodes[1]!, third)
    third.begin()
    await standsBy(third)
    await third.kill('SIGTERM')
    expect(third.output()).toContain('stopped while standing by')
    await third.dispose()
  })
})
