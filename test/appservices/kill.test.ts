import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createRoom, openApi, register, sendText } from '../support/api.ts'
import { type ChildServer, startChildServer } from '../support/child-server.ts'
import { waitUntil } from '../support/wait.ts'
import { startService, TAKES_ALL, type TestService } from './service.ts'
import { as, makeGhost, registration } from './world.ts'

let service: TestService
let server: ChildServer
let directory: string
const irc = registration('irc')
beforeAll(async () => {
  service = await startService()
  directory = await mkdtemp(join(tmpdir(), 'hearth-registrations-'))
  await writeFile(join(directory, 'irc.yaml'), JSON.stringify({ ...irc, url: service.url }))
  server = await startChildServer({
    env: { HEARTH__APPLICATION_SERVICES__REGISTRATIONS: directory, HEARTH__RATE_LIMITS__ENABLED: 'false' },
  })
})
afterAll(async () => {
  await server?.dispose()
  await service.close()
  await rm(directory, { recursive: true })
})

test('kill -9 between sending and acknowledgement: the same transaction id and body again, and nothing lost or twice', async () => {
  const api = openApi(server.baseUrl)
  const person = await register(api, 'person')
  const roomId = await createRoom(api, person.token, { preset: 'public_chat' })
  const ghost = await makeGhost(api, irc, '_irc_ghost')
  await api.call('POST', as(ghost, `/join/${encodeURIComponent(roomId)}`), { token: irc.as_token, body: {} })
  const send = (text: string) => sendText(api, person.token, roomId, text, text)
  const sent: string[] = []
  for (let round = 0; round < 3; round++) {
    // Heard, and not answered.
    let held = ''
    service.behave(({ path, text }) => {
      if (text.includes(`held ${round}`)) held = `${path} ${text}`
      return text.includes(`held ${round}`) ? undefined : [200, {}]
    })
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
  expect(server.output()).not.toContain(irc.hs_token)
  await api.close()
})
