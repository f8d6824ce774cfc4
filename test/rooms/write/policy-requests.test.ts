import { randomBytes } from 'node:crypto'
import { expect, it } from 'vitest'
import { buildEvent } from '../../../src/core/event/build.ts'
import { POLICY_KEY_ID } from '../../../src/core/event/policy.ts'
import type { RoomId, ServerName, UserId } from '../../../src/core/ids.ts'
import type { JsonObject } from '../../../src/core/json.ts'
import { roomVersion } from '../../../src/core/room-version.ts'
import { signedEventText } from '../../../src/core/signing/event-hash.ts'
import { signingKeyFromSeed } from '../../../src/core/signing/key.ts'
import {
  MAX_POLICY_REQUESTS_AT_ONCE,
  MAX_POLICY_REQUESTS_WAITING,
  POLICY_SERVER_PAUSE_MS,
} from '../../../src/domain/limits/policy-servers.ts'
import { createPolicyRequests } from '../../../src/domain/rooms/write/policy-requests.ts'
import { unreachable } from '../../../src/outbound/peer-errors.ts'

const version = roomVersion('11')!
const via = 'policy.example.org' as ServerName
const key = signingKeyFromSeed(POLICY_KEY_ID, randomBytes(32))
const policy = { via, publicKey: key.publicKey, isUnstable: false }
const own = signingKeyFromSeed('ed25519:a', randomBytes(32))

/** An event of a server. */
function eventOf(server: ServerName) {
  const draft = {
    type: 'm.room.message',
    sender: `@a:${server}` as UserId,
    room_id: '!a:example.org' as RoomId,
    content: {},
    origin_server_ts: 1,
    depth: 1,
    prev_events: [],
    auth_events: [],
  }
  const { pdu, json } = buildEvent(version, draft, server, own)
  return { version, pdu, json }
}

it('a signature is added to those that the event has, also of the policy server itself', async () => {
  for (const server of [via, 'example.org' as ServerName]) {
    const event = eventOf(server)
    const signature = key.sign(signedEventText(version, event.pdu))
    const ask = createPolicyRequests({
      clock: { now: () => 0 },
      peers: { signByPolicy: async () => ({ [via]: { [POLICY_KEY_ID]: signature }, other: { x: 'y' } }) },
    })
    const signatures = await ask(policy, event, 1)
    expect(signatures[server]).toMatchObject({ [own.keyId]: event.pdu.signatures[server]![own.keyId] })
    expect(signatures[via]).toMatchObject({ [POLICY_KEY_ID]: signature })
    expect(Object.keys(signatures).sort()).toEqual([...new Set([via, server])].sort())
  }
})

it('a server that does not answer is left alone for a while, and those that wait fail with the first', async () => {
  let now = 0
  let calls = 0
  const ask = createPolicyRequests({
    clock: { now: () => now },
    peers: {
      async signByPolicy(of) {
        calls++
        throw unreachable(of, 'it is away')
      },
    },
  })
  const many = Array.from({ length: 3 * MAX_POLICY_REQUESTS_AT_ONCE }, () => ask(policy, eventOf(via), 1))
  for (const { status } of await Promise.allSettled(many)) expect(status).toBe('rejected')
  expect(calls).toBe(MAX_POLICY_REQUESTS_AT_ONCE)
  now = POLICY_SERVER_PAUSE_MS - 1
  await expect(ask(policy, eventOf(via), 1)).rejects.toMatchObject({ status: 502 })
  expect(calls).toBe(MAX_POLICY_REQUESTS_AT_ONCE)
  now = POLICY_SERVER_PAUSE_MS
  await expect(ask(policy, eventOf(via), 1)).rejects.toMatchObject({ status: 502 })
  expect(calls).toBe(MAX_POLICY_REQUESTS_AT_ONCE + 1)
})

it('requests beyond those that may wait fail at once', async () => {
  let release: (answer: JsonObject) => void = () => {}
  const answer = new Promise<JsonObject>((resolve) => {
    release = resolve
  })
  const ask = createPolicyRequests({ clock: { now: () => 0 }, peers: { signByPolicy: () => answer } })
  const event = eventOf(via)
  const taken = MAX_POLICY_REQUESTS_AT_ONCE + MAX_POLICY_REQUESTS_WAITING
  const waiting = Array.from({ length: taken }, () => ask(policy, event, 1))
  await expect(ask(policy, event, 1)).rejects.toMatchObject({ status: 503 })
  release({ [via]: { [POLICY_KEY_ID]: key.sign(signedEventText(version, event.pdu)) } })
  expect(await Promise.all(waiting)).toHaveLength(taken)
})
