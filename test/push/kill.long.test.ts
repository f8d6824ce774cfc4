import { afterAll, beforeAll, expect, test } from 'vitest'
import { openDatabase } from '../../src/store/db/db.ts'
import { type Account, type Api, createRoom, join, openApi, register, sendText } from '../support/api.ts'
import { createAuthority } from '../support/certificate.ts'
import { type ChildServer, startChildServer } from '../support/child-server.ts'
import { waitUntil } from '../support/wait.ts'
import { bodiesOf, setPusher, startGateway, TAKES_ALL, type TestGateway } from './gateway.ts'

const TIMEOUT_MS = 120_000

let gateway: TestGateway
let server: ChildServer
let api: Api
let alice: Account
let bob: Account

beforeAll(async () => {
  const authority = createAuthority()
  gateway = await startGateway(authority)
  server = await startChildServer({
    env: {
      HEARTH__OUTBOUND__CA_FILE: authority.file,
      HEARTH__OUTBOUND__ALLOW_RANGES: '127.0.0.0/8',
      HEARTH__RATE_LIMITS__ENABLED: 'false',
    },
  })
  api = openApi(server.baseUrl)
  alice = await register(api, 'alice')
  bob = await register(api, 'bob')
})

afterAll(async () => {
  await api?.close()
  await server?.dispose()
  await gateway?.close()
  gateway?.authority.remove()
})

/** Whether everything that was committed is noted as sent. */
async function isNoted(): Promise<boolean> {
  const connection = { ...server.postgresSocket(), user: 'hearth', database: 'hearth' }
  const db = openDatabase({ connection, poolSize: 1 })
  try {
    const rows = await db.query<{ is_noted: boolean }>(
      'SELECT position >= (SELECT max(event_nid) FROM event) AS is_noted FROM push_sent',
    )
    return rows[0]?.is_noted === true
  } finally {
    await db.close()
  }
}

test(
  'kill -9 between the call of a gateway and the note of it: nothing is lost, the order is kept, little comes twice',
  async () => {
    const room = await createRoom(api, alice.token, { preset: 'public_chat' })
    await join(api, bob.token, room)
    await setPusher(api, bob, gateway, 'key')
    const sent: string[] = []
    const say = async (text: string) => {
      sent.push(text)
      await sendText(api, alice.token, room, text, text)
    }
    for (let round = 0; round < 3; round++) {
      const held = `held ${round}`
      let isHeld = false
      // The gateway has heard of it, and the server does not hear that it has.
      gateway.behave(({ content }) => {
        isHeld ||= content?.body === held
        return isHeld ? undefined : { rejected: [] }
      })
      for (const text of [`before ${round}`, held, `more ${round}`]) await say(text)
      await waitUntil('the request that is held', () => isHeld)
      await server.kill('SIGKILL')
      gateway.behave(TAKES_ALL)
      await server.start()
      await waitUntil('what came after', () => bodiesOf(gateway.of('key')).includes(`more ${round}`))
      await waitUntil('the note of it', isNoted)
    }
    const found = bodiesOf(gateway.of('key')).filter((body) => body !== undefined)
    const firsts = found.filter((body, index) => found.indexOf(body) === index)
    expect(firsts).toEqual(sent)
    // What was noted does not come again: at most what one round sent before its kill.
    expect(found.length - firsts.length).toBeLessThanOrEqual(3)
  },
  TIMEOUT_MS,
)

test(
  'kill -9 in a flood: the last message is told of, each mention too, and all of them are counted',
  async () => {
    const room = await createRoom(api, alice.token, { preset: 'public_chat' })
    await join(api, bob.token, room)
    gateway.behave(TAKES_ALL)
    await setPusher(api, bob, gateway, 'flooded')
    const wanted: string[] = []
    for (let round = 0; round < 3; round++) {
      for (let count = 0; count < 60; count++) {
        const text = `flood ${round} ${count}`
        const isMention = count % 20 === 7
        const body = { msgtype: 'm.text', body: text, 'm.mentions': { user_ids: isMention ? [bob.userId] : [] } }
        const path = `/rooms/${encodeURIComponent(room)}/send/m.room.message/${encodeURIComponent(text)}`
        await api.call('PUT', path, { token: alice.token, body })
        if (isMention || count === 59) wanted.push(text)
      }
      await server.kill('SIGKILL')
      await server.start()
      const last = `flood ${round} 59`
      await waitUntil('the last message', () => bodiesOf(gateway.of('flooded')).includes(last))
    }
    const found = gateway.of('flooded').filter(({ content }) => content !== undefined)
    expect(bodiesOf(found)).toEqual(expect.arrayContaining(wanted))
    expect(found.findLast(({ content }) => content.body === 'flood 2 59').counts.unread).toBeGreaterThanOrEqual(180)
  },
  TIMEOUT_MS,
)
