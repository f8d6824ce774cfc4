import type { Config } from '../../config/schema.ts'
import { insertAcceptedPolicies } from '../../store/accounts/accepted-policies.ts'
import type { Tx } from '../../store/db/db.ts'
import { type Policy, policyMap, registrationPolicies } from '../identity/policies.ts'
import type { UiaStage } from './interactive-auth.ts'
import type { UiaProof } from './uia-flows.ts'

export const TERMS_STAGE = 'm.login.terms'

/** The policies that people accept when they register (client-server API, "Terms of service at registration"). */
export interface RegistrationTerms {
  readonly policies: readonly Policy[]
  readonly stage: UiaStage
  /** Records which policies a new user has accepted, if any: each policy by its URL in the first language. */
  record(tx: Tx, userNid: number, proof: UiaProof, now: number): Promise<void>
}

export function createRegistrationTerms(
  config: Pick<Config, 'registration' | 'public_base_url' | 'listen'>,
): RegistrationTerms {
  const policies = registrationPolicies(config)
  const urls = policies.flatMap(({ texts }) => texts.slice(0, 1).map(({ url }) => url))
  return {
    policies,
    stage: { params: () => ({ policies: policyMap(policies) }), prove: async () => ({}) },
    async record(tx, userNid, proof, now) {
      if (Object.hasOwn(proof, TERMS_STAGE) && urls.length > 0) await insertAcceptedPolicies(tx, userNid, urls, now)
    },
  }
}
