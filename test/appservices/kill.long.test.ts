import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import { type Account, type Api, createRoom, type Json, openApi, register, sendText } from '../support/api.ts'
import { type ChildServer, startChildServer } from '../support/child-server.ts'
import { PROJECT_ROOT } from '../support/project.ts'
import { waitUntil } from '../support/wait.ts'
import { startService, TAKES_ALL, type TestService } from './service.ts'
import { as, makeGhost, registration, type TestRegistration } from './world.ts'

/** Servers are started several times. */
const TIMEOUT_MS = 120_000

let service: TestService
let server: ChildServer
let directory: string
const irc = registration('irc', { receive_ephemeral: true, 'org.matrix.msc3202': true })
let echo: TestRegistration
let api: Api
let person: Account
beforeAll(async () => {
  service = await startService()
  directory = await mkdtemp(join(tmpdir(), 'hearth-registrations-'))
  await writeFile(join(directory, 'irc.yaml'), JSON.stringify({ ...irc, url: service.url }))
  const example = join(PROJECT_ROOT, 'examples/echo')
  const hosted = { hosted: join(example, 'echo.js') }
  echo = { ...parse(await readFile(join(example, 'registration.yaml'), 'utf8')), ...hosted }
  await writeFile(join(directory, 'echo.yaml'), JSON.stringify(echo))
  server = await startChildServer({
    env: { HEARTH__APPLICATION_SERVICES__REGISTRATIONS: directory, HEARTH__RATE_LIMITS__ENABLED: 'false' },
  })
  api = openApi(server.baseUrl)
  person = await register(api, 'person')
})
afterAll(async () => {
  await api?.close()
  await server?.dispose()
  await service.close()
  await rm(directory, { recursive: true })
})

test(
  'kill -9 between sending and acknowledgement: the same transaction id and body again, and nothing lost or twice',
  async () => {
    const roomId = await createRoom(api, person.token, { preset: 'public_chat' })
    const ghost = await makeGhost(api, irc, '_irc_ghost')
    await api.call('POST', as(ghost, `/join/${encodeURIComponent(roomId)}`), { token: irc.as_token, body: {} })
    await api.call('PUT', as(ghost, '/devices/DEV'), { token: irc.as_token, body: {} })
    const send = (text: string) => sendText(api, person.token, roomId, text, text)
    const sent: string[] = []
    for (let round = 0; round < 2; round++) {
      // Heard, and not answered.
      let held = ''
      service.behave(({ path, text }) => {
        if (text.includes(`held ${round}`)) held = `${path} ${text}`
        return text.includes(`held ${round}`) ? undefined : [200, {}]
      })
      const messages = { [ghost]: { DEV: { round } } }
      await api.call('PUT', `/sendToDevice/m.test/${round}`, { token: person.token, body: { messages } })
      for (const text of [`held ${round}`, `more ${round}`]) sent.push(text) && (await send(text))
      await waitUntil('the transaction under way', () => held !== '')
      await server.kill('SIGKILL')
      const before = service.heard.length
      service.behave(TAKES_ALL)
      await server.start()
      await service.until('what came after', (event) => event.content.body === `more ${round}`)
      const again = service.heard.slice(before)[0]!
      expect(`${again.path} ${again.text}`).toBe(held)
    }
    expect(
      service
        .events()
        .filter(({ type }) => type === 'm.room.message')
        .map(({ content }) => content.body),
    ).toEqual(sent)
    const transactions = new Map(service.transactions().map(({ path, body }) => [path, body]))
    const messages = [...transactions.values()].flatMap(({ to_device = [] }) => to_device)
    expect(messages.map(({ content }: Json) => content.round)).toEqual([0, 1])
    expect(server.output()).not.toContain(irc.hs_token)
  },
  TIMEOUT_MS,
)

test(
  'kill -9 while a service in this process works, and after: what comes again is a no-op',
  async () => {
    const roomId = await createRoom(api, person.token, { preset: 'public_chat', invite: ['@echo:localhost'] })
    const path = `/rooms/${encodeURIComponent(roomId)}`
    const said = async (): Promise<string[]> => {
      const { chunk } = await api.call('GET', `${path}/messages?dir=b&limit=100`, { token: person.token })
      const messages = chunk.filter(
        (event: Json) => event.type === 'm.room.message' && event.sender === '@echo:localhost',
      )
      return messages.map((event: Json) => event.content.body).toReversed()
    }
    await waitUntil('echo to join', async () => {
      const { joined } = await api.call('GET', `${path}/joined_members`, { token: person.token })
      return joined['@echo:localhost']
    })
    const put = async (text: string) => {
      const content = { msgtype: 'm.text', body: text }
      const event = { type: 'm.room.message', room_id: roomId, sender: '@far:away', event_id: `$${text}`, content }
      const call = { token: echo.hs_token, body: { events: [event] } }
      return (await api.request('PUT', `/_matrix/app/v1/transactions/${text}`, call)).status
    }
    const wanted: string[] = []
    for (let round = 0; round < 2; round++) {
      const [during, after, own] = [`during${round}`, `after${round}`, `own${round}`]
      expect(await put(after)).toBe(200)
      await sendText(api, person.token, roomId, own, own)
      const cut = put(during).catch(() => 0)
      await server.kill('SIGKILL')
      await cut
      await server.start()
      for (const text of [during, after, during, after]) expect(await put(text)).toBe(200)
      wanted.push(...[after, own, during].map((text) => `echo: ${text}`))
      await waitUntil('all echoes', async () => (await said()).length >= wanted.length)
    }
    expect((await said()).sort()).toEqual(wanted.sort())
  },
  TIMEOUT_MS,
)
