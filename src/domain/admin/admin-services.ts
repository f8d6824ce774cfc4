import type { Config } from '../../config/schema.ts'
import type { Database } from '../../store/db.ts'
import { forgetNonces, forgetOperatorTokens } from '../../store/operator-tokens.ts'
import type { AccountServices } from '../accounts/account-services.ts'
import type { Clock, Random } from '../clock.ts'
import { type Audit, createAudit } from './audit.ts'
import { createOperators, type Operators } from './operators.ts'
import { createRegistrationTokenDesk, type RegistrationTokenDesk } from './registration-token-desk.ts'
import { createSharedSecret, type SharedSecret } from './shared-secret.ts'
import { createUserDesk, type UserDesk } from './user-desk.ts'

/** What operators do with this server. */
export interface AdminServices {
  readonly operators: Operators
  readonly audit: Audit
  readonly sharedSecret: SharedSecret
  readonly users: UserDesk
  readonly registrationTokens: RegistrationTokenDesk
}

export interface AdminParts {
  readonly config: Config
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly accounts: AccountServices
}

export function createAdminServices(parts: AdminParts): AdminServices {
  const audit = createAudit(parts)
  const deps = { ...parts, ...parts.accounts, audit }
  return {
    audit,
    operators: createOperators(deps),
    sharedSecret: createSharedSecret(deps),
    users: createUserDesk(deps),
    registrationTokens: createRegistrationTokenDesk(deps),
  }
}

/** What the janitor removes. */
export const adminChores = [forgetOperatorTokens, forgetNonces] as const
