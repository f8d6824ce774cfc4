import { createLdapDirectory } from '../../outbound/directory/ldap.ts'
import { createExternalAccounts } from './external-accounts.ts'
import { createJwtLogins, type JwtLogins } from './jwt-logins.ts'
import { createLdapPasswords, type LdapPasswords } from './ldap-passwords.ts'
import { createOutsideAccounts } from './outside-accounts.ts'

/** Sign-in by what services of the operator know, beside single sign-on. */
export interface OutsideLogins {
  readonly ldapPasswords: LdapPasswords | undefined
  readonly jwtLogins: JwtLogins
}

export type OutsideLoginParts = Parameters<typeof createExternalAccounts>[0] &
  Pick<Parameters<typeof createLdapPasswords>[0], 'config' | 'log'> &
  Pick<Parameters<typeof createJwtLogins>[0], 'config'>

export function createOutsideLogins({ config, db, clock, registration, log }: OutsideLoginParts): OutsideLogins {
  const accounts = createExternalAccounts({ config, db, clock, registration })
  const accountOf = createOutsideAccounts(accounts)
  const directory = createLdapDirectory(config)
  return {
    ldapPasswords: createLdapPasswords({ config, directory, accountOf, log }),
    jwtLogins: createJwtLogins({ config, clock, accounts, accountOf }),
  }
}
