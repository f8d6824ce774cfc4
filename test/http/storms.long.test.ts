import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Account, type Api, createRoom, openApi, register, sendText } from '../support/api.ts'
import { openRequest } from '../support/raw-request.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { waitUntil } from '../support/wait.ts'

/** Of whole servers, with the times that they have: what is shorter, and every way through it, is in the tests beside this one. */

const SILENT = 5_000
const AT_ONCE = 250
const SLOW = 1_000
/** Also on a machine that is busy. Who is in nobody's way is answered within milliseconds. */
const PATIENCE_MS = 5_000

let server: TestServer

beforeAll(async () => {
  server = await startServer({}, { hasStandby: true })
})
afterAll(() => server.close())

describe.each([
  ['the node that serves', () => server.baseUrl],
  ['a node that stands by', () => server.standbyUrl],
])('at %s', (name, urlOf) => {
  let api: Api
  let alice: Account
  let room: string
  let count = 0

  beforeAll(async () => {
    api = openApi(urlOf())
    alice = await register(api, `alice${urlOf().replace(/\D+/g, '')}`)
    room = await createRoom(api, alice.token)
  })
  afterAll(() => api.close())

  const level = async (metric: string) => Number(new RegExp(`^${metric} (\\d+)`, 'm').exec(await server.metrics())?.[1])

  /** Has somebody else send messages until all of this is over, and says how long the slowest one took. */
  async function talkUntil(isOver: () => boolean): Promise<number> {
    let slowest = 0
    await waitUntil(
      'the end of it',
      async () => {
        const begun = performance.now()
        await sendText(api, alice.token, room, `beside${++count}`, 'beside')
        slowest = Math.max(slowest, performance.now() - begun)
        return isOver()
      },
      { timeoutMs: 90_000, everyMs: 100 },
    )
    return slowest
  }

  async function openSilent(): Promise<Socket> {
    const { hostname, port } = new URL(urlOf())
    const socket = connect({ host: hostname, port: Number(port) })
    socket.on('error', () => {}).resume()
    await once(socket, 'connect')
    return socket
  }

  test(`E1: ${SILENT} connections that say nothing each end by themselves, and nobody waits for them`, async () => {
    const before = await level('hearth_connections')
    const sockets: Socket[] = []
    try {
      while (sockets.length < SILENT) sockets.push(...(await Promise.all(Array.from({ length: AT_ONCE }, openSilent))))
      if (name === 'the node that serves') expect(await level('hearth_connections')).toBeGreaterThan(SILENT / 2)
      expect(await talkUntil(() => sockets.every(({ closed }) => closed))).toBeLessThan(PATIENCE_MS)
    } finally {
      for (const socket of sockets) socket.destroy()
    }
    await waitUntil('as many as before', async () => (await level('hearth_connections')) <= before + 1)
  })

  test.each([
    ['passed on as it comes', 100_000],
    ['kept before it is passed on', 1_000],
  ])(
    `E2: ${SLOW} bodies of users, each a byte a second, and as long as what is %s, are refused, and nobody waits for them`,
    async (_, bytes) => {
      const path = `/_matrix/client/v3/rooms/${encodeURIComponent(room)}/send/m.room.message`
      const slow = Array.from({ length: SLOW }, (_, index) =>
        openRequest(
          urlOf(),
          `PUT ${path}/slow${bytes}-${index} HTTP/1.1\nauthorization: Bearer ${alice.token}\ncontent-length: ${bytes}`,
        ),
      )
      const dripping = setInterval(() => {
        for (const { socket, send } of slow) if (socket.writable) send(' ')
      }, 1_000)
      try {
        let isOver = false
        const answers = Promise.all(slow.map(({ answer }) => answer())).finally(() => {
          isOver = true
        })
        answers.catch(() => undefined)
        expect(await talkUntil(() => isOver)).toBeLessThan(PATIENCE_MS)
        expect((await answers).filter(({ status }) => status !== 408)).toEqual([])
      } finally {
        clearInterval(dripping)
        for (const { socket } of slow) socket.destroy()
      }
      await waitUntil('nothing held', async () => (await level('hearth_body_bytes')) === 0)
    },
  )
})
