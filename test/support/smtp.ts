import type { AddressInfo } from 'node:net'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'

export interface ReceivedMail {
  readonly from: string
  readonly to: readonly string[]
  /** As it came over the wire. */
  readonly raw: string
  readonly secure: boolean
  readonly user: string | undefined
  /** How the client called itself. */
  readonly helo: string
}

export interface SmtpSink {
  readonly port: number
  readonly mails: ReceivedMail[]
  /** How many connections were opened. */
  connections(): number
  close(): Promise<void>
}

/** A mail server on loopback that keeps what it is sent; `refuse` is asked before a message is taken. */
export async function startSmtp(options: SMTPServerOptions = {}, refuse?: () => Error | null): Promise<SmtpSink> {
  const mails: ReceivedMail[] = []
  let connections = 0
  const server = new SMTPServer({
    authOptional: true,
    disableReverseLookup: true,
    logger: false,
    onConnect: (_session, done) => {
      connections++
      done()
    },
    onData(stream, session, done) {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => {
        const problem = refuse?.() ?? null
        if (problem) return done(problem)
        const { mailFrom, rcptTo } = session.envelope
        mails.push({
          from: mailFrom ? mailFrom.address : '',
          to: rcptTo.map(({ address }) => address),
          raw: Buffer.concat(chunks).toString('utf8'),
          secure: session.secure,
          user: session.user as string | undefined,
          helo: String(session.hostNameAppearsAs),
        })
        done()
      })
    },
    ...options,
  })
  // A client that does not trust us breaks the connection off.
  server.on('error', () => {})
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.server.address() as AddressInfo).port,
    mails,
    connections: () => connections,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  }
}

/** The text between two marks of a quoted-printable or plain message, line breaks put back together. */
export function decodeQuotedPrintable(raw: string): string {
  const bytes = raw
    .replace(/=\r?\n/g, '')
    .replace(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  return Buffer.from(bytes, 'latin1').toString('utf8')
}
