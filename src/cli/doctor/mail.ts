import { readFile } from 'node:fs/promises'
import type { Config } from '../../config/schema.ts'
import { checkSmtp } from '../../outbound/mail.ts'
import { type Finding, ok, problem, warning } from './finding.ts'

/** Checks the mail server up to the login. Sends nothing. */
export async function examineMail({ identity }: Config): Promise<Finding> {
  const { host, ca_file, ...smtp } = identity.mail.smtp
  if (host === undefined) {
    const text = 'no mail server: messages become files, and nobody can validate an email address'
    return warning('SMTP', text, 'set identity.mail.smtp')
  }
  const place = `${host}:${smtp.port}`
  const advice = 'see identity.mail.smtp: host, port, security, user and password'
  try {
    const ca = ca_file === undefined ? undefined : await readFile(ca_file, 'utf8')
    await checkSmtp({ ...smtp, host, ...(ca !== undefined && { ca }) })
  } catch (error) {
    return problem('SMTP', `${place}: ${(error as Error).message}`, advice)
  }
  if (smtp.security === 'none' && !/^(?:localhost|127\.|::1)/.test(host)) {
    return warning('SMTP', `${place} answers, without encryption`, 'set identity.mail.smtp.security to starttls or tls')
  }
  return ok('SMTP', `${place} answers${smtp.user === undefined ? '' : `, and lets ${smtp.user} in`}`)
}
