import { type AddressInfo, createServer, type Socket } from 'node:net'
import { afterEach, expect, it } from 'vitest'
import type { Config } from '../../../src/config/schema.ts'
import { startAccountServer } from '../../support/account-server.ts'
import { selfSigned } from '../../support/certificate.ts'
import { startSmtp } from '../../support/smtp.ts'
import { openIdentity, P1 } from '../identity-api.ts'

const undo: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step()
})

async function closedPort(): Promise<number> {
  const sink = await startSmtp()
  await sink.close()
  return sink.port
}

async function talker(talk: (socket: Socket) => void): Promise<number> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    talk(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  undo.push(async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
  return (server.address() as AddressInfo).port
}

async function sink(...args: Parameters<typeof startSmtp>): Promise<number> {
  const started = await startSmtp(...args)
  undo.push(() => started.close())
  return started.port
}

function stripped(socket: Socket): void {
  socket.write('220 hello\r\n')
  socket.on('data', (line) => socket.write(/^EHLO/.test(String(line)) ? '250 no STARTTLS here\r\n' : '250 fine\r\n'))
}

type Smtp = Partial<Config['identity']['mail']['smtp']>

it.each<[string, () => Promise<number>, Smtp]>([
  ['is not there', closedPort, {}],
  ['says nothing', () => talker(() => {}), { timeout_ms: 200 }],
  ['has a certificate of nobody', () => sink(selfSigned('localhost')), {}],
  [
    'has a certificate of nobody, with TLS from the start',
    () => sink({ ...selfSigned('x'), secure: true }),
    { security: 'tls' },
  ],
  ['had its STARTTLS stripped', () => talker(stripped), {}],
  [
    'answers 550',
    () => sink({ hideSTARTTLS: true }, () => Object.assign(new Error('no'), { responseCode: 550 })),
    { security: 'none' },
  ],
])(
  'a mail server that %s: 400 M_EMAIL_SEND_ERROR, the attempt not counted, nothing lost',
  async (_name, open, options) => {
    const port = await open()
    const smtp = { host: 'localhost', port, timeout_ms: 2_000, ...options }
    const server = await startAccountServer({ identity: { mail: { smtp } } })
    undo.push(() => server.close())
    const identity = openIdentity(server.baseUrl)
    const body = { client_secret: 'secret', email: 'alice@example.org', send_attempt: 1 }
    for (let n = 0; n < 2; n++) {
      const { status, body: answer } = await identity.ask('POST', `${P1}/validate/email/requestToken`, { body })
      expect([status, answer.errcode]).toEqual([400, 'M_EMAIL_SEND_ERROR'])
      expect(JSON.stringify(answer)).not.toContain('localhost')
    }
    const rows = await server.db.query('SELECT send_attempt, length(token_hashes) AS tokens FROM identity_session')
    expect(rows).toEqual([{ send_attempt: -1, tokens: 0 }])
    expect(server.logged()).toContain('a mail was not sent')
    expect(server.logged()).not.toContain('alice@example.org')
  },
)
