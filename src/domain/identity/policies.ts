import type { Config } from '../../config/schema.ts'
import type { JsonObject } from '../../core/json.ts'
import { policyTextPath, readPolicyText } from '../../store/identity/policy-texts.ts'
import { identityBaseUrl } from '../public-address.ts'

/** One language of a policy. */
export interface PolicyText {
  readonly language: string
  readonly name: string
  readonly url: string
  /** Where its text is, when this server shows it itself. */
  readonly path: string | undefined
}

export interface Policy {
  readonly id: string
  readonly version: string
  readonly texts: readonly PolicyText[]
}

/** The configured policies, each text with the URL under which it is read and by which it is accepted. */
export function policiesOf(config: Pick<Config, 'identity' | 'public_base_url' | 'listen'>): readonly Policy[] {
  const { directory, policies } = config.identity.terms
  return policies.map(({ id, version, languages }) => ({
    id,
    version,
    texts: languages.map(({ language, name, url }) => ({
      language,
      name,
      // Id, version and language are in it, so that a new version is a new URL, which nobody has accepted yet.
      url: url ?? `${identityBaseUrl(config)}/identity/policies/${id}/${version}/${language}`,
      path: url === undefined ? policyTextPath(directory, id, version, language) : undefined,
    })),
  }))
}

/** As `GET terms` shows them (identity service API, "Terms of service"). */
export function policyMap(policies: readonly Policy[]): JsonObject {
  return Object.fromEntries(
    policies.map(({ id, version, texts }) => [
      id,
      { ...Object.fromEntries(texts.map(({ language, name, url }) => [language, { name, url }])), version },
    ]),
  )
}

/** Throws when a policy is configured that nobody could read. */
export async function requirePolicyTexts(policies: readonly Policy[]): Promise<void> {
  for (const { id, version, texts } of policies) {
    for (const { language, path } of texts) {
      if (path !== undefined && (await readPolicyText(path)) === undefined) {
        throw new Error(
          `identity.terms.policies: ${id} ${version} in "${language}" has no url, and there is no ${path} with its text`,
        )
      }
    }
  }
}
