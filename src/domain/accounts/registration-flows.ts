import type { Config } from '../../config/schema.ts'
import { CONTACT_STAGES } from '../contact/contact-proofs.ts'
import { CAPTCHA_STAGE } from './captcha.ts'
import { TERMS_STAGE } from './registration-terms.ts'
import { TOKEN_STAGE } from './registration-tokens.ts'
import type { UiaFlow } from './uia-flows.ts'

/** Each flow, and for each the same one with a contact stage added if that is optional. */
function withContact(flows: readonly UiaFlow[], wish: Config['registration']['email'], stage: string): UiaFlow[] {
  if (wish === 'no') return [...flows]
  const longer = flows.map((flow) => [...flow, stage])
  return wish === 'required' ? longer : [...flows, ...longer]
}

/**
 * The flows of registration, as configured. The stages that prove that a person may register come first, those that prove addresses last.
 */
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
