import type { Outbox } from './outbox.ts'

/** One message to one address. No field is parsed for addresses, and line ends in headers cannot begin a new header. */
export interface MailMessage {
  readonly from: { readonly name: string; readonly address: string }
  readonly to: string
  readonly subject: string
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
  readonly html: string | undefined
}

export interface Mailer {
  /** Resolves once the mail server has accepted the message. @throws MailError */
  send(message: MailMessage): Promise<void>
  close(): void
}

/** Why a message was not accepted. The text is for the log: it may contain the mail server's answer. */
export class MailError extends Error {
  constructor(cause: unknown) {
    const { code, message } = cause as { code?: unknown; message?: unknown }
    super(`mail was not accepted: ${typeof code === 'string' ? `${code}: ` : ''}${message ?? cause}`, { cause })
    this.name = 'MailError'
  }
}

export interface SmtpOptions {
  readonly host: string
  readonly port: number
  /** `starttls` and `tls` never fall back to plain text, and check the certificate; `none` never encrypts. */
  readonly security: 'tls' | 'starttls' | 'none'
  /** Whether the certificate must be valid for this host and signed by a known authority. */
  readonly verify_certificate: boolean
  /** Authorities to trust besides the usual ones, in PEM. */
  readonly ca?: string
  readonly user?: string
  readonly password?: string
  /** The name we greet the server with. */
  readonly helo_name?: string
  readonly connections: number
  readonly timeout_ms: number
}

/** After a broken connection a message is tried once more, because mail servers close idle connections without notice. */
const REQUEUES = 1
/** A mail server counts as stuck when a message has waited for so many timeouts. */
const STUCK_AFTER = 2
const SAFE = { disableFileAccess: true, disableUrlAccess: true }

/** Sends through a mail server, over a few connections that stay open. */
export function createSmtpMailer(options: SmtpOptions): Mailer {
  const transport = loadMailer().then((createTransport) =>
    createTransport({
      ...connectionOf(options),
      pool: true,
      maxConnections: options.connections,
      maxRequeues: REQUEUES,
    }),
  )
  // The start time of each unfinished message, oldest first.
  const underWay = new Map<symbol, number>()

  /** Whether messages wait so long already that a new one would wait in vain. */
  function isStuck(): boolean {
    const [oldest = Number.POSITIVE_INFINITY] = underWay.values()
    return underWay.size >= options.connections && performance.now() - oldest > STUCK_AFTER * options.timeout_ms
  }

  return {
    async send(message) {
      if (isStuck()) throw new MailError(new Error('messages wait for the mail server already'))
      const place = Symbol('message')
      underWay.set(place, performance.now())
      try {
        await (await transport).sendMail(composed(message))
      } catch (error) {
        throw new MailError(error)
      } finally {
        underWay.delete(place)
      }
    },
    close: () => void transport.then((opened) => opened.close()),
  }
}

/** Loads the library on first use. */
async function loadMailer() {
  return (await import('nodemailer')).createTransport
}

/** Goes as far as a message would, without one: connects, encrypts, logs in. @throws MailError */
export async function checkSmtp(options: SmtpOptions): Promise<void> {
  const createTransport = await loadMailer()
  const transport = createTransport(connectionOf(options))
  try {
    await transport.verify()
  } catch (error) {
    throw new MailError(error)
  } finally {
    transport.close()
  }
}

function connectionOf(options: SmtpOptions) {
  const { host, port, security, user, password, timeout_ms: timeout } = options
  return {
    ...SAFE,
    host,
    port,
    secure: security === 'tls',
    requireTLS: security === 'starttls',
    ignoreTLS: security === 'none',
    tls: {
      rejectUnauthorized: options.verify_certificate,
      minVersion: 'TLSv1.2',
      ...(options.ca !== undefined && { ca: options.ca }),
    },
    connectionTimeout: timeout,
    greetingTimeout: timeout,
    socketTimeout: timeout,
    dnsTimeout: timeout,
    ...(user !== undefined && { auth: { user, pass: password ?? '' } }),
    ...(options.helo_name !== undefined && { name: options.helo_name }),
  } as const
}

/** Writes messages to `.eml` files: for development, and to see what would be sent. */
export function createMailboxDirectory(outbox: Outbox): Mailer {
  return {
    async send(message) {
      try {
        await outbox.put('eml', await encodeMail(message))
      } catch (error) {
        throw new MailError(error)
      }
    },
    close() {},
  }
}

/** The bytes of a message as a mail server would get them. */
export async function encodeMail(message: MailMessage): Promise<Buffer> {
  const createTransport = await loadMailer()
  const transport = createTransport({ ...SAFE, streamTransport: true, buffer: true, newline: 'unix' })
  return (await transport.sendMail(composed(message))).message as Buffer
}

function composed({ from, to, subject, headers, text, html }: MailMessage) {
  return {
    from,
    to: { name: '', address: to },
    // Separate from the headers, so that a header can never add a receiver.
    envelope: { from: from.address, to: [to] },
    subject,
    headers: { ...headers },
    text,
    ...(html !== undefined && { html }),
  }
}
