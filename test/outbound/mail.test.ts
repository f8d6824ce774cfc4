import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it, test } from 'vitest'
import {
  createMailboxDirectory,
  createSmtpMailer,
  encodeMail,
  MailError,
  type SmtpOptions,
} from '../../src/outbound/mail.ts'
import { createOutbox } from '../../src/outbound/outbox.ts'
import { selfSigned } from '../support/certificate.ts'
import { startSmtp } from '../support/smtp.ts'

const MESSAGE = {
  from: { name: 'Hearth', address: 'identity@hearth.example' },
  to: 'alice@example.org',
  subject: 'Confirm your address',
  headers: { 'Auto-Submitted': 'auto-generated' },
  text: 'Your link: https://hearth.example/?token=abc\n',
  html: '<p>Your link</p>',
}

const ours = selfSigned('localhost')
const others = selfSigned('mail.elsewhere.example')

const undo: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step()
})

function mailer(port: number, options: Partial<SmtpOptions> = {}) {
  const made = createSmtpMailer({
    host: 'localhost',
    port,
    security: 'starttls',
    verify_certificate: true,
    ca: ours.cert,
    connections: 2,
    timeout_ms: 2_000,
    ...options,
  })
  undo.push(() => made.close())
  return made
}

async function smtp(...args: Parameters<typeof startSmtp>) {
  const sink = await startSmtp(...args)
  undo.push(sink.close)
  return sink
}

