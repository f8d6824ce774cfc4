import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Account, type Api, type Json, login, openApi, register, sendText, syncPath } from '../support/api.ts'
import { newName, openTarget } from './target.ts'

const OLD_MESSAGES = 25

let target: Awaited<ReturnType<typeof openTarget>>
let api: Api
beforeAll(async () => {
  target = await openTarget()
  api = openApi(target.baseUrl, { prefix: '/_proto/client/r0' })
})
afterAll(async () => {
  await api.close()
  await target.close()
})

/** A client that knows only what its own sync loop brought. */
function openLoop(account: Account) {
  let since: string | undefined
  return {
    async next(timeout = 10_000): Promise<Json> {
      const filter = { room: { timeline: { limit: 5 } } }
      const query = since === undefined ? { filter } : { since, timeout, filter }
      const body = await api.call('GET', syncPath(query), { token: account.token })
      since = body.next_batch
      return body
    },
    /** Syncs until `pick` finds what it looks for. */
    async until(what: string, pick: (sync: Json) => Json): Promise<Json> {
      for (let turn = 0; turn < 20; turn += 1) {
        const found = pick(await this.next())
        if (found !== undefined) return found
      }
      throw new Error(`20 syncs did not bring: ${what}`)
    },
  }
}

const inTimeline = (roomId: string, wanted: (event: Json) => boolean) => (sync: Json) =>
  sync.rooms?.join?.[roomId]?.timeline.events.find(wanted)

const hasBody = (body: string) => (event: Json) => event.content.body === body

async function loginNew(stem: string): Promise<Account> {
  const name = newName(stem)
  await register(api, name)
  return login(api, name)
}

test('two people talk in plain HTTP over /_proto/client/r0', async () => {
  const alice = await loginNew('alice')
  const bob = await loginNew('bob')
  const [aliceLoop, bobLoop] = [openLoop(alice), openLoop(bob)]
  await Promise.all([aliceLoop.next(), bobLoop.next()])

  const { room_id: roomId } = await api.call('POST', '/createRoom', {
    token: alice.token,
    body: { preset: 'private_chat', name: 'Hearthside' },
  })
  const room = `/rooms/${encodeURIComponent(roomId)}`
  await api.call('POST', `${room}/invite`, { token: alice.token, body: { user_id: bob.userId } })
  const invite = await bobLoop.until('the invitation', (sync) => sync.rooms?.invite?.[roomId])
  const inviteState: Json[] = invite.invite_state.events
  expect(inviteState).toContainEqual(expect.objectContaining({ type: 'm.room.name', content: { name: 'Hearthside' } }))

  await api.call('POST', `${room}/join`, { token: bob.token, body: {} })
  await aliceLoop.until(
    'the join',
    inTimeline(roomId, (event) => event.content.membership === 'join' && event.state_key === bob.userId),
  )

  const question = await sendText(api, alice.token, roomId, 'q', 'is the fire lit?')
  expect(await sendText(api, alice.token, roomId, 'q', 'is the fire lit?')).toBe(question)
  const heard = await bobLoop.until('the question', inTimeline(roomId, hasBody('is the fire lit?')))
  expect(heard).toMatchObject({ event_id: question, sender: alice.userId, type: 'm.room.message' })
  expect(heard).not.toHaveProperty('room_id')

  await sendText(api, bob.token, roomId, 'a', 'since noon')
  await aliceLoop.until('the answer', inTimeline(roomId, hasBody('since noon')))

  await api.call('PUT', `${room}/redact/${encodeURIComponent(question)}/r`, {
    token: alice.token,
    body: { reason: 'a slip' },
  })
  const redaction = await bobLoop.until(
    'the redaction',
    inTimeline(roomId, (event) => event.type === 'm.room.redaction'),
  )
  expect(redaction.sender).toBe(alice.userId)
  const redacted = await api.call('GET', `${room}/event/${encodeURIComponent(question)}`, { token: bob.token })
  expect(redacted.content).toEqual({})
  expect(redacted.unsigned.redacted_because.event_id).toBe(redaction.event_id)

  const sent = Array.from({ length: OLD_MESSAGES }, (_, index) => `old ${index}`)
  for (const text of sent) await sendText(api, alice.token, roomId, text, text)
  expect(await readBackwards(await login(api, bob.userId), room)).toEqual(['since noon', ...sent])

  await api.call('POST', '/logout', { token: bob.token, body: {} })
  const after = await api.request('GET', '/account/whoami', { token: bob.token })
  expect(after).toMatchObject({ status: 401, body: { errcode: 'M_UNKNOWN_TOKEN' } })
})

/** The texts of the room in order, from a fresh sync of five events and `messages` for what came before. */
async function readBackwards(account: Account, room: string): Promise<string[]> {
  const sync = await openLoop(account).next()
  const { timeline } = sync.rooms.join[decodeURIComponent(room.slice('/rooms/'.length))]
  expect(timeline).toMatchObject({ limited: true, prev_batch: expect.any(String) })
  const events: Json[] = [...timeline.events]
  for (let from: string | undefined = timeline.prev_batch; from !== undefined; ) {
    const query = new URLSearchParams({ dir: 'b', limit: '10', from })
    const page: Json = await api.call('GET', `${room}/messages?${query}`, { token: account.token })
    events.unshift(...page.chunk.toReversed())
    from = page.chunk.length === 0 ? undefined : page.end
  }
  expect(new Set(events.map((event) => event.event_id)).size).toBe(events.length)
  expect(events[0].type).toBe('m.room.create')
  return events
    .filter((event) => event.type === 'm.room.message' && event.content.body)
    .map((event) => event.content.body)
}
