import { type MessageTemplate, readMessageTemplate } from '../../core/message-template.ts'
import { holdsValue, readTemplate, type Template, TemplateError } from '../../core/template.ts'
import { loadTemplates, OWN_TEMPLATES, type TemplateFiles } from '../../outbound/template-files.ts'

/** The values that each template may use. */
export const TEMPLATE_VALUES = {
  'validate-email.mail': ['brand', 'from', 'address', 'link', 'token', 'hours'],
  'reset-password.mail': ['brand', 'from', 'address', 'link', 'token', 'hours'],
  'validate-msisdn.txt': ['brand', 'token', 'hours'],
  'invite.mail': [
    ...['brand', 'from', 'address', 'link', 'token', 'private_key', 'server_name'],
    ...['sender', 'sender_display_name', 'sender_avatar_url'],
    ...['room_id', 'room_name', 'room_alias', 'room_avatar_url', 'room_join_rules', 'is_space'],
  ],
  'unread.mail': [
    ...['brand', 'from', 'address', 'link', 'user_id', 'rooms', 'other_rooms'],
    // Of each room, and of each of its messages.
    ...['room_name', 'messages', 'more', 'sender', 'text', 'is_invitation', 'is_encrypted', 'is_other'],
  ],
  'new-login.mail': [
    ...['brand', 'from', 'address', 'link', 'user_id', 'logins', 'more'],
    // Of each login.
    ...['name', 'device', 'time', 'ip'],
  ],
} as const

/** The message must contain at least one of these, or its receiver could do nothing with it, or not get rid of it. */
const PROOFS: Readonly<Record<keyof typeof TEMPLATE_VALUES, readonly string[]>> = {
  'validate-email.mail': ['link', 'token'],
  'reset-password.mail': ['link', 'token'],
  'validate-msisdn.txt': ['token'],
  'invite.mail': ['link', 'token', 'room_id', 'room_alias'],
  'unread.mail': ['link'],
  'new-login.mail': ['link'],
}

function requireProof(name: keyof typeof TEMPLATE_VALUES, source: string): void {
  const proofs = PROOFS[name]
  if (proofs.some((value) => holdsValue(source, value))) return
  throw new TemplateError(1, `${proofs.map((value) => `"{{${value}}}"`).join(' or ')} must not be left out of it`)
}

function mail(name: keyof typeof TEMPLATE_VALUES): (source: string) => MessageTemplate {
  return (source) => {
    const template = readMessageTemplate(source, TEMPLATE_VALUES[name])
    requireProof(name, source)
    return template
  }
}

function readSms(source: string): Template {
  const template = readTemplate(source.trim(), TEMPLATE_VALUES['validate-msisdn.txt'], 'text')
  requireProof('validate-msisdn.txt', source)
  return template
}

const READERS = {
  'validate-email.mail': mail('validate-email.mail'),
  'reset-password.mail': mail('reset-password.mail'),
  'validate-msisdn.txt': readSms,
  'invite.mail': mail('invite.mail'),
  'unread.mail': mail('unread.mail'),
  'new-login.mail': mail('new-login.mail'),
} as const

/** Mails with a token that validates the address. */
export type ValidationMailName = 'validate-email.mail' | 'reset-password.mail'
export type MailTemplateName = ValidationMailName | 'invite.mail' | 'unread.mail' | 'new-login.mail'
export type MessageTemplates = TemplateFiles<typeof READERS>

/** Reads our own templates, and those of the operator in their place. @throws Error that names file and line */
export function loadMessageTemplates(directory: string | undefined): Promise<MessageTemplates> {
  return loadTemplates(READERS, directory === undefined ? [OWN_TEMPLATES] : [OWN_TEMPLATES, directory])
}
