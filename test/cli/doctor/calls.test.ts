import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { examineCalls } from '../../../src/cli/doctor/calls.ts'
import { turnPlace } from '../../../src/cli/doctor/turn-probe.ts'
import { loadConfig } from '../../../src/config/load.ts'
import { createGuardedClient, type GuardedClient } from '../../../src/outbound/http.ts'
import { createNames } from '../../../src/outbound/names.ts'
import { type Coturn, hasCoturn, startCoturn } from '../../support/coturn.ts'

let client: GuardedClient
const outbound = { allow_ranges: ['127.0.0.0/8'] }

beforeAll(async () => {
  const { config } = loadConfig({ values: { outbound }, directory: tmpdir() })
  client = await createGuardedClient({ config, log: pino({ level: 'silent' }) })
})
afterAll(() => client.close())

async function examine(calls: object) {
  const { config } = loadConfig({ values: { outbound, calls }, directory: tmpdir() })
  const findings = await examineCalls({ config, client, names: createNames(), now: Date.now })
  return findings.map(({ subject, verdict, text, advice = '' }) => [subject, verdict, `${text} ${advice}`])
}
const off = expect.stringContaining('are off')

it('reads addresses of TURN servers', () => {
  expect(turnPlace('turn:turn.example.org')).toEqual({ host: 'turn.example.org', port: 3478, transport: 'udp' })
  expect(turnPlace('turn:[::1]:1?transport=tcp')).toEqual({ host: '::1', port: 1, transport: 'tcp' })
  expect(turnPlace('turns:x?transport=tcp')).toEqual({ host: 'x', port: 5349, transport: 'tls' })
  expect(turnPlace('stun:x')).toBeUndefined()
})

it('says that there is nothing, which is no problem', async () => {
  expect(await examine({})).toEqual([
    ['TURN', 'ok', expect.stringContaining('there is none')],
    ['LiveKit', 'ok', off],
  ])
})

describe.skipIf(!hasCoturn())('a TURN server', () => {
  let coturn: Coturn
  beforeAll(async () => {
    coturn = await startCoturn({ secret: 'north' })
  })
  afterAll(() => coturn.close())

  it('that relays, by UDP and TCP', async () => {
    const uris = ['udp', 'tcp'].map((transport) => `turn:127.0.0.1:${coturn.port}?transport=${transport}`)
    const findings = await examine({ turn: { uris, shared_secret: 'north' } })
    expect(findings.slice(0, 2)).toEqual(uris.map((uri) => ['TURN', 'ok', `${uri} relays `]))
  })

  it('that has another secret, or does not answer', async () => {
    const uris = [...coturn.uris, 'turn:127.0.0.1:1?transport=tcp', 'stun:127.0.0.1:1']
    expect(await examine({ turn: { uris, shared_secret: 'south' } })).toEqual([
      ['TURN', 'problem', expect.stringContaining('static-auth-secret')],
      ['TURN', 'problem', expect.stringContaining('open the firewall')],
      ['TURN', 'skipped', expect.stringContaining('stun:127.0.0.1:1')],
      ['LiveKit', 'ok', off],
    ])
  })
})

it('LiveKit that answers, that does not, and that has no TLS', async () => {
  const server = createServer((_request, response) => response.end('OK'))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const livekit = (url: string, api_url: string) =>
    examine({ livekit: { url, api_url, api_key: 'k', api_secret: 's'.repeat(32) } }).then((findings) => findings.at(-1))
  const here = `http://127.0.0.1:${port}`
  expect(await livekit('wss://livekit.example.org', here)).toEqual(['LiveKit', 'ok', `${here} answers `])
  expect((await livekit('ws://livekit.example.org', here))?.[1]).toBe('warning')
  expect((await livekit('wss://livekit.example.org', 'http://127.0.0.1:1'))?.[1]).toBe('problem')
  await new Promise((resolve) => server.close(resolve))
})
