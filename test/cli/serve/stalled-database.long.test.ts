import { afterEach, expect, test } from 'vitest'
import { createRoom, openApi, register, sendText } from '../../support/api.ts'
import { type ChildServer, startChildServer } from '../../support/child-server.ts'
import { withAllBelow } from '../../support/process-tree.ts'
import { waitUntil } from '../../support/wait.ts'

let server: ChildServer | undefined
let stopped: number[] = []
afterEach(async () => {
  for (const pid of stopped) process.kill(pid, 'SIGCONT')
  await server?.dispose()
})

test('a database that stands still costs callers a 503 within 10 s, and nothing once it goes on', async () => {
  server = await startChildServer({ env: { HEARTH__RATE_LIMITS__ENABLED: 'false' } })
  const api = openApi(server.baseUrl)
  const alice = await register(api, 'alice')
  const room = await createRoom(api, alice.token, {})
  await sendText(api, alice.token, room, 'before', 'before')

  stopped = withAllBelow(server.postmasterPid()!)
  for (const pid of stopped) process.kill(pid, 'SIGSTOP')
  const begun = performance.now()
  const put = (txn: string) =>
    api.request('PUT', `/rooms/${encodeURIComponent(room)}/send/m.room.message/${txn}`, {
      token: alice.token,
      body: { msgtype: 'm.text', body: txn },
    })
  const answers = await Promise.all([
    put('during'),
    api.request('GET', '/devices', { token: alice.token }),
    api.request('POST', '/createRoom', { token: alice.token, body: {} }),
  ])
  expect(performance.now() - begun).toBeLessThan(10_000)
  for (const { status, body } of answers) {
    expect([status, body.errcode]).toEqual([503, 'M_UNKNOWN'])
    expect(body.retry_after_ms).toBeGreaterThan(0)
  }

  for (const pid of stopped) process.kill(pid, 'SIGCONT')
  stopped = []
  await server.waitReady()
  const again = await waitUntil('the send to be taken', async () => {
    const { status, body } = await put('during')
    return status === 200 ? (body.event_id as string) : undefined
  })
  const { chunk } = await api.call('GET', `/rooms/${encodeURIComponent(room)}/messages?dir=b&limit=20`, {
    token: alice.token,
  })
  const during = chunk.filter(({ content }: { content: { body?: string } }) => content.body === 'during')
  expect(during.map(({ event_id }: { event_id: string }) => event_id)).toEqual([again])
  await api.close()
})
