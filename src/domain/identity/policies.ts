import type { Config } from '../../config/schema.ts'
import type { JsonObject } from '../../core/json.ts'
import { policyTextPath, readPolicyText } from '../../store/identity/policy-texts.ts'
import { identityBaseUrl, publicBaseUrl } from '../public-address.ts'
import { isIdentityServed } from './is-served.ts'

/** One language of a policy. */
export interface PolicyText {
  readonly language: string
  readonly name: string
  readonly url: string
  /** The file of its text, if this server shows it itself. */
  readonly path: string | undefined
}

export interface Policy {
  readonly id: string
  readonly version: string
  readonly texts: readonly PolicyText[]
}

/** Policies in the configuration, of the identity service or of registration. */
export type TermsConfig = Config['identity']['terms']

/** The configured policies. People read and accept each text by its URL. */
export function policiesOf({ directory, policies }: TermsConfig, pagesUrl: string): readonly Policy[] {
  return policies.map(({ id, version, languages }) => ({
    id,
    version,
    texts: languages.map(({ language, name, url }) => ({
      language,
      name,
      // The URL contains id, version and language, so a new version has a new URL, which nobody has accepted yet.
      url: url ?? `${pagesUrl}/${id}/${version}/${language}`,
      path: url === undefined ? policyTextPath(directory, id, version, language) : undefined,
    })),
  }))
}

export function identityPolicies(config: Pick<Config, 'identity' | 'public_base_url' | 'listen'>): readonly Policy[] {
  return policiesOf(config.identity.terms, `${identityBaseUrl(config)}/identity/policies`)
}

/** The policies that people accept when they register on the homeserver. */
export function registrationPolicies(
  config: Pick<Config, 'registration' | 'public_base_url' | 'listen'>,
): readonly Policy[] {
  return policiesOf(config.registration.terms, `${publicBaseUrl(config)}/policies`)
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

/** Throws if a configured policy has no text. */
export async function requirePolicyTexts(
  config: Pick<Config, 'roles' | 'identity' | 'registration' | 'public_base_url' | 'listen'>,
): Promise<void> {
  await requireTexts('registration.terms.policies', registrationPolicies(config))
  if (isIdentityServed(config)) await requireTexts('identity.terms.policies', identityPolicies(config))
}

async function requireTexts(key: string, policies: readonly Policy[]): Promise<void> {
  for (const { id, version, texts } of policies) {
    for (const { language, path } of texts) {
      if (path !== undefined && (await readPolicyText(path)) === undefined) {
        throw new Error(`${key}: ${id} ${version} in "${language}" has no url, and there is no ${path} with its text`)
      }
    }
  }
}

/** A policy as a page of this server shows it. */
export interface ReadablePolicy {
  readonly name: string
  readonly version: string
  readonly language: string
  readonly text: string
  /** The languages that it has, including this one. */
  readonly languages: readonly { readonly language: string; readonly name: string; readonly url: string }[]
}

/** Undefined if this server does not show it itself. */
export async function readPolicy(
  policies: readonly Policy[],
  wanted: { readonly policyId: string; readonly version: string; readonly language: string },
): Promise<ReadablePolicy | undefined> {
  const { version, language } = wanted
  const policy = policies.find((each) => each.id === wanted.policyId && each.version === version)
  const found = policy?.texts.find((each) => each.language === language)
  if (policy === undefined || found?.path === undefined) return undefined
  const text = await readPolicyText(found.path)
  return text === undefined ? undefined : { name: found.name, version, language, text, languages: policy.texts }
}
