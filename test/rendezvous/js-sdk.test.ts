import { initAsync, QrCodeData, QrCodeIntent } from '@matrix-org/matrix-sdk-crypto-wasm'
import { createClient } from 'matrix-js-sdk'
import { logger } from 'matrix-js-sdk/lib/logger.js'
import {
  ClientRendezvousFailureReason,
  MSC4108RendezvousSession,
  MSC4108SecureChannel,
} from 'matrix-js-sdk/lib/rendezvous/index.js'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openApi, register } from '../support/api.ts'
import { startServer, type TestServer } from '../support/server.ts'

/** The channel that two clients build in a session before one signs the other in. */

const silent = { trace() {}, debug() {}, info() {}, warn() {}, error() {}, log() {}, getChild: () => silent }
Object.assign(logger, silent)

let server: TestServer

beforeAll(async () => {
  await initAsync()
  server = await startServer({ registration: { enabled: true } })
  // The address of a session is in the code.
  await server.restart({ public_base_url: server.baseUrl })
})
afterAll(() => server.close())

async function open() {
  const { baseUrl } = server
  const api = openApi(baseUrl)
  const { token: accessToken, userId, deviceId } = await register(api, `user${Date.now()}`)
  await api.close()
  const client = createClient({ baseUrl, accessToken, userId, deviceId, logger: silent })
  const failures: unknown[] = []
  const session = new MSC4108RendezvousSession({ client, onFailure: (reason) => failures.push(reason) })
  await session.send('')
  const old = new MSC4108SecureChannel(session)
  const code = QrCodeData.fromBytes(await old.generateCode(QrCodeIntent.Reciprocate, 'localhost'))
  const url = code.rendezvousUrl!
  expect(url.startsWith(`${baseUrl}/_matrix/client/unstable/org.matrix.msc4108/rendezvous/`)).toBe(true)
  const fresh = new MSC4108SecureChannel(new MSC4108RendezvousSession({ url }), code.publicKey)
  return { session, old, fresh, failures, url }
}

it('carries what two clients say to each other in secret', async () => {
  const { old, fresh, url } = await open()
  await Promise.all([old.connect(), fresh.connect()])
  expect(old.getCheckCode()).toMatch(/^\d\d$/)
  expect(fresh.getCheckCode()).toBe(old.getCheckCode())
  const heard = old.secureReceive()
  await fresh.secureSend({ type: 'm.login.protocols' as never, protocols: ['device_authorization_grant'] } as never)
  expect(await heard).toEqual({ type: 'm.login.protocols', protocols: ['device_authorization_grant'] })
  expect(await (await fetch(url)).text()).not.toContain('protocols')
  await old.close()
})

it('ends for both when one of them gives up', async () => {
  const { session, failures, url } = await open()
  await session.cancel(ClientRendezvousFailureReason.UserDeclined)
  expect((await fetch(url)).status).toBe(404)
  expect(failures).toEqual([ClientRendezvousFailureReason.UserDeclined])
})
