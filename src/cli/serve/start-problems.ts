import { X509Certificate } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import type { Problem } from '../../config/layers.ts'
import type { LoadedConfig } from '../../config/load.ts'
import type { Config } from '../../config/schema.ts'
import { loadRegistrations } from '../../domain/appservices/load-registrations.ts'
import { loadMessageTemplates } from '../../domain/identity/message-templates.ts'
import { requirePolicyTexts } from '../../domain/identity/policies.ts'
import { loadPages } from '../../domain/pages.ts'
import { checkSmsProtocol } from '../../outbound/sms.ts'
import { loadCertificate } from './certificate.ts'

/** What a start reads beside the configuration: the option that names it, and a check. */
const CHECKS: readonly (readonly [key: string, check: (config: Config) => Promise<unknown>])[] = [
  ['application_services.registrations', loadRegistrations],
  ['https.certificate_file', async ({ https }) => https.certificate_file && loadCertificate(https)],
  ['outbound.ca_file', ({ outbound }) => checkAuthority(outbound.ca_file)],
  ['identity.mail.smtp.ca_file', ({ identity }) => checkAuthority(identity.mail.smtp.ca_file)],
  ['identity.templates_dir', checkTemplates],
  ['identity.sms.http', async ({ identity: { sms } }) => sms.gateway === 'http' && checkSmsProtocol(sms.http)],
  ['registration.terms.policies', (config) => requirePolicyTexts({ ...config, roles: ['client'] })],
  ['identity.terms.policies', requirePolicyTexts],
]

/** Everything that would stop a start although each option is valid by itself: missing or invalid files. */
export async function startProblems({ config, origins }: LoadedConfig): Promise<Problem[]> {
  const found = await Promise.all(
    CHECKS.map(async ([key, check]) => {
      try {
        await check(config)
        return []
      } catch (error) {
        const given = [...origins].find(([each, origin]) => each.startsWith(key) && origin !== 'default')
        return (error as Error).message.split('\n').map((line) => ({
          origin: given?.[1] ?? key,
          message: line.startsWith(key) ? line : `${key}: ${line}`,
        }))
      }
    }),
  )
  // The last two checks can both report policies of registration.
  const seen = new Set<string>()
  return found.flat().filter(({ message }) => {
    const text = message.replace(/^identity\.terms\.policies: (?=registration\.)/, '')
    const isNew = !seen.has(text)
    seen.add(text)
    return isNew
  })
}

async function checkAuthority(path: string | undefined): Promise<void> {
  if (path === undefined) return
  try {
    new X509Certificate(await readFile(path))
  } catch (error) {
    throw new Error(`${path} holds no certificate that can be read (PEM): ${(error as Error).message}`)
  }
}

async function checkTemplates(config: Config): Promise<void> {
  const directory = config.identity.templates_dir
  if (directory !== undefined) {
    const found = await stat(directory).catch(() => undefined)
    if (found?.isDirectory() !== true) throw new Error(`there is no directory ${directory}`)
  }
  await loadMessageTemplates(directory)
  await loadPages(config)
}