/** A server that says what it is told to, line by line. */
async function scripted(talk: (line: string, socket: Socket) => void, greeting = '220 hello\r\n'): Promise<number> {
  const sockets = new Set<Socket>()
  const server: Server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    if (greeting !== '') socket.write(greeting)
    socket.on('data', (chunk) => {
      for (const line of chunk.toString().split('\r\n')) if (line !== '') talk(line, socket)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  undo.push(async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
  return (server.address() as AddressInfo).port
}

describe('a message reaches the mail server', () => {
  it.each([
    ['starttls', { ...ours }, true],
    ['tls', { ...ours, secure: true }, true],
    ['none', { hideSTARTTLS: true }, false],
    ['none', { ...ours }, false],
  ] as const)('by %s', async (security, options, isSecure) => {
    const sink = await smtp(options)
    await mailer(sink.port, { security, helo_name: 'identity.hearth.example' }).send(MESSAGE)
    expect(sink.mails).toMatchObject([
      { from: 'identity@hearth.example', to: ['alice@example.org'], secure: isSecure, helo: 'identity.hearth.example' },
    ])
    expect(sink.mails[0]?.raw).toMatch(/^Auto-Submitted: auto-generated\r$/m)
    expect(sink.mails[0]?.raw).toMatch(/^Subject: Confirm your address\r$/m)
    expect(sink.mails[0]?.raw).toContain('multipart/alternative')
  })

  test('with a login', async () => {
    const sink = await smtp({
      ...ours,
      authOptional: false,
      onAuth: ({ username, password }, _session, done) =>
        password === 'right' ? done(null, { user: username }) : done(new Error('no')),
    })
    await mailer(sink.port, { user: 'hearth', password: 'right' }).send(MESSAGE)
    expect(sink.mails).toMatchObject([{ user: 'hearth' }])
    await expect(mailer(sink.port, { user: 'hearth', password: 'wrong' }).send(MESSAGE)).rejects.toThrow(MailError)
    await expect(mailer(sink.port).send(MESSAGE)).rejects.toThrow(MailError)
    expect(sink.mails).toHaveLength(1)
  })

  test('a hundred over few connections', async () => {
    const sink = await smtp({ ...ours })
    const { send } = mailer(sink.port)
    await Promise.all(Array.from({ length: 100 }, (_, n) => send({ ...MESSAGE, to: `user${n}@example.org` })))
    expect(new Set(sink.mails.map(({ to }) => to[0])).size).toBe(100)
    expect(sink.connections()).toBeLessThanOrEqual(2)
  })

  test('that knows HELO only', async () => {
    const heard: string[] = []
    let isData = false
    const port = await scripted((line, socket) => {
      if (isData) {
        if (line === '.') {
          isData = false
          socket.write('250 taken\r\n')
        }
        return
      }
      heard.push(line)
      if (/^EHLO/.test(line)) socket.write('502 what?\r\n')
      else if (/^DATA/.test(line)) {
        isData = true
        socket.write('354 go on\r\n')
      } else socket.write('250 fine\r\n')
    })
    await mailer(port, { security: 'none', helo_name: 'old.example' }).send(MESSAGE)
    expect(heard.slice(0, 4)).toEqual([
      'EHLO old.example',
      'HELO old.example',
      'MAIL FROM:<identity@hearth.example>',
      'RCPT TO:<alice@example.org>',
    ])
  })
})

describe('a message is refused, and told so,', () => {
  test('when nobody listens', async () => {
    const sink = await startSmtp()
    await sink.close()
    await expect(mailer(sink.port).send(MESSAGE)).rejects.toThrow(/ECONNREFUSED|ESOCKET/)
  })

  it.each([
    ['says nothing', ''],
    ['stops talking', '220 hello\r\n'],
  ])('when the server %s', async (_name, greeting) => {
    const port = await scripted(() => {}, greeting)
    const begun = performance.now()
    await expect(mailer(port, { timeout_ms: 150, security: 'none' }).send(MESSAGE)).rejects.toThrow(MailError)
    expect(performance.now() - begun).toBeLessThan(25_000)
  })

  test('at once when others wait in vain already', async () => {
    const port = await scripted(() => {}, '')
    const { send } = mailer(port, { timeout_ms: 150, connections: 1, security: 'none' })
    const waiting = Array.from({ length: 8 }, () => send(MESSAGE).catch((error: Error) => error.message))
    await waiting[2]
    await expect(send(MESSAGE)).rejects.toThrow(/wait for the mail server already/)
    expect(await Promise.all(waiting)).not.toContain(undefined)
  })

  it.each(['tls', 'starttls'] as const)('when the certificate is of no known authority, by %s', async (security) => {
    const sink = await smtp({ ...ours, secure: security === 'tls' })
    await expect(mailer(sink.port, { security, ca: others.cert }).send(MESSAGE)).rejects.toThrow(/self-signed/)
    expect(sink.mails).toEqual([])
  })

  it.each(['tls', 'starttls'] as const)('when the certificate is for another host, by %s', async (security) => {
    const sink = await smtp({ ...others, secure: security === 'tls' })
    await expect(mailer(sink.port, { security, ca: others.cert }).send(MESSAGE)).rejects.toThrow(/altnames/)
    expect(sink.mails).toEqual([])
  })

  test('unless certificates are not to be checked', async () => {
    const sink = await smtp({ ...others })
    await mailer(sink.port, { verify_certificate: false }).send(MESSAGE)
    expect(sink.mails).toMatchObject([{ secure: true }])
  })

  test('when STARTTLS was stripped: nothing of it goes in plain text', async () => {
    const heard: string[] = []
    const port = await scripted((line, socket) => {
      heard.push(line)
      socket.write(/^EHLO/.test(line) ? '250-hello\r\n250 8BITMIME\r\n' : '502 no STARTTLS here\r\n')
    })
    await expect(mailer(port, { user: 'hearth', password: 'secret' }).send(MESSAGE)).rejects.toThrow(MailError)
    expect(heard.filter((line) => !/^(EHLO|STARTTLS|QUIT)\b/.test(line))).toEqual([])
  })

  test('when the server cannot speak ESMTP and TLS was wanted', async () => {
    const heard: string[] = []
    const port = await scripted((line, socket) => {
      heard.push(line)
      socket.write('502 what?\r\n')
    })
    await expect(mailer(port).send(MESSAGE)).rejects.toThrow(MailError)
    expect(heard.filter((line) => /MAIL|RCPT|DATA|AUTH/.test(line))).toEqual([])
  })

  it.each([421, 451, 550, 554])('when the server answers %i', async (responseCode) => {
    const refusal = Object.assign(new Error('not today'), { responseCode })
    const early = await smtp({ ...ours, onRcptTo: (_address, _session, done) => done(refusal) })
    await expect(mailer(early.port).send(MESSAGE)).rejects.toThrow(/not today/)
    const late = await smtp({ ...ours }, () => refusal)
    await expect(mailer(late.port).send(MESSAGE)).rejects.toThrow(/not today/)
    expect(late.mails).toEqual([])
  })

  test('and the next one gets through', async () => {
    let refusals = 1
    const sink = await smtp({ ...ours }, () => (refusals-- > 0 ? new Error('not yet') : null))
    const { send } = mailer(sink.port)
    await expect(send(MESSAGE)).rejects.toThrow(MailError)
    await send(MESSAGE)
    expect(sink.mails).toHaveLength(1)
  })
})

describe('what is written', () => {
  const parts = (raw: string) => raw.slice(0, raw.indexOf('\n\n'))

  test('names and subjects make no headers', async () => {
    const raw = (
      await encodeMail({
        ...MESSAGE,
        from: { name: 'Mallory\r\nBcc: all@example.org', address: 'identity@hearth.example' },
        subject: 'Hi\r\nBcc: all@example.org\nX-Evil: 1\u0000',
        headers: { 'X-Room': 'one\r\nBcc: all@example.org' },
      })
    ).toString()
    expect(parts(raw)).not.toMatch(/^(Bcc|X-Evil):/im)
    expect(parts(raw)).toMatch(/^To: alice@example.org$/m)
  })

  test('a name that looks like an address adds no receiver and no sender', async () => {
    const sink = await smtp({ ...ours })
    await mailer(sink.port).send({
      ...MESSAGE,
      from: { name: 'boss@bank.example>, <x', address: 'identity@hearth.example' },
      headers: { 'X-Room': '<other@example.org>' },
    })
    expect(sink.mails).toMatchObject([{ from: 'identity@hearth.example', to: ['alice@example.org'] }])
  })

  test('boundaries and message ids differ from mail to mail', async () => {
    const raws = await Promise.all([1, 2, 3].map(async () => (await encodeMail(MESSAGE)).toString()))
    const found = (pattern: RegExp) => new Set(raws.map((raw) => pattern.exec(raw)?.[1]))
    expect(found(/boundary="([^"]+)"/).size).toBe(3)
    expect(found(/^Message-ID: <([^>]+)@hearth.example>/im).size).toBe(3)
  })

  test('letters beyond ASCII are encoded, and the address is kept', async () => {
    const sink = await smtp({ ...ours })
    await mailer(sink.port).send({ ...MESSAGE, to: 'иван@почта.рф', subject: 'Grüße' })
    expect(sink.mails[0]?.raw).toMatch(/^Subject: =\?UTF-8\?/m)
    expect(sink.mails[0]?.to).toHaveLength(1)
    expect(sink.mails[0]?.to[0]).toMatch(/^иван@(почта\.рф|xn--80a1acny\.xn--p1ai)$/)
  })
})

describe('without a mail server', () => {
  test('messages become files that only their owner may read', async () => {
    const directory = join(await mkdtemp(join(tmpdir(), 'hearth-mail-')), 'outbox')
    undo.push(() => rm(directory, { recursive: true, force: true }))
    const paths: string[] = []
    const { send } = createMailboxDirectory(createOutbox(directory, Date.now, (path) => paths.push(path)))
    await Promise.all([send(MESSAGE), send(MESSAGE), send(MESSAGE)])
    const names = await readdir(directory)
    expect(names).toHaveLength(3)
    expect(names.every((name) => name.endsWith('.eml'))).toBe(true)
    expect(new Set(paths)).toEqual(new Set(names.map((name) => join(directory, name))))
    expect((await stat(paths[0] as string)).mode & 0o777).toBe(0o600)
    expect((await stat(directory)).mode & 0o777).toBe(0o700)
    expect(await readFile(paths[0] as string, 'utf8')).toMatch(/^To: alice@example.org$/m)
  })

  test('a directory that cannot be made is an error of sending', async () => {
    const { send } = createMailboxDirectory(createOutbox('/dev/null/outbox', Date.now, () => {}))
    await expect(send(MESSAGE)).rejects.toThrow(MailError)
  })
})
