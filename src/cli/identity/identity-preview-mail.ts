import type { Config } from '../../config/schema.ts'
import type { TemplateValue } from '../../core/template.ts'
import { loadMessageTemplates, TEMPLATE_VALUES } from '../../domain/identity/message-templates.ts'
import { composeMail } from '../../domain/identity/messenger.ts'
import { brandOf, identityBaseUrl } from '../../domain/public-address.ts'
import { encodeMail } from '../../outbound/mail.ts'
import { UsageError } from '../command.ts'
import { wantedLanguages } from './wanted-languages.ts'

export interface PreviewOptions {
  /** A template's name, with or without its ending; by default the mail that validates an address. */
  readonly name: string | undefined
  readonly brand: string | undefined
  readonly language: string | undefined
}

const NAMES = Object.keys(TEMPLATE_VALUES) as (keyof typeof TEMPLATE_VALUES)[]

/** A message with sample values, made with the current templates and configuration. */
export async function previewMail(config: Config, options: PreviewOptions): Promise<string> {
  const wanted = options.name ?? 'validate-email'
  const name = NAMES.find((each) => each === wanted || each.replace(/\.\w+$/, '') === wanted)
  if (name === undefined) throw new UsageError(`there is no "${wanted}"; known are ${NAMES.join(', ')}`)
  const templates = await loadMessageTemplates(config.identity.templates_dir)
  const look = { brand: options.brand, languages: wantedLanguages(options.language, templates.languages) }
  const values = samples(config)
  if (name === 'validate-msisdn.txt') {
    return templates.find(name, look.brand, look.languages)({ ...values, token: '123456' })
  }
  const message = composeMail(config, templates, name, 'somebody@example.org', values, look)
  return (await encodeMail(message)).toString()
}

function samples(config: Config): Record<string, TemplateValue> {
  const base = identityBaseUrl(config)
  return {
    brand: brandOf(config),
    link: `${base}/_matrix/identity/v2/validate/email/submitToken?sid=sample&client_secret=sample&token=sample`,
    token: 'sampleSampleSampleSampleSampleSa',
    hours: String(config.identity.sessions.lifetime_hours),
    server_name: config.server_name,
    sender: `@alice:${config.server_name}`,
    sender_display_name: 'Alice & "Bob" <3',
    room_id: `!sample:${config.server_name}`,
    room_name: 'Tea at five & later',
    room_alias: `#tea:${config.server_name}`,
    user_id: `@alice:${config.server_name}`,
    rooms: [{ room_name: 'Tea at five & later', messages: [{ sender: 'Bob <3', text: 'Milk or lemon?' }], more: '2' }],
    other_rooms: '3',
    logins: [
      { name: 'Bob <3 phone', device: 'SAMPLEPHONE', time: '2026-02-03 04:05 UTC', ip: '203.0.113.7' },
      { name: '', device: 'SAMPLEOTHER', time: '2026-02-03 04:07 UTC', ip: '' },
    ],
    more: '4',
  }
}
