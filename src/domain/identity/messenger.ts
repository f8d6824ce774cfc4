import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import { splitServerName } from '../../core/ids.ts'
import type { TemplateValues } from '../../core/template.ts'
import type { GuardedClient } from '../../outbound/http.ts'
import { createMailboxDirectory, createSmtpMailer, type Mailer, type MailMessage } from '../../outbound/mail.ts'
import { createOutbox } from '../../outbound/outbox.ts'
import {
  createSmsGateway,
  createSmsOutbox,
  NO_SMS,
  SMS_PRESETS,
  SmsError,
  type SmsGateway,
} from '../../outbound/sms.ts'
import type { Clock } from '../clock.ts'
import { brandOf } from '../public-address.ts'
import type { IdentityMetrics } from './identity-metrics.ts'
import { loadMessageTemplates, type MailTemplateName, type MessageTemplates } from './message-templates.ts'
import type { PhoneNumber } from './phone-numbers.ts'

/** Which templates a receiver should get. */
export interface Look {
  /** A directory of templates; an unknown one counts as none. */
  readonly brand: string | undefined
  /** Most wanted first. */
  readonly languages: readonly string[]
}

/** Turns templates into messages and sends them. */
export interface Messenger {
  /** @throws ProtocolError `M_EMAIL_SEND_ERROR` */
  mail(name: MailTemplateName, to: string, values: TemplateValues, look: Look): Promise<void>
  /** The text of a mail, which reaches a person in another way. */
  words(name: MailTemplateName, values: TemplateValues, look: Look): string
  /** Call this before anything else for a number. @throws ProtocolError `M_DESTINATION_REJECTED` */
  requireServed(to: PhoneNumber): void
  /** @throws ProtocolError `M_DESTINATION_REJECTED` if the gateway rejects it, `M_SEND_ERROR` */
  sms(to: PhoneNumber, values: TemplateValues, look: Look): Promise<void>
  close(): void
}

/** The message of a template. `brand` and `from` come from the configuration. */
export function composeMail(
  config: Pick<Config, 'identity' | 'server_name'>,
  templates: MessageTemplates,
  name: MailTemplateName,
  to: string,
  values: TemplateValues,
  look: Look,
): MailMessage {
  const { mail } = config.identity
  const brand = brandOf(config)
  const from = mail.from ?? `no-reply@${splitServerName(config.server_name)?.host ?? config.server_name}`
  const message = templates.find(name, look.brand, look.languages)({ brand, ...values, from, address: to })
  return { ...message, to }
}

/** Whether text messages may go to a number: the allowed countries, or all, without the refused ones. */
function serves({ allowed_countries, refused_countries }: Config['identity']['sms'], region: string): boolean {
  if (refused_countries.includes(region)) return false
  return allowed_countries.length === 0 || allowed_countries.includes(region)
}

function rejection(to: PhoneNumber): ProtocolError {
  return new ProtocolError('M_DESTINATION_REJECTED', `No messages are sent to this number (${to.region}).`)
}

export function createMessenger(deps: {
  readonly config: Pick<Config, 'identity' | 'server_name'>
  readonly templates: MessageTemplates
  readonly mailer: Mailer
  readonly gateway: SmsGateway
  readonly metrics: Pick<IdentityMetrics, 'message'>
  readonly log: Logger
}): Messenger {
  const { config, templates, mailer, gateway, metrics, log } = deps

  return {
    async mail(name, to, values, look) {
      try {
        await mailer.send(composeMail(config, templates, name, to, values, look))
        metrics.message('email', 'sent')
      } catch (error) {
        metrics.message('email', 'failed')
        log.warn(
          { template: name, reason: (error as Error).message.replaceAll(to, '[address]') },
          'a mail was not sent',
        )
        throw new ProtocolError('M_EMAIL_SEND_ERROR', 'The mail could not be sent.')
      }
    },
    words: (name, values, look) => composeMail(config, templates, name, '', values, look).text.trim(),
    requireServed(to) {
      if (!serves(config.identity.sms, to.region)) throw rejection(to)
    },
    async sms(to, values, look) {
      const brand = brandOf(config)
      const text = templates.find('validate-msisdn.txt', look.brand, look.languages)({ brand, ...values })
      try {
        await gateway.send({ to: to.msisdn, text })
        metrics.message('msisdn', 'sent')
      } catch (error) {
        const isRejected = error instanceof SmsError && error.isRejected
        metrics.message('msisdn', isRejected ? 'rejected' : 'failed')
        const reason = (error as Error).message.replaceAll(to.msisdn, '[number]')
        log.warn({ region: to.region, rejected: isRejected, reason }, 'a text message was not sent')
        throw isRejected ? rejection(to) : new ProtocolError('M_SEND_ERROR', 'The message could not be sent.')
      }
    },
    close: () => mailer.close(),
  }
}

/** The messenger that the configuration describes. @throws Error for invalid templates or an invalid gateway */
export async function openMessenger(deps: {
  readonly config: Pick<Config, 'identity' | 'server_name' | 'data_dir'>
  readonly clock: Clock
  readonly metrics: Pick<IdentityMetrics, 'message'>
  readonly log: Logger
  /** Calls gateways for text messages. */
  readonly client: GuardedClient
}): Promise<Messenger> {
  const { config, clock, metrics, log, client } = deps
  const { mail, sms, outbox: directory, templates_dir } = config.identity
  const outbox = createOutbox(directory ?? join(config.data_dir, 'outbox'), clock.now, (path) =>
    log.info({ file: path }, 'no gateway is configured: a message waits in a file'),
  )
  const { host, ca_file, ...smtp } = mail.smtp
  const ca = ca_file === undefined ? undefined : await readFile(ca_file, 'utf8')
  const gateways: Record<typeof sms.gateway, () => SmsGateway> = {
    outbox: () => createSmsOutbox(outbox),
    none: () => NO_SMS,
    http: () => createSmsGateway(sms.http, sms, client),
    twilio: () => createSmsGateway(SMS_PRESETS.twilio, sms, client),
    vonage: () => createSmsGateway(SMS_PRESETS.vonage, sms, client),
  }
  return createMessenger({
    config,
    metrics,
    log,
    templates: await loadMessageTemplates(templates_dir),
    mailer:
      host === undefined
        ? createMailboxDirectory(outbox)
        : createSmtpMailer({ ...smtp, host, ...(ca !== undefined && { ca }) }),
    gateway: gateways[sms.gateway](),
  })
}
