import '../e2e/promise-with-resolvers.ts'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Appservice, LogLevel, LogService, MemoryStorageProvider } from 'matrix-bot-sdk'
import { ClientEvent, type MatrixClient, type MatrixEvent, Preset, RoomEvent, SyncState } from 'matrix-js-sdk'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { registration, type TestRegistration } from '../appservices/world.ts'
import { startClient } from '../e2e/js-sdk-story.ts'
import { type Json, openApi, register } from '../support/api.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { freePort } from '../support/free-port.ts'
import { type Haproxy, hasHaproxy, startHaproxy } from '../support/haproxy.ts'
import { type Nodes, startNodes } from '../support/nodes.ts'
import { waitUntil } from '../support/wait.ts'

/** For how long nodes are restarted, one after another. */
const MINUTES = Number(process.env.CLUSTER_MINUTES ?? 1)
const NODES = 3
/** How soon the answer to a message is there at the latest, also while its node stops. */
const PATIENCE_MS = 20_000

const isThere = hasHaproxy()
let database: TestDatabase
let cluster: Nodes
let haproxy: Haproxy
let directory: string
let bot: Appservice
let baseUrl: string
/** How often the bridge heard each message. */
const heard = new Map<string, number>()
const botProblems: string[] = []

beforeAll(async () => {
  if (!isThere) return
  LogService.setLevel(LogLevel.ERROR)
  LogService.muteModule('MatrixHttpClient')
  const port = await freePort()
  const reg = registration('bridge', { url: `http://127.0.0.1:${port}` })
  directory = await mkdtemp(join(tmpdir(), 'hearth-registrations-'))
  await writeFile(join(directory, 'bridge.yaml'), JSON.stringify(reg))
  database = await createTestDatabase()
  cluster = await startNodes({
    count: NODES,
    url: () => database.url,
    env: () => ({
      HEARTH__APPLICATION_SERVICES__REGISTRATIONS: directory,
      HEARTH__OUTBOUND__ALLOW_RANGES: '127.0.0.0/8',
    }),
  })
  haproxy = await startHaproxy(
    'haproxy.cfg',
    cluster.nodes.map(({ baseUrl }) => new URL(baseUrl).host),
  )
  baseUrl = `http://127.0.0.1:${haproxy.port}`
  bot = await startBridge(reg, port)
})

afterAll(async () => {
  if (!isThere) return
  bot?.stop()
  await haproxy?.close()
  await cluster?.close()
  await database.drop()
  await rm(directory, { recursive: true })
})

/** It repeats what people say, once for each time that it hears it. */
async function startBridge(reg: TestRegistration, port: number): Promise<Appservice> {
  const bridge = new Appservice({
    port,
    bindAddress: '127.0.0.1',
    homeserverName: 'localhost',
    homeserverUrl: baseUrl,
    registration: { ...reg, url: reg.url!, namespaces: reg.namespaces as never } as never,
    storage: new MemoryStorageProvider(),
    joinStrategy: { onJoinRoom: async (id: string, join: (id: string) => Promise<string>) => join(id) } as never,
  })
  const noted = (error: Error) => void botProblems.push(error.message)
  bridge.on('room.invite', (roomId: string, event: Json) => {
    bridge.getIntentForUserId(event.state_key).joinRoom(roomId).catch(noted)
  })
  bridge.on('room.message', (roomId: string, event: Json) => {
    if (event.sender.startsWith('@_bridge_')) return
    heard.set(event.content.body, (heard.get(event.content.body) ?? 0) + 1)
    bridge.getIntentForSuffix('echo').sendText(roomId, `echo of ${event.content.body}`).catch(noted)
  })
  bridge.on(
    'query.user',
    (_userId: string, create: (info: object) => Promise<void>) => void create({ display_name: 'Echo' }),
  )
  await bridge.begin()
  return bridge
}

const isEcho = (event: MatrixEvent) => event.getSender() === '@_bridge_echo:localhost'

it.skipIf(!isThere)(
  `a client on matrix-js-sdk and a bridge notice nothing of restarts (${MINUTES} minutes)`,
  {
    timeout: 120_000 + MINUTES * 90_000,
  },
  async () => {
    const entrance = openApi(baseUrl)
    await register(entrance, 'alice')
    await entrance.close()
    const alice: MatrixClient = await startClient(baseUrl, fetch, 'alice', 20)
    const states: string[] = []
    alice.on(ClientEvent.Sync, (state) => {
      if (state === SyncState.Error || state === SyncState.Reconnecting) states.push(state)
    })
    const texts: string[] = []
    alice.on(RoomEvent.Timeline, (event, room) => {
      if (room?.roomId === roomId && event.getType() === 'm.room.message' && isEcho(event))
        texts.push(event.getContent().body)
    })
    let roomId = ''
    let restarts = 0
    let isOver = false
    try {
      const ghost = '@_bridge_echo:localhost'
      roomId = (await alice.createRoom({ preset: Preset.PrivateChat, invite: [ghost] })).room_id
      await waitUntil('the bridge in the room', () => alice.getRoom(roomId)?.getMember(ghost)?.membership === 'join')

      const until = performance.now() + MINUTES * 60_000
      const restarting = (async () => {
        while (performance.now() < until) {
          for (const node of cluster.nodes) {
            await node.kill('SIGTERM')
            await node.start()
            await waitUntil('its return to the balancer', allUp)
            restarts++
          }
        }
        isOver = true
      })()
      let sent = 0
      for (; !isOver; sent++) {
        await alice.sendTextMessage(roomId, `message ${sent}`)
        const wanted = `echo of message ${sent}`
        await waitUntil(wanted, () => texts.includes(wanted), { timeoutMs: PATIENCE_MS }).catch((error: Error) => {
          const times = heard.get(`message ${sent}`) ?? 0
          throw new Error(
            `${error.message}; heard by the bridge ${times} times; ${[...states, ...botProblems].join(', ')}`,
          )
        })
      }
      await restarting
      const numbers = Array.from({ length: sent }, (_, n) => `message ${n}`)
      expect(texts).toEqual(numbers.map((text) => `echo of ${text}`))
      expect([...heard]).toEqual(numbers.map((text) => [text, 1]))
      expect(states).toEqual([])
      expect(botProblems).toEqual([])
      console.log(`${sent} messages and echoes, ${restarts} restarts`)
    } finally {
      alice.stopClient()
    }
  },
)

async function allUp(): Promise<boolean> {
  const rows = await haproxy.statistics()
  return rows.filter(({ svname = '', status }) => svname.startsWith('server') && status === 'UP').length === NODES
}
