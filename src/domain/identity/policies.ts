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
  /** Where its text is, when this server shows it itself. */
  readonly path: string | undefined
}

export interface Policy {
  readonly id: string
  readonly version: string
  readonly texts: readonly PolicyText[]
}

/** Policies as they are configured, in the identity service's section or in that of registration. */
export type TermsConfig = Config['identity']['terms']

/** The configured policies, each text with the URL under which it is read and by which it is accepted. */
export function policiesOf({ directory, policies }: TermsConfig, pagesUrl: string): readonly Policy[] {
  return policies.map(({ id, version, languages }) => ({
    id,
    version,
    texts: languages.map(({ language, name, url }) => ({
      language,
      name,
      // Id, version and language are in it, so that a new version is a new URL, which nobody has accepted yet.
      url: url ?? `${pagesUrl}/${id}/${version}/${language}`,
      path: url === undefined ? policyTextPath(directory, id, version, language) : undefined,
    })),
  }))
}

export function identityPolicies(config: Pick<Config, 'identity' | 'public_base_url' | 'listen'>): readonly Policy[] {
  return policiesOf(config.identity.terms, `${identityBaseUrl(config)}/identity/policies`)
}

/** What people accept who make an account on the homeserver. */
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

/** Throws when a policy is configured that nobody could read. */
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

/** A policy as it is read on a page of this server. */
export interface ReadablePolicy {
  readonly name: string
  readonly version: string
  readonly language: string
  readonly text: string
  /** The languages in which it can be read, this one among them. */
  readonly languages: readonly { readonly language: string; readonly name: string; readonly url: string }[]
}

/** Undefined when it is not one that this server shows itself. */
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
