import type { Config } from '../../config/schema.ts'
import { CONTACT_STAGES } from '../contact/contact-proofs.ts'
import { CAPTCHA_STAGE } from './captcha.ts'
import { TERMS_STAGE } from './registration-terms.ts'
import { TOKEN_STAGE } from './registration-tokens.ts'
import type { UiaFlow } from './uia-flows.ts'

/** Each list, and where a stage may be added, the list with it too. */
function withContact(flows: readonly UiaFlow[], wish: Config['registration']['email'], stage: string): UiaFlow[] {
  if (wish === 'no') return [...flows]
  const longer = flows.map((flow) => [...flow, stage])
  return wish === 'required' ? longer : [...flows, ...longer]
}

/** The ways to an account: what the configuration asks for, the proof of being wanted first and the addresses last. */
export function registrationFlows({ registration }: Pick<Config, 'registration'>, needsToken: boolean): UiaFlow[] {
  const first = [
    ...(needsToken ? [TOKEN_STAGE] : []),
    ...(registration.captcha.vendor === 'none' ? [] : [CAPTCHA_STAGE]),
    ...(registration.terms.policies.length === 0 ? [] : [TERMS_STAGE]),
  ]
  const flows = withContact(
    withContact([first], registration.msisdn, CONTACT_STAGES.msisdn),
    registration.email,
    CONTACT_STAGES.email,
  )
  return flows.map((flow) => (flow.length === 0 ? ['m.login.dummy'] : flow))
}
