import { type MessageTemplate, readMessageTemplate } from '../../core/message-template.ts'
import { readTemplate, type Template } from '../../core/template.ts'
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
} as const

const mail =
  (name: keyof typeof TEMPLATE_VALUES) =>
  (source: string): MessageTemplate =>
    readMessageTemplate(source, TEMPLATE_VALUES[name])

const READERS = {
  'validate-email.mail': mail('validate-email.mail'),
  'reset-password.mail': mail('reset-password.mail'),
  'validate-msisdn.txt': (source: string): Template =>
    readTemplate(source.trim(), TEMPLATE_VALUES['validate-msisdn.txt'], 'text'),
  'invite.mail': mail('invite.mail'),
} as const

/** Mails with a token that validates the address. */
export type ValidationMailName = 'validate-email.mail' | 'reset-password.mail'
export type MailTemplateName = ValidationMailName | 'invite.mail'
export type MessageTemplates = TemplateFiles<typeof READERS>

/** Reads our own templates and, over them, those of the operator. @throws Error that names file and line */
export function loadMessageTemplates(directory: string | undefined): Promise<MessageTemplates> {
  return loadTemplates(READERS, directory === undefined ? [OWN_TEMPLATES] : [OWN_TEMPLATES, directory])
}
