import { type Filter, readTemplate, type Template } from '../core/template.ts'
import type { GuardedClient, HttpRequest } from './http.ts'
import type { Outbox } from './outbox.ts'

export interface SmsMessage {
  /** Digits of E.164, without `+`. */
  readonly to: string
  readonly text: string
}

export interface SmsGateway {
  /** Resolves once the gateway has accepted the message. @throws SmsError */
  send(message: SmsMessage): Promise<void>
}

/** Why a message was not accepted. The text is for the log: it may contain the gateway's answer. */
export class SmsError extends Error {
  /** Whether the gateway does not serve the destination, so that another try is useless. */
  readonly isRejected: boolean

  constructor(message: string, isRejected = false) {
    super(message)
    this.name = 'SmsError'
    this.isRejected = isRejected
  }
}

export interface SmsAccount {
  readonly account?: string
  readonly secret?: string
  readonly sender: string
  readonly timeout_ms: number
}

/** The HTTP interface of a gateway. The texts are templates; the patterns are searched in its answers. */
export interface SmsProtocol {
  readonly url: string
  readonly method: 'GET' | 'POST' | 'PUT'
  /** `Name: value` */
  readonly headers: readonly string[]
  readonly body: string
  /** Matches an answer of acceptance; if empty, any 2xx answer is one. */
  readonly accepted: string
  /** Matches an answer of permanent refusal, whatever its status. */
  readonly rejected: string
}

/**
 * Well-known gateways, by their published interfaces.
 *
 * Twilio answers errors with numbers: 21211 and 21614 no number for messages, 21408 and 21612 not to this country or from this sender,
 * 21610 the receiver wants none, 30006 and 63038 unreachable. Vonage answers 200 with a status in the body, "0" for yes; 6 and 7 are
 * numbers it cannot reach, 29 one that a trial account may not.
 */
export const SMS_PRESETS = {
  twilio: {
    url: 'https://api.twilio.com/2010-04-01/Accounts/{{account | url}}/Messages.json',
    method: 'POST',
    headers: ['Content-Type: application/x-www-form-urlencoded', 'Authorization: Basic {{basic}}'],
    body: 'To=%2B{{to | url}}&From={{sender | url}}&Body={{text | url}}',
    accepted: '',
    rejected: '"code":\\s*(?:21211|21408|21610|21612|21614|30006)\\b',
  },
  vonage: {
    url: 'https://rest.nexmo.com/sms/json',
    method: 'POST',
    headers: ['Content-Type: application/json'],
    body: '{"api_key":"{{account | json}}","api_secret":"{{secret | json}}","to":"{{to | json}}","from":"{{sender | json}}","text":"{{text | json}}","type":"unicode"}',
    accepted: '"status":\\s*"0"',
    rejected: '"status":\\s*"(?:6|7|29)"',
  },
} as const satisfies Record<string, SmsProtocol>

const NAMES = ['to', 'text', 'sender', 'account', 'secret', 'basic']
const MAX_ANSWER_BYTES = 65_536

interface Compiled {
  readonly url: Template
  readonly headers: readonly (readonly [string, Template])[]
  readonly body: Template
  readonly accepted: RegExp | undefined
  readonly rejected: RegExp | undefined
}

function compile(protocol: SmsProtocol): Compiled {
  const read = (text: string, filter: Filter): Template => readTemplate(text, NAMES, filter)
  const pattern = (text: string) => (text === '' ? undefined : new RegExp(text))
  return {
    url: read(protocol.url, 'url'),
    headers: protocol.headers.map((header) => {
      const colon = header.indexOf(':')
      return [header.slice(0, colon), read(header.slice(colon + 1).trim(), 'header')]
    }),
    body: read(protocol.body, 'text'),
    accepted: pattern(protocol.accepted),
    rejected: pattern(protocol.rejected),
  }
}

/** @throws Error if the description is not valid */
export function checkSmsProtocol(protocol: SmsProtocol): void {
  compile(protocol)
}

/**
 * Sends through a gateway as `protocol` describes it.
 *
 * @throws Error if the description is not valid
 */
export function createSmsGateway(protocol: SmsProtocol, options: SmsAccount, client: GuardedClient): SmsGateway {
  const { url, headers, body, accepted, rejected } = compile(protocol)
  const { account = '', secret = '', sender } = options
  const basic = Buffer.from(`${account}:${secret}`).toString('base64')

  return {
    async send({ to, text }) {
      const values = { to, text, sender, account, secret, basic }
      const { isOk, answer } = await ask(client, {
        url: url(values),
        method: protocol.method,
        headers: Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), value(values)])),
        body: protocol.method === 'GET' ? undefined : body(values),
        timeoutMs: options.timeout_ms,
        maxBytes: MAX_ANSWER_BYTES,
      })
      if (rejected?.test(answer)) throw new SmsError('the gateway does not serve this destination', true)
      if (!isOk || accepted?.test(answer) === false) {
        throw new SmsError(`the gateway refused the message: ${answer.slice(0, 300)}`)
      }
    },
  }
}

async function ask(client: GuardedClient, request: HttpRequest): Promise<{ isOk: boolean; answer: string }> {
  const response = await client.request(request)
  if (!response.ok) throw new SmsError(`the gateway cannot be asked: ${response.detail}`)
  return { isOk: response.status >= 200 && response.status < 300, answer: response.body.toString() }
}

/** Keeps messages as files. */
export function createSmsOutbox(outbox: Outbox): SmsGateway {
  return {
    async send({ to, text }) {
      try {
        await outbox.put('txt', `To: +${to}\n\n${text}\n`)
      } catch (error) {
        throw new SmsError(`the message could not be kept: ${(error as Error).message}`)
      }
    },
  }
}

/** For services without text messages. */
export const NO_SMS: SmsGateway = {
  send: async () => {
    throw new SmsError('no gateway is configured', true)
  },
}
