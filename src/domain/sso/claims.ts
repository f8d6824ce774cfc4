import type { Config } from '../../config/schema.ts'
import type { JsonObject } from '../../core/json.ts'
import { oneLine, readClaimsTemplate, type Template } from '../../core/template.ts'
import { isEmailAddress, normaliseAddress } from '../../core/threepid.ts'
import { MAX_DISPLAYNAME_CHARS } from '../limits.ts'

type ProviderConfig = Config['sso']['providers'][number]

/** The claims about a person who has no account here yet. */
export interface Newcomer {
  /** The result of the template, in lower case. It may be empty, or no valid user name. */
  readonly localpart: string
  readonly displayName: string | undefined
  /** Normalised as in core/threepid.ts; undefined unless the provider has verified it. */
  readonly email: string | undefined
}

export type ClaimMapping = (claims: JsonObject) => Newcomer

/** How a provider's claims become a user name, a display name and an address. */
export function claimMapping(config: Pick<ProviderConfig, 'localpart' | 'display_name' | 'email'>): ClaimMapping {
  const localpart = readClaimsTemplate(config.localpart ?? '{{preferred_username}}')
  const displayName = readClaimsTemplate(config.display_name ?? '{{name}}')
  const email = readClaimsTemplate(config.email ?? '{{email}}')
  return (claims) => {
    const values = texts(claims)
    const render = (template: Template): string => oneLine(template(values))
    return {
      localpart: render(localpart).toLowerCase(),
      displayName: displayNameOf(displayName(values)),
      email: claims.email_verified === true ? addressOf(render(email)) : undefined,
    }
  }
}

/** Claims that are no text count as absent, except for numbers, because some providers use them as ids. */
function texts(claims: JsonObject): Record<string, string> {
  const entries = Object.entries(claims).filter(([, value]) => typeof value === 'string' || typeof value === 'number')
  return Object.fromEntries(entries.map(([name, value]) => [name, String(value)]))
}

/** A text as a display name; undefined for an empty one. */
export function displayNameOf(text: string): string | undefined {
  return oneLine(text).slice(0, MAX_DISPLAYNAME_CHARS) || undefined
}

/** A text as an email address, normalised as in core/threepid.ts; undefined for another text. */
export function addressOf(text: string): string | undefined {
  return isEmailAddress(text) ? normaliseAddress('email', text) : undefined
}

/** A user name similar to a text; empty if nothing of it can be used. */
export function suggestedName(text: string): string {
  const plain = text.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase()
  return plain
    .replace(/[^a-z0-9._=/+-]+/g, '.')
    .replace(/^[._]+|\.+$/g, '')
    .slice(0, 64)
}
